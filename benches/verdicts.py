"""How often verdicts are wrong: whole simulated studies with known truth, through the real code.

Each session is a study made by `make_plan` (its own random order), values made up along that order,
and judged by `judge`. The noise is ln-normal with sd 2 %, AR(1) with phi .6, a drift of 5 % over
the session and one trial in twenty 15 % too slow. The same noise is also judged the naive way:
AAAAABBBBB and Welch's t test. The number of rounds for the power row is planned as `iolab plan`
does it, from an A/A study of 20 rounds in the same world.

``make bench-verdicts``, or ``python benches/verdicts.py [--sessions N]``; exits 1 if a bound is
missed.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from iolab.stats.judge import judge
from iolab.stats.methods.effect_size import clopper_pearson
from iolab.stats.methods.student import estimate_mean, spread_bound
from iolab.stats.methods.verdict_rule import SPREAD_CONFIDENCE
from iolab.stats.planning import Noise, needed
from iolab.stats.verdict import Comparison
from iolab.store.rows import Measurement, StudyData, StudyRow, TrialRow
from iolab.study.load import parse_study
from iolab.study.plan import Plan, make_plan

SD = 0.02
PHI = 0.6
DRIFT = 0.05
OUTLIER_SHARE = 0.05
OUTLIER_SIZE = 0.15
MARGIN = 0.05
ROUNDS = 8
PILOT_ROUNDS = 20
STUDY = """
name = "bench"
testbed = "loop:1g"
rounds = 8
margin = "5%"
[factors]
scheduler = ["none", "bfq"]
[[workloads]]
name = "iozone"
kind = "iozone"
tests = ["read"]
file_size = "16m"
"""


@dataclass(frozen=True)
class World:
    """What the machine of a session is like."""

    name: str
    phi: float = 0.0
    drift: float = 0.0
    outliers: float = 0.0


WORLDS = (
    World("independent"),
    World("drift 5 %", drift=DRIFT),
    World("AR(1) .6", phi=PHI),
    World("drift + AR(1)", PHI, DRIFT),
    World("drift + AR(1) + outliers", PHI, DRIFT, OUTLIER_SIZE),
)
HARDEST = WORLDS[-1]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    hits: int
    n: int
    bound: str
    is_met: bool

    def __str__(self) -> str:
        share = clopper_pearson(self.hits, self.n)
        mark = "ok" if self.is_met else "MISSED"
        interval = f"[{share.low:5.1%}, {share.high:6.1%}]"
        return f"{self.what:66}{share.share:6.1%} {interval:18} {self.bound:24}{mark}"


def noise(rng: random.Random, world: World, count: int) -> list[float]:
    """Noise of `count` trials in run order, ln scale."""
    state, values = rng.gauss(0, 1), list[float]()
    for place in range(count):
        state = world.phi * state + math.sqrt(1 - world.phi**2) * rng.gauss(0, 1)
        hit = world.outliers if rng.random() < OUTLIER_SHARE else 0.0
        values.append(SD * state + world.drift * place / max(1, count - 1) - hit)
    return values


@cache
def _study() -> Plan:
    return make_plan(parse_study(STUDY).with_seed(0))


def session(rng: random.Random, world: World, effect: float, rounds: int) -> Comparison:
    """Plan, make up and judge one study; `effect` is the true ln-ratio of bfq over none."""
    plan = make_plan(_study().study.with_seed(rng.randrange(1 << 31)))
    trials = list(plan.trials(rounds))
    made_up = noise(rng, world, len(trials))
    rows: list[TrialRow] = []
    measurements: list[Measurement] = []
    for trial, value in zip(trials, made_up, strict=True):
        levels = dict(trial.levels)
        value += effect if levels["scheduler"] == "bfq" else 0.0
        place = (trial.trial_id, trial.ordinal, trial.round, trial.position, trial.workload, levels)
        rows.append(TrialRow(*place, status="ok"))
        throughput = 1e8 * math.exp(value)
        metric = "throughput_bytes_per_s"
        measurements.append(Measurement(*place, "read", metric, throughput, True, 0.0))
    data = StudyData(_row(plan, rounds), rows, measurements)
    return judge(data).pooled[0]


def _row(plan: Plan, rounds: int) -> StudyRow:
    study = plan.study
    return StudyRow(
        study_id="bench",
        name=study.name,
        kind="real",
        created_at_unix_ns=0,
        iolab_version="bench",
        seed=plan.seed,
        margin=study.margin,
        compared_factor=study.compared_factor,
        baseline=study.baseline,
        factors={factor.name: list(factor.levels) for factor in study.factors},
        settings={},
        workloads=[workload.name for workload in study.workloads],
        rounds_planned=rounds,
        testbed="loop:1g",
        plan_digest="",
        spec_toml="",
    )


def differs(comparison: Comparison) -> bool:
    """Whether the 95 % interval excludes "no difference"."""
    return comparison.effect.sign != "none"


def naive_differs(rng: random.Random, world: World, rounds: int) -> bool:
    """AAAAABBBBB and Welch's t test."""
    from scipy.stats import ttest_ind

    values = noise(rng, world, 2 * rounds)
    return bool(ttest_ind(values[:rounds], values[rounds:], equal_var=False).pvalue < 0.05)


