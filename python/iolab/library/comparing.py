"""Two stored studies compared cell by cell, gated, or one held against rules of benchmarking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from iolab.errors import IolabError
from iolab.frozen import frozen, replace
from iolab.library.services import Services
from iolab.library.tables import TableWords, read_study
from iolab.stats.diff import StudyDiff, as_sessions, compare_studies, diff_of_levels
from iolab.stats.gate import GateResult
from iolab.stats.gate import gate as gated
from iolab.stats.judge import judge
from iolab.stats.rules import check_rules
from iolab.study.metric_names import parse_metric
from iolab.visible import visible_line

if TYPE_CHECKING:
    from iolab.stats.rules import RuleAnswer
    from iolab.store.rows import StudyData

_NOTE_MAX = 200
_DIFFERENCES_SHOWN = 3
Note: TypeAlias = Callable[[str], None]


def diff_studies(before: str, after: str, words: TableWords, note: Note) -> StudyComparison:
    """Compare two studies.

    Parameters
    ----------
    before, after : results directories, archives or tables, as they are to be called.
    words : how a table is to be read, and the smallest difference that matters.
    note : hears of what an archive says of itself.

    Raises
    ------
    IolabError : there is no study, or the two cannot be compared.
    """
    words.refuse_in_vain([before, after])
    first, second = (read_study(Path(path), words, note) for path in (before, after))
    diff = compare_studies(first, second, margin=words.margin_share)
    return StudyComparison(replace(diff, before=before, after=after))


@frozen
class StudyComparison:
    """Everything that two studies say about each other."""

    diff: StudyDiff

    def text(self, width: int = 80) -> str:
        """As `iolab diff` prints it, in lines of `width` columns."""
        from iolab.report.diff_text import diff_text

        return diff_text(self.diff, width)

    def markdown(self) -> str:
        """As Markdown, for a pull request."""
        from iolab.report.diff_text import diff_markdown

        return diff_markdown(self.diff)


@frozen
class Gated:
    """Answer of a gate: is a study worse than a baseline?."""

    diff: StudyDiff
    result: GateResult
    notes: tuple[str, ...] = ()
    """Differences around the two."""

    def text(self, width: int = 80) -> str:
        """One line per cell and a summary, in lines of `width` columns."""
        from iolab.report.diff_text import gate_text

        return gate_text(self.diff, self.result, width)


@frozen
class GateQuestion:
    """Question of a gate: the metric that must not be worse, and the baseline.

    Parameters
    ----------
    before, after : the sessions of the baseline and of the new study: directories, archives or
        tables.
    words : how a table is to be read, and the smallest difference that matters.
    metrics : names, or short ones, separated by commas; empty is the throughput.
    are_runs_sessions : whether every round was a session of its own, as in nightly runs.
    is_other_machine_allowed : compare although the two ran on different machines.
    """

    before: Sequence[str]
    after: Sequence[str]
    words: TableWords
    metrics: str = ""
    are_runs_sessions: bool = False
    is_other_machine_allowed: bool = False


def gate_studies(asked: GateQuestion, note: Note) -> Gated:
    """Decide for every cell of two studies whether the second is worse.

    Raises
    ------
    IolabError : there is no study, a metric was not measured by both, or they ran on different
        machines.
    """
    metrics = _metrics(asked.metrics)
    asked.words.refuse_in_vain([*asked.before, *asked.after])
    sides = [
        as_sessions([read_study(Path(path), asked.words, note) for path in side])
        for side in (asked.before, asked.after)
    ]
    _refuse_unmeasured(metrics, sides)
    sessions = (len(asked.before), len(asked.after))
    if asked.are_runs_sessions:
        rounds = [len({m.round for m in data.measurements}) for data in sides]
        sessions = (rounds[0], rounds[1])
    margin = asked.words.margin_share
    diff = compare_studies(
        *sides, margin=margin, metrics=metrics, roles=("primary",), sessions=sessions
    )
    if diff.machines and not asked.is_other_machine_allowed:
        raise _other_machine(diff, asked.before[0], asked.after[0])
    return Gated(diff, gated(diff), tuple(_notes(diff)))


def gate_levels(path: str, metrics: str, words: TableWords, note: Note) -> Gated:
    """Decide for the levels of one study, interleaved in one session, against its own baseline.

    Raises
    ------
    IolabError : there is no study, or several metrics are named.
    """
    asked = _metrics(metrics)
    words.refuse_in_vain([path])
    if len(asked) > 1:
        raise IolabError("one study is gated by one metric", f"choose one of {', '.join(asked)}")
    data = read_study(Path(path), words, note)
    study = replace(data.study, margin=words.margin_share)
    study = replace(study, metric=asked[0]) if asked else study
    diff = diff_of_levels(judge(replace(data, study=study)), study.name)
    return Gated(diff, gated(diff))


def rules_of(
    path: str, words: TableWords, means: Services, note: Note
) -> tuple[str, list[RuleAnswer]]:
    """Name of a study, and what Hoefler and Belli's twelve rules say of it.

    Raises
    ------
    IolabError : there is no study.
    """
    words.refuse_in_vain([path])
    data = read_study(Path(path), words, note)
    return data.study.name, check_rules(data, means.judge(data))


def _metrics(text: str) -> tuple[str, ...]:
    """Metrics by their names or short ones, as every other command takes them."""
    try:
        names = [parse_metric(name) for name in text.split(",") if name.strip()]
    except ValueError as error:
        raise IolabError(f"--metric: {error}", "as in --metric p99,throughput") from None
    return tuple(dict.fromkeys(names))


def _refuse_unmeasured(metrics: Sequence[str], sides: Sequence[StudyData]) -> None:
    measured = [{m.metric for m in data.measurements} for data in sides]
    shared = set.intersection(*measured)
    for name in metrics:
        if name not in shared:
            raise IolabError(
                f"--metric: {name} was not measured by both studies",
                f"both have {', '.join(sorted(shared)) or 'nothing in common'}",
            )


def _other_machine(diff: StudyDiff, before: str, after: str) -> IolabError:
    first = diff.machines[0]
    if diff.has_other_kinds:
        return IolabError(
            f"{before} is {first.before}, {after} is {first.after}: a difference would be that of"
            " a model from something measured",
            "gate a simulated study against a simulated one; --allow-other-machine compares them"
            " nevertheless",
        )
    told = visible_line(f"{first.name}: {first.before} -> {first.after}")[:_NOTE_MAX]
    return IolabError(
        f"the two studies ran on different machines ({told}): a difference would be that of"
        " machines",
        "gate on one machine, or insist with --allow-other-machine; `iolab diff` tells all",
    )


def _notes(diff: StudyDiff) -> list[str]:
    from iolab.report.diff_text import OTHER_KINDS

    found = [OTHER_KINDS] if diff.has_other_kinds else []
    found += [
        visible_line(f"{difference.name}: {difference.before} -> {difference.after}")[:_NOTE_MAX]
        for difference in diff.environment[:_DIFFERENCES_SHOWN]
    ]
    more = len(diff.environment) - _DIFFERENCES_SHOWN
    return [*found, f"{more} more differences: see iolab diff"] if more > 0 else found
