"""A checked study, rehearsed or run: behind `iolab.run` and every command that runs trials."""

from __future__ import annotations

from iolab.library.forecast import forecast, short_text
from iolab.library.services import Services
from iolab.run.conduct import Conducted, conduct, note_plan
from iolab.run.dry_run import rehearse
from iolab.run.observer import Observer
from iolab.run.options import RunOptions
from iolab.run.prepare import Prepared, prepare
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.study.model import Study


def conducted(
    study: Study,
    options: RunOptions,
    services: Services,
    observer: Observer,
    stop: StopSwitch | None = None,
) -> Conducted | None:
    """Run, continue or rehearse a study; None of a rehearsal, which stores nothing.

    Parameters
    ----------
    study, options : what is asked, and how it is run.
    services : the compiled half and the statistics.
    observer : hears of it.
    stop : ends it early; None is Ctrl-C.

    Raises
    ------
    IolabError : it was refused, or nothing could be stored.
    """
    is_drawn = study.seed is None and not options.is_resumed
    prepared = prepare(study, options, services.load_core(), services.analysis, observer)
    if not options.is_dry_run:
        if stop is not None:
            return conduct(prepared, stop)
        with pressed_by_signals() as pressed:
            return conduct(prepared, pressed)
    rehearsed(prepared, is_drawn=is_drawn)
    return None


def rehearsed(prepared: Prepared, *, is_drawn: bool) -> None:
    """Rehearse a run, and tell how long it would take; `is_drawn` is whether its seed was drawn.

    Raises
    ------
    IolabError : what would be refused by the run itself.
    """
    observer = prepared.observer
    note_plan(prepared)
    rehearse(prepared)
    observer.result(short_text(forecast(prepared.plan, prepared.testbed)))
    if is_drawn:
        observer.result(
            f"The order is that of seed {prepared.plan.seed}; the run draws another one, "
            f"unless it is given --seed {prepared.plan.seed}."
        )
