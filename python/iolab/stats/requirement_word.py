"""Word about a published requirement: PASS, FAIL or UNDECIDED, from rounds of measurements.

A limit is met if the whole 95 % interval of the quantity lies on its good side, missed if the whole
interval lies on the other, and undecided in between. A requirement with several limits is met if
all of them are and missed if one is; the intervals of k limits have a confidence of 1 - 5 % / k
each (Bonferroni), so that a wrong word comes in 5 % of checks at most. What speaks against a word
whatever was measured (files in memory, a busy processor) turns it into UNDECIDED: see `Obstacle`.

Left out: anything that one minute does not show, such as stalls that come once an hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from iolab.frozen import frozen
from iolab.stats.round_percentile import RoundEstimate, mean_of_rounds, percentile_of_rounds
from iolab.study.requirements.requirement import Criterion, Requirement
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.protocol import Histogram

CheckWord: TypeAlias = Literal["PASS", "FAIL", "UNDECIDED"]
ERROR: Final = 0.05
"""Share of checks with a wrong word, at most."""
ROUNDS_MIN: Final = 4
"""Fewer rounds tell too little of how much rounds differ."""


@frozen
class MeasuredPhase:
    """Work of one phase in one round."""

    elapsed_ns: int
    reads: int
    writes: int
    written_bytes: int
    flushes: Histogram | None


@frozen
class Obstacle:
    """Reason why one of the words cannot be said."""

    code: str
    forbids: tuple[CheckWord, ...]
    text: str
    """Clause, as in ``files there lie in memory``."""
    hint: str

    @property
    def sentence(self) -> str:
        """The clause, and what to do about it."""
        return f"{self.text}; {self.hint}"


@frozen
class JudgedCriterion:
    """One quantity as measured, and its word."""

    criterion: Criterion
    estimate: RoundEstimate | None
    """None if nothing of it was measured."""
    level: float
    """Confidence of its interval."""
    word: CheckWord | None
    """None if nobody published a limit."""
    reason: str
    """Reason of UNDECIDED; else empty."""


@frozen
class JudgedRequirement:
    """A requirement with its word, and the criteria that it follows from."""

    requirement: Requirement
    word: CheckWord | None
    """None if nobody published a limit."""
    criteria: tuple[JudgedCriterion, ...]


def judge_requirement(
    requirement: Requirement,
    rounds: Sequence[dict[str, MeasuredPhase]],
    obstacles: Sequence[Obstacle] = (),
) -> JudgedRequirement:
    """Judge the rounds of a check.

    Parameters
    ----------
    requirement : what is asked.
    rounds : shape (k,); the phases of each complete round by their names.
    obstacles : what forbids a word.

    Returns
    -------
    JudgedRequirement : its word is that of the criteria: one FAIL is FAIL, all PASS are PASS.
    """
    n_limits = sum(criterion.limit is not None for criterion in requirement.criteria)
    level = 1 - ERROR / max(1, n_limits)
    judged = tuple(
        _judge(criterion, rounds, level, obstacles) for criterion in requirement.criteria
    )
    words: list[CheckWord] = [one.word for one in judged if one.word is not None]
    return JudgedRequirement(requirement, _joined(words), judged)


def _joined(words: Sequence[CheckWord]) -> CheckWord | None:
    if not words:
        return None
    if "FAIL" in words:
        return "FAIL"
    return "PASS" if set(words) == {"PASS"} else "UNDECIDED"


def _judge(
    criterion: Criterion,
    rounds: Sequence[dict[str, MeasuredPhase]],
    level: float,
    obstacles: Sequence[Obstacle],
) -> JudgedCriterion:
    phases = [one[criterion.operation] for one in rounds if criterion.operation in one]
    estimate = _estimate(criterion, phases, level)
    if criterion.limit is None:
        return JudgedCriterion(criterion, estimate, level, None, "")
    if estimate is None:
        return JudgedCriterion(criterion, None, level, "UNDECIDED", "nothing was measured")
    word, reason = _word(criterion, estimate)
    for obstacle in obstacles:
        if word in obstacle.forbids:
            return JudgedCriterion(criterion, estimate, level, "UNDECIDED", obstacle.sentence)
    return JudgedCriterion(criterion, estimate, level, word, reason)


def _word(criterion: Criterion, estimate: RoundEstimate) -> tuple[CheckWord, str]:
    """The word, and the reason where it is UNDECIDED."""
    limit = criterion.limit
    assert limit is not None, "words are about limits"
    if estimate.n_rounds < ROUNDS_MIN:
        rounds = counted(estimate.n_rounds, "complete round")
        return "UNDECIDED", f"{rounds} of at least {ROUNDS_MIN}; give it more time (--time 5m)"
    if criterion.is_upper:
        is_met, is_missed = estimate.high < limit, estimate.low >= limit
    else:
        is_met, is_missed = estimate.low >= limit, estimate.high < limit
    if is_met:
        return "PASS", ""
    if is_missed:
        return "FAIL", ""
    return "UNDECIDED", "the limit lies within the interval; more time narrows it (--time 5m)"


def _estimate(
    criterion: Criterion, phases: Sequence[MeasuredPhase], level: float
) -> RoundEstimate | None:
    """Value and interval of a criterion's quantity; None if no round has it."""
    if criterion.quantity == "flush_ns_p99":
        filled = [one.flushes for one in phases if one.flushes is not None]
        filled = [one for one in filled if one["count"]]
        return percentile_of_rounds(filled, 0.99, level=level) if filled else None
    counts = [(_count(criterion, one), one.elapsed_ns) for one in phases if one.elapsed_ns > 0]
    if not counts:
        return None
    rates = [count / (elapsed_ns / 1e9) for count, elapsed_ns in counts]
    n_ops = sum(_operations(criterion, one) for one in phases)
    return mean_of_rounds(rates, n_ops, level=level)


def _count(criterion: Criterion, phase: MeasuredPhase) -> int:
    if criterion.quantity == "write_bytes_per_s":
        return phase.written_bytes
    return _operations(criterion, phase)


def _operations(criterion: Criterion, phase: MeasuredPhase) -> int:
    if criterion.quantity == "flushes_per_s":
        return phase.flushes["count"] if phase.flushes is not None else 0
    return phase.reads if criterion.quantity == "reads_per_s" else phase.writes