def covers(comparison: Comparison, effect: float) -> bool:
    """Whether the 95 % interval holds the truth."""
    interval = comparison.effect.interval_95
    return interval is not None and interval.low <= math.exp(effect) <= interval.high


def planned_rounds(rng: random.Random, world: World) -> int:
    """Rounds as `iolab plan` recommends them after an A/A study of twenty rounds."""
    pilot = session(rng, world, 0.0, PILOT_ROUNDS)
    estimate = estimate_mean([math.log(ratio) for ratio in pilot.round_ratios.values()])
    spread = spread_bound(estimate, SPREAD_CONFIDENCE)
    assert spread is not None
    found = needed(Noise(spread, "A/A"), MARGIN, 1, None).for_difference
    assert found is not None
    return max(2, found)


def rows(sessions: int) -> Iterator[Row]:
    """The table, line by line."""
    for world in WORLDS:
        rng = random.Random(f"aa/{world.name}")
        hits = sum(differs(session(rng, world, 0.0, ROUNDS)) for _ in range(sessions))
        upper = _upper(hits, sessions)
        yield Row(f"A/A false positives, {world.name}", hits, sessions, *_most(upper, 0.07))
        naive = sum(naive_differs(rng, world, ROUNDS) for _ in range(sessions))
        what = f"  the same, AAAA..BBBB and Welch, {world.name}"
        if world.drift:
            yield Row(what, naive, sessions, "above 30 % (why not)", naive / sessions > 0.30)
        else:
            yield Row(what, naive, sessions, "", True)
    yield from _powers(sessions)


def _powers(sessions: int) -> Iterator[Row]:
    twice = 2 * math.log1p(MARGIN)
    for world in (WORLDS[0], WORLDS[3], HARDEST):
        rng = random.Random(f"coverage/{world.name}")
        hits = sum(covers(session(rng, world, twice, ROUNDS), twice) for _ in range(sessions))
        what = f"95 % interval covers the truth, {world.name}"
        yield Row(what, hits, sessions, "at least 93 %", hits / sessions >= 0.93)
    for world in (WORLDS[3], HARDEST):
        rng = random.Random(f"power/{world.name}")
        found, total = 0, 0
        for _ in range(sessions):
            n = planned_rounds(rng, world)
            total += n
            found += session(rng, world, twice, n).effect.word == "better"
        what = f"power at 2 x margin, {total / sessions:.0f} rounds planned, {world.name}"
        yield Row(what, found, sessions, "at least 80 %", found / sessions >= 0.80)
    for world in (WORLDS[0], WORLDS[3], HARDEST):
        rng, edge = random.Random(f"same/{world.name}"), math.log1p(MARGIN)
        words = [session(rng, world, edge, ROUNDS).effect.word for _ in range(sessions)]
        wrong = sum(word in ("same", "trivial") for word in words)
        what = f"'same' at a true difference of the margin, {world.name}"
        low = clopper_pearson(wrong, sessions).low
        yield Row(what, wrong, sessions, "5 % not refuted", low <= 0.05)


def _upper(hits: int, n: int) -> float:
    """Upper one-sided 95 % bound."""
    return clopper_pearson(hits, n, confidence=0.90).high


def _most(upper: float, bound: float) -> tuple[str, bool]:
    return f"upper bound {upper:.1%} <= {bound:.0%}", upper <= bound


def main(arguments: list[str] | None = None, tell: Callable[[str], None] = print) -> int:
    """Print the table; 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=2000, help="studies a row")
    sessions = parser.parse_args(arguments).sessions
    tell(f"{sessions} simulated studies a row; margin {MARGIN:.0%}, {ROUNDS} rounds")
    is_met = True
    for row in rows(sessions):
        tell(str(row))
        is_met = is_met and row.is_met
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
