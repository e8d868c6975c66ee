"""One verdict over hosts: the same study, measured on each, judged with the host as the unit.

A host is drawn from the hosts that one has, so the effect there has a part of its own beside the
noise of its rounds (a random effect). Rounds of a host are averaged, and the interval is Student's
over the hosts' means: it holds for other hosts of the kind, whatever their own noise is, and
narrows with hosts, not with rounds. Hosts are blocks, as rounds are in a study: absolute values of
different hosts never meet.

A host stands apart if its effect differs from that of the others by more than the margin and by
more than the rounds on both sides explain (Welch's test; the most distant host first, without those
found before, at alpha over the number of hosts that are left). It stays in the mean, and is named.
Another host is expected within mean +- t(k - 1) sd sqrt(1 + 1/k). Left out: weights by noise, which
gain little where all hosts run as many rounds (Hartung and Knapp 2001, Statistics in Medicine
20(12)); clusters of hosts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, cast

from iolab.errors import AnalysisError
from iolab.frozen import frozen, replace
from iolab.stats.diff import as_sessions, other_machines
from iolab.stats.judge import judge
from iolab.stats.methods.student import estimate_mean, t_quantile
from iolab.stats.methods.verdict_rule import OPEN_WORDS, Word
from iolab.stats.methods.welch import estimate_difference
from iolab.stats.verdict import Comparison, Interval, StudyVerdict, to_plain
from iolab.store.rows import StudyData, StudyRow

HOSTS_MIN: Final = 2
_ALPHA: Final = 0.05


@frozen
class NamedHost:
    """Study of one host."""

    name: str
    data: StudyData


@frozen
class HostEffect:
    """One level against the baseline on one host."""

    host: str
    ratio: float | None
    """Geometric mean over its rounds, oriented (above 1 = better); None without a round."""
    interval_95: Interval | None
    """Over its rounds; None below two."""
    rounds: int
    word: Word
    """Verdict of this host's rounds alone."""
    is_apart: bool = False
    others_ratio: float | None = None
    """For a host that stands apart: geometric mean over the hosts it was compared with."""


@frozen
class FleetComparison:
    """One level against the baseline over all hosts."""

    comparison: Comparison
    """Rounds in it are hosts."""
    hosts: tuple[HostEffect, ...]
    next_host: Interval | None
    """95 % interval of the ratio that another host would show; None below three hosts."""


@frozen
class FleetVerdict:
    """Answer of a fleet."""

    verdict: StudyVerdict
    hosts: tuple[str, ...]
    comparisons: tuple[FleetComparison, ...]
    are_told_apart: bool
    """True if stored facts say that not all hosts are one and the same machine."""

    @property
    def is_open(self) -> bool:
        """True if it does not say which level to take."""
        return self.verdict.headline_word in OPEN_WORDS

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return cast("dict[str, object]", to_plain(self))


def judge_fleet(hosts: Sequence[NamedHost], margin: float | None = None) -> FleetVerdict:
    """Judge one study that several hosts have run.

    Parameters
    ----------
    hosts : at least two, in the order in which they are told.
    margin : smallest relative difference that matters; None is that of the first host's study.

    Raises
    ------
    AnalysisError : there are too few, they are not the same study, or compare nothing.
    """
    if len(hosts) < HOSTS_MIN:
        raise AnalysisError("one host is no fleet", "name the studies of two hosts at least")
    first = hosts[0].data.study
    _twice(hosts)
    for one in hosts:
        _check(hosts[0], one)
    wanted = margin if margin is not None else first.margin
    datas = [replace(one.data, study=replace(one.data.study, margin=wanted)) for one in hosts]
    alone = [judge(data) for data in datas]
    whole = judge(as_sessions(datas), unit="host")
    rows = tuple(_row(c, hosts, alone, wanted) for c in whole.headline)
    are_told_apart = any(other_machines(hosts[0].data, one.data) for one in hosts[1:])
    return FleetVerdict(whole, tuple(one.name for one in hosts), rows, are_told_apart)


