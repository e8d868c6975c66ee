"""A/A studies: the same treatment under two labels, and what that says about a testbed.

A study like any other, planned, run, stored and resumed by the same code: its compared factor is
`label`, whose levels change nothing. Afterwards the testbed's calibration is computed and kept for
`iolab plan`. With a pause a third label waits after each operation: a slow-down of known size that
must be found.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import IolabError, StudyError
from iolab.frozen import frozen, replace
from iolab.library import calibrations
from iolab.library.conducted import RunOptions
from iolab.library.flag_words import Levels, StudyWords, factor_flags
from iolab.library.services import Services
from iolab.library.study import Study, checked_study, is_testbed_from_file, public_study
from iolab.run import outputs
from iolab.store.db import STORE_NAME, Store
from iolab.store.users_files import Allowed, refuse_foreign_results, write_results
from iolab.study.factors import DELAY_PREFIX, find_factor
from iolab.study.model import Factor, MixedWorkload
from iolab.study.validity import PAIRS
from iolab.testbed.model import Testbed, make_testbed
from iolab.wording import counted, is_or_are

if TYPE_CHECKING:
    from iolab.stats.calibration import Calibration
    from iolab.stats.noise_by_length import ErrorOfLength

ROUNDS: Final = 20
ROUNDS_MIN: Final = 4
"""Fewer tell no spread; `iolab.stats.calibration` refuses them as well."""
PAUSE_MAX_NS: Final = 100_000_000
"""The longest pause after an operation: a trial of two seconds still has twenty of them."""
STUDIES_WANTED: Final = 4
"""Fewer studies of the planned size say nothing of how often one errs."""
PROBED_RECORD_SIZE: Final = "4k"
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


def noise_study(words: StudyWords, pause: str | None) -> Study:
    """The A/A study that the words describe.

    Parameters
    ----------
    words : keys, levels and workload, each factor at one level. A study file as the workload gives
        its first workload, its settings and the first level of each factor. Without a workload and
        without what belongs to IOzone's tests, 4 KiB are read at random places.
    pause : time after each operation of a third label, as in ``20us``; None has no such label.

    Raises
    ------
    StudyError : the words make no study, or its noise could not be known.
    """
    labels = (*_LABELS, *([_delay_label(pause)] if pause else []))
    if (
        not {"rounds", "budget"} & set(words.keys.values)
        and words.keys.values.get("design") != PAIRS
    ):
        keys = replace(words.keys, values={**words.keys.values, "rounds": ROUNDS})
        words = replace(words, keys=keys)
    if len(words.workloads) > 1:
        raise StudyError(
            f"an A/A study has one workload, not {len(words.workloads)}", "give --workload once"
        )
    if words.workloads and _is_study(Path(words.workloads[0])):
        study = _of_study(Path(words.workloads[0]), words, labels)
    elif "testbed" not in words.keys.values:
        raise IolabError("--on is missing", "say where, as in --on loop:1g")
    else:
        study = words.keys.checked(_table(words, labels))
    _check_rounds(study)
    return study


def _table(words: StudyWords, labels: Sequence[str]) -> dict[str, object]:
    """The study as a study file would give it: what is typed is held, the labels are compared."""
    factors, workloads = words.factors_and_workloads()
    if not words.workloads and words.tests is None and not words.has_pattern:
        factors.pop("record_size", None)
        workloads = [dict(_PROBE)]
    elif not words.levels.get("record_size") and "record_size" in factors:
        factors["record_size"] = PROBED_RECORD_SIZE
    held = {name: _only(name, levels) for name, levels in factors.items()}
    whole: dict[str, object] = {"factors": {"label": list(labels)}, "settings": held}
    return {"name": "aa", "workloads": workloads, **whole, **words.keys.values}


def _only(name: str, levels: Levels) -> object:
    """The one level of a flag.

    Raises
    ------
    StudyError : it has several.
    """
    several = levels if isinstance(levels, list) else levels.replace("..", ",").split(",")
    if len(several) == 1:
        return levels if isinstance(levels, str) else several[0]
    raise StudyError(
        f"{find_factor(name).flag} has {len(several)} levels, an A/A study one treatment",
        "give one level; `iolab compare` compares several",
    )


def _is_study(path: Path) -> bool:
    """Tell whether a file describes a study, and not only a workload."""
    try:
        return "workloads" in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def _of_study(path: Path, words: StudyWords, labels: tuple[str, ...]) -> Study:
    """The first workload of a study file, at the first level of each factor."""
    given = [row.flag for row in factor_flags() if words.levels.get(row.name)]
    given += ["--knob"] if words.knobs else []
    if given:
        raise StudyError(
            f"{given[0]}: {path} is a study, which says its levels itself",
            "change them there, or name a workload: `iolab workloads`",
        )
    loaded = words.keys.load(path)
    asked = checked_study(loaded)
    first = [(factor.name, factor.levels[0]) for factor in asked.factors]
    checked = replace(
        asked,
        name=f"aa-{asked.name}"[:64],
        factors=(Factor("label", labels),),
        settings=tuple(sorted([*asked.settings, *first])),
        workloads=asked.workloads[:1],
        compared_factor="label",
        baseline=_LABELS[0],
        looks=None,
        width=None,
        rounds=asked.rounds if "rounds" in words.keys.values else None,
        seed=asked.seed if "seed" in words.keys.values else None,
    )
    return public_study(checked, is_testbed_from_file=is_testbed_from_file(loaded))


def lacking(study: Study, n_planned: int) -> list[str]:
    """Limits of this A/A study, and how to remove them: told before it runs."""
    checked, found = checked_study(study), list[str]()
    if len(checked.factors[0].levels) == len(_LABELS):
        is_stream = isinstance(checked.workloads[0], MixedWorkload)
        how = "--inject 20us plants one" if is_stream else "a workload of streams can plant one"
        found.append(f"nothing shows that a difference would be found: {how}")
    if checked.rounds is not None and checked.rounds < STUDIES_WANTED * n_planned:
        n_studies = checked.rounds // n_planned
        found.append(
            f"{counted(checked.rounds, 'round')} make {counted(n_studies, 'study', 'studies')} of"
            f" {n_planned}, which tell little of false positives:"
            f" --rounds {STUDIES_WANTED * n_planned}"
        )
    if checked.design != PAIRS:
        found.append(
            "it measures whole trials; the noise of alternating slices is another: --design pairs"
        )
    return found


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
    """Options of its run: in a directory that is named."""
    out_dir: Path
    testbed: Testbed
    allowed: Allowed
    design: str
    """Of the study: noise of slices is kept apart from that of trials."""

    @classmethod
    def prepared(cls, study: Study, options: RunOptions) -> NoiseRun:
        """Choose the directory, and make sure that the result may be written.

        Raises
        ------
        RefusedError : a result is there that iolab did not make.
        """
        choose = outputs.latest_directory if options.is_resumed else outputs.fresh_directory
        out_dir = options.out or choose(study.name, options.root)
        allowed = Allowed.of(options.overwrite)
        request = checked_study(study).testbed
        testbed = make_testbed(request.kind, request.argument, dict(request.options))
        reports = outputs.reports_in(out_dir)
        design = checked_study(study).design or ""
        kept = calibrations.file_of(testbed, design)
        allowed.refuse_useless([*reports, out_dir / RESULT_NAME, kept])
        refuse_foreign_results(out_dir, [RESULT_NAME], allowed)
        calibrations.check(testbed, allowed, design)
        options = replace(
            options,
            out=out_dir,
            overwrite=tuple(str(path) for path in reports if allowed.has(path)),
            continued_by="the same command and --resume",
        )
        return cls(options, out_dir, testbed, allowed, design)

    def evaluated(
        self, n_planned: int, services: Services
    ) -> tuple[Calibration, list[ErrorOfLength], Path]:
        """Evaluate the stored trials.

        Returns
        -------
        tuple : the result; the standard error by length of slice, if there are slices; the file
            that keeps the result for plans.

        Parameters
        ----------
        n_planned : rounds of the studies that rates are given for.
        services : the statistics.

        Raises
        ------
        AnalysisError : the trials are too few.
        """
        from iolab.stats.calibration import calibrate
        from iolab.stats.noise_by_length import error_of_equal_labels

        with Store.open_reader(self.out_dir / STORE_NAME) as store:
            data = store.load_data()
        result = calibrate(data, services.judge(data), planned_rounds=n_planned)
        found, place = result.to_dict(), (self.testbed, self.allowed)
        now_ns = time.time_ns()
        kept = calibrations.save(place, found, self.out_dir, now_ns=now_ns, design=self.design)
        text = json.dumps(found, indent=2) + "\n"
        write_results(self.out_dir, {RESULT_NAME: text.encode()}, self.allowed)
        return result, error_of_equal_labels(data), kept
