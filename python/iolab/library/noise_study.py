"""A/A studies: the same treatment under two labels, and what that says about a testbed.

A study like any other, planned, run, stored and resumed by the same code: its compared factor is
`label`, whose levels change nothing. Afterwards the testbed's calibration is computed and kept for
`iolab plan`. With a pause a third label waits after each operation: a slow-down of known size that
must be found.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import IolabError, StudyError
from iolab.frozen import frozen
from iolab.library import calibrations
from iolab.library.conducted import RunOptions
from iolab.library.flag_words import StudyKeys
from iolab.library.services import Services
from iolab.library.study import Study, checked_study, is_testbed_from_file, public_study
from iolab.run import outputs
from iolab.store.db import STORE_NAME, Store
from iolab.store.users_files import Allowed, refuse_foreign_results, write_results
from iolab.study.factors import DELAY_PREFIX
from iolab.study.model import Factor
from iolab.testbed.model import Testbed, make_testbed
from iolab.wording import counted, is_or_are

if TYPE_CHECKING:
    from iolab.stats.calibration import Calibration

ROUNDS: Final = 20
ROUNDS_MIN: Final = 4
"""Fewer tell no spread; `iolab.stats.calibration` refuses them as well."""
PAUSE_MAX_NS: Final = 100_000_000
"""The longest pause after an operation: a trial of two seconds still has twenty of them."""
RESULT_NAME: Final = "aa.json"
_PLANNED_ROUNDS_MAX: Final = 1000
_LABELS: Final = ("A", "B")
_PROBE: Final = {
    "name": "probe",
    "kind": "mixed",
    "duration": "2s",
    "streams": [
        {
            "name": "reader",
            "direction": "read",
            "pattern": "uniform",
            "record_size": "4k",
            "depth": 1,
            "workers": 1,
            "file_size": "64m",
        }
    ],
}


def noise_study(keys: StudyKeys, workload: Path | None, pause: str | None) -> Study:
    """The A/A study that the words describe.

    Parameters
    ----------
    keys : top-level keys of a study file; without rounds and budget there are `ROUNDS`.
    workload : study file of which the first workload, the settings and the first levels are taken;
        None reads 4 KiB at random places.
    pause : time after each operation of a third label, as in ``20us``; None has no such label.

    Raises
    ------
    StudyError : the words make no study, or its noise could not be known.
    """
    labels: list[str] = [*_LABELS, *([_delay_label(pause)] if pause else [])]
    are_rounds_asked = "rounds" in keys.values
    if not are_rounds_asked and "budget" not in keys.values:
        keys, are_rounds_asked = replace(keys, values={**keys.values, "rounds": ROUNDS}), True
    if workload is None:
        if "testbed" not in keys.values:
            raise IolabError("--on is missing", "say where, as in --on loop:1g")
        whole: dict[str, object] = {
            "name": "aa",
            "factors": {"label": labels},
            "workloads": [_PROBE],
            **keys.values,
        }
        study = keys.checked(whole)
        _check_rounds(study)
        return study
    if not workload.is_file():
        raise StudyError(
            f"--workload {workload}: there is no such file",
            "name a study file; without it random reads of 4k are measured",
        )
    loaded = keys.load(workload)
    asked = checked_study(loaded)
    first = [(factor.name, factor.levels[0]) for factor in asked.factors]
    checked = replace(
        asked,
        name=f"aa-{asked.name}"[:64],
        factors=(Factor("label", tuple(labels)),),
        settings=tuple(sorted([*asked.settings, *first])),
        workloads=asked.workloads[:1],
        compared_factor="label",
        baseline=_LABELS[0],
        looks=None,
        width=None,
        rounds=asked.rounds if are_rounds_asked else None,
        seed=asked.seed if "seed" in keys.values else None,
    )
    study = public_study(checked, is_testbed_from_file=is_testbed_from_file(loaded))
    _check_rounds(study)
    return study


def planned_rounds(text: str) -> int:
    """Rounds of the studies that rates are given for, as typed.

    Raises
    ------
    IolabError : not a number from 2 to 1000.
    """
    if not text.isdecimal() or not 2 <= int(text) <= _PLANNED_ROUNDS_MAX:
        raise IolabError(f"--for-rounds {text} is not a number from 2 to 1000", "as in 5")
    return int(text)


def _check_rounds(study: Study) -> None:
    """Refuse what could not be evaluated at its end; a budget admits what it admits."""
    if study.rounds is not None and study.rounds < ROUNDS_MIN:
        raise StudyError(
            f"{counted(study.rounds, 'round')} {is_or_are(study.rounds)} too few to measure noise",
            f"use at least {ROUNDS_MIN}, better {ROUNDS} (--rounds {ROUNDS})",
        )


def _delay_label(text: str) -> str:
    try:
        pause_ns = units.parse_duration_ns(text)
    except ValueError:
        raise StudyError(
            f"--inject {text}: this is not a pause",
            "write a number above 0 and its unit, as in --inject 20us or --inject 1ms",
        ) from None
    if pause_ns > PAUSE_MAX_NS:
        raise StudyError(
            f"--inject {text}: trials would consist of the pause and next to no operation",
            f"pause {units.format_duration(PAUSE_MAX_NS)} at most, as in --inject 20us",
        )
    return f"{DELAY_PREFIX}{units.format_duration(pause_ns)}"


@frozen
class NoiseRun:
    """An A/A study that is about to run, and where its result will be kept."""

    options: RunOptions
    """How it is run: in a directory that is named."""
    out_dir: Path
    testbed: Testbed
    allowed: Allowed

    @classmethod
    def prepared(cls, study: Study, options: RunOptions) -> NoiseRun:
        """Choose the directory, and make sure that the result may be written.

        Raises
        ------
        RefusedError : a result is there that iolab did not make.
        """
        choose = outputs.latest_directory if options.is_resumed else outputs.fresh_directory
        out_dir = options.out or choose(study.name)
        allowed = Allowed.of(options.overwrite)
        request = checked_study(study).testbed
        testbed = make_testbed(request.kind, request.argument, dict(request.options))
        reports = outputs.reports_in(out_dir)
        kept = calibrations.file_of(testbed)
        allowed.refuse_useless([*reports, out_dir / RESULT_NAME, kept])
        refuse_foreign_results(out_dir, [RESULT_NAME], allowed)
        calibrations.check(testbed, allowed)
        options = replace(
            options,
            out=out_dir,
            overwrite=tuple(str(path) for path in reports if allowed.has(path)),
            continued_by="the same command and --resume",
        )
        return cls(options, out_dir, testbed, allowed)

    def evaluated(self, n_planned: int, services: Services) -> tuple[Calibration, Path]:
        """Evaluate the stored trials; returns the result, and the file that keeps it for plans.

        Parameters
        ----------
        n_planned : rounds of the studies that rates are given for.
        services : the statistics.

        Raises
        ------
        AnalysisError : the trials are too few.
        """
        from iolab.stats.calibration import calibrate

        with Store.open_reader(self.out_dir / STORE_NAME) as store:
            data = store.load_data()
        result = calibrate(data, services.judge(data), planned_rounds=n_planned)
        found, place = result.to_dict(), (self.testbed, self.allowed)
        kept = calibrations.save(place, found, self.out_dir, now_ns=time.time_ns())
        text = json.dumps(found, indent=2) + "\n"
        write_results(self.out_dir, {RESULT_NAME: text.encode()}, self.allowed)
        return result, kept