def _check(first: NamedHost, one: NamedHost) -> None:
    """Refuse a study that is not that of the first host."""
    if not one.data.study.is_comparison:
        raise AnalysisError(
            f"{one.name} compares nothing", "a fleet is asked about levels of a factor"
        )
    if one.data.study.kind == "imported":
        raise AnalysisError(
            f"{one.name} is an imported table", "a fleet is made of studies that iolab ran"
        )
    for name, told in _what(one.data.study).items():
        asked = _what(first.data.study)[name]
        if told != asked:
            raise AnalysisError(
                f"{one.name} and {first.name} are not one study: {name} {told} in {one.name},"
                f" {asked} in {first.name}",
                "run one study file on all hosts; `iolab diff` compares two of them",
            )


def _what(study: StudyRow) -> dict[str, str]:
    """Parts of a study that all hosts must share."""
    return {
        "kind": study.kind,
        "factor": study.compared_factor,
        "baseline": study.baseline,
        "levels": "; ".join(f"{f} {', '.join(levels)}" for f, levels in study.factors.items()),
        "workloads": ", ".join(study.workloads),
        "metric": study.metric_of or "of all streams",
    }


def _twice(hosts: Sequence[NamedHost]) -> None:
    """Refuse a study that is named twice: it would count as two hosts.

    Raises
    ------
    AnalysisError : two are one.
    """
    seen: dict[str, str] = {}
    for one in hosts:
        earlier = seen.setdefault(one.data.study.study_id, one.name)
        if earlier != one.name:
            raise AnalysisError(
                f"{one.name} is the same study as {earlier}", "name each host's study once"
            )


def _row(
    c: Comparison, hosts: Sequence[NamedHost], alone: Sequence[StudyVerdict], margin: float
) -> FleetComparison:
    found = [_of_host(c, verdict) for verdict in alone]
    logs = [
        [math.log(ratio) for ratio in one.round_ratios.values()] if one is not None else []
        for one in found
    ]
    apart = _apart(logs, math.log1p(margin))
    effects = tuple(
        HostEffect(
            host=host.name,
            ratio=one.effect.ratio if one is not None else None,
            interval_95=one.effect.interval_95 if one is not None else None,
            rounds=one.rounds_used if one is not None else 0,
            word=one.effect.word if one is not None else "undecided",
            is_apart=place in apart,
            others_ratio=apart.get(place),
        )
        for place, (host, one) in enumerate(zip(hosts, found, strict=True))
    )
    return FleetComparison(c, effects, _next_host(list(c.round_ratios.values())))


def _of_host(c: Comparison, verdict: StudyVerdict) -> Comparison | None:
    key = (c.group, c.metric, c.level)
    return next((o for o in verdict.pooled if (o.group, o.metric, o.level) == key), None)


def _next_host(ratios: Sequence[float]) -> Interval | None:
    """Interval of the ratio of a host that was not measured."""
    estimate = estimate_mean([math.log(ratio) for ratio in ratios]) if ratios else None
    if estimate is None or estimate.sd is None or estimate.n < 3:
        return None
    half = t_quantile(0.975, estimate.n - 1) * estimate.sd * math.sqrt(1 + 1 / estimate.n)
    return Interval(math.exp(estimate.mean - half), math.exp(estimate.mean + half), 0.95)


def _apart(logs: Sequence[Sequence[float]], edge: float) -> dict[int, float]:
    """Hosts that stand apart, with the ratio of those they were compared with."""
    left = [place for place, rounds in enumerate(logs) if len(rounds) > 1]
    found: dict[int, float] = {}
    # Half of the hosts cannot be the exception.
    while len(left) > 2 and len(found) < len(logs) // 2:
        tests = {place: _against(logs, place, left) for place in left}
        far = [
            place
            for place, (p, distance, _) in tests.items()
            if p <= _ALPHA / len(left) and abs(distance) > edge
        ]
        if not far:
            break
        place = max(far, key=lambda at: abs(tests[at][1]))
        others = tests[place][2]
        found[place] = math.exp(others)
        left.remove(place)
    return found


def _against(
    logs: Sequence[Sequence[float]], place: int, left: Sequence[int]
) -> tuple[float, float, float]:
    """P that a host is like the others, its distance, and their mean."""
    others = [at for at in left if at != place]
    means = [math.fsum(logs[at]) / len(logs[at]) for at in others]
    middle = math.fsum(means) / len(means)
    # Rounds of the others about their own host's mean: what differs between hosts is the question.
    rest = [
        middle + value - mean for at, mean in zip(others, means, strict=True) for value in logs[at]
    ]
    estimate = estimate_difference(list(logs[place]), rest)
    p = estimate.p_value()
    return (1.0 if p is None else p), estimate.mean, middle
