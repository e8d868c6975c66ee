"""A checked study, rehearsed or run: behind `iolab.run` and every command that runs trials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from iolab.errors import StudyError
from iolab.frozen import replace
from iolab.library.forecast import forecast, short_text
from iolab.library.services import Services
from iolab.library.stored import directory_of, stored_study
from iolab.library.study import Study, checked_study, is_testbed_from_file, public_study
from iolab.run.conduct import Conducted, conduct, note_plan
from iolab.run.dry_run import rehearse
from iolab.run.in_place import files_in_place, made_in_place
from iolab.run.observer import Observer
from iolab.run.options import RunOptions
from iolab.run.prepare import Prepared, prepare
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.store.users_files import Allowed
from iolab.study import model

if TYPE_CHECKING:
    from iolab.library.flag_words import StudyKeys

_FILES_NAMED: Final = 20
"""Files that a rehearsal names; more are counted."""

__all__ = ["Conducted", "RunOptions", "conducted", "study_again"]


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
    options = replace(options, is_testbed_from_file=is_testbed_from_file(study))
    core, analysis = services.load_core(), services.analysis
    prepared = prepare(checked_study(study), options, core, analysis, observer)
    if not options.is_dry_run:
        if stop is not None:
            return conduct(prepared, stop)
        with pressed_by_signals() as pressed:
            return conduct(prepared, pressed)
    is_drawn = study.seed is None and not options.is_resumed
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
    for text in _files_written(prepared):
        observer.result(text)
    observer.result(short_text(forecast(prepared.plan, prepared.testbed)))
    if is_drawn:
        observer.result(
            f"The order is that of seed {prepared.plan.seed}; the run draws another one, "
            f"unless it is given --seed {prepared.plan.seed}."
        )


def _refuse_chosen(study: model.Study, options: RunOptions, source: Path) -> None:
    """Refuse files that a stored study chooses in directories of the user's."""
    from iolab.library.dialect.files import is_own, refuse_unnamed

    # One's own made them when it began: whoever continues it has said so then.
    if not is_own(source):
        refuse_unnamed(made_in_place(study), Allowed.of(options.overwrite), source)


def _files_written(prepared: Prepared) -> Iterator[str]:
    """Name the files that trials make or write in a directory of the user's."""
    files = files_in_place(prepared.plan.study, prepared.testbed)
    for path in files[:_FILES_NAMED]:
        yield f"Trials make or write {path.absolute()}."
    if len(files) > _FILES_NAMED:
        yield f"Trials make or write {len(files) - _FILES_NAMED} more files there."


def study_again(path: Path, keys: StudyKeys, options: RunOptions) -> tuple[Study, RunOptions]:
    """A stored study and how it is run: continued in its own directory unless `out` is another.

    Parameters
    ----------
    path : a results directory, its database or an archive.
    keys : top-level keys that replace those of its study file.
    options : how it is run.

    Raises
    ------
    StudyError : nothing of it can be run; or an archive is to be continued.
    RefusedError : it chooses a file in a directory of the user's that nobody named today, and it is
        an archive, or a study that this user did not begin where it lies.
    StoreError : it cannot be read.
    """
    checked = stored_study(path, keys.values, keys.source)
    directory = directory_of(path)
    is_from_file = "testbed" not in keys.values
    if is_from_file:
        _refuse_chosen(checked, options, path)
    if options.is_resumed and options.out is None:
        if directory is None:
            raise StudyError(
                f"{path} is an archive, in which nothing can be continued",
                f"unpack it first, as with `iolab archive --extract {quote(str(path))} --out DIR`, "
                "then `iolab run DIR --resume`",
            )
        # Its device was confirmed when it began; the serial or the marker on it is asked again.
        options, is_from_file = replace(options, out=directory), False
    return public_study(checked, is_testbed_from_file=is_from_file), options
