"""Rate of wrong verdicts: whole simulated studies with known truth, through the real code.

Each session is a study made by `make_plan` (its own random order), values made up along that order,
and judged by the part of `judge` that gives the words (`judge_pooled`). The noise is ln-normal with
sd 2 %, AR(1) with phi .6, a drift of 5 % over the session and one trial in twenty 15 % too slow.
The same noise is also judged the naive way: AAAAABBBBB and Welch's t test. The number of rounds for
the power row is planned as `iolab plan` does it, from an A/A study of 20 rounds in the same world.

What families, cells, failures, sessions and resumes do to a verdict has rows of its own
(`calibration`): studies made up level by level, with their own seeds, judged by the same code.

``make bench-verdicts``, or ``python benches/verdicts.py [--sessions N]``; exits 1 if a bound is
missed.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

from iolab.stats.diff import as_sessions, compare_studies
from iolab.stats.fleet import NamedHost, judge_fleet
from iolab.stats.gate import gate
from iolab.stats.judge_pooled import judge_pooled
from iolab.stats.ledger import build_ledger
from iolab.stats.methods.effect_size import clopper_pearson
from iolab.stats.methods.student import estimate_mean, spread_bound
from iolab.stats.methods.verdict_rule import SPREAD_CONFIDENCE, decide
from iolab.stats.planning import Noise, needed
from iolab.stats.secondary_analyses import winner_sets
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
FLEETS_MIN = 200
"""Fewer cannot refute a share of 93 %; a quick look with fewer studies a row has as few fleets."""
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
    """Noise and drift of the machine in one session."""

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
    return judge_pooled(build_ledger(data)).comparisons[0]


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
    """Tell whether the 95 % interval excludes "no difference"."""
    return comparison.effect.sign != "none"


def naive_differs(rng: random.Random, world: World, rounds: int) -> bool:
    """AAAAABBBBB and Welch's t test."""
    from scipy.stats import ttest_ind

    values = noise(rng, world, 2 * rounds)
    return bool(ttest_ind(values[:rounds], values[rounds:], equal_var=False).pvalue < 0.05)


def covers(comparison: Comparison, effect: float) -> bool:
    """Tell whether the 95 % interval holds the truth."""
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


# Families, cells, failures, sessions, resumes.

Values = Callable[[random.Random, int, str, str], float | None]
"""Draws the ln-value of a trial from (generator, round, level, size); None is a failure."""
SIZES = ("4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k")


def made_up(
    rng: random.Random, levels: Sequence[str], rounds: int, values: Values, *, cells: int = 1
) -> StudyData:
    """Make up a study: levels x sizes in random order in every round, drift included by `values`.

    The generator draws the order first, so that noise along it (drift) is spread at random.
    """
    trials: list[TrialRow] = []
    measurements: list[Measurement] = []
    places = [(level, size) for level in levels for size in SIZES[:cells]]
    for number in range(1, rounds + 1):
        order = rng.sample(places, len(places))
        for position, (level, size) in enumerate(order):
            chosen = {"scheduler": level, "record_size": size}
            ordinal = len(trials) + 1
            place = (f"t{ordinal}", ordinal, number, position, "bench", chosen)
            value = values(rng, number, level, size)
            if value is None:
                trials.append(TrialRow(*place, status="failed", error="EIO"))
                continue
            trials.append(TrialRow(*place, status="ok"))
            metric, rate = "throughput_bytes_per_s", 1e8 * math.exp(value)
            measurements.append(Measurement(*place, "read", metric, rate, True, 0.0))
    return StudyData(_made_up_row(levels, rounds, cells), trials, measurements)


def _made_up_row(levels: Sequence[str], rounds: int, cells: int) -> StudyRow:
    factors = {"scheduler": list(levels), "record_size": list(SIZES[:cells])}
    return replace(_row(_study(), rounds), baseline=levels[0], factors=factors, workloads=["bench"])


def named(count: int) -> list[str]:
    """Return so many names of levels."""
    return [f"l{i}" for i in range(count)]


def headline(data: StudyData) -> list[Comparison]:
    """Return the headline's comparisons as `judge` has them."""
    ledger = build_ledger(data)
    return [c for c in judge_pooled(ledger).comparisons if c.is_headline]


def any_difference(data: StudyData) -> bool:
    """Tell whether some word of the headline is `better` or `worse`."""
    return any(c.effect.word in ("better", "worse") for c in headline(data))


def any_same(data: StudyData) -> bool:
    """Tell whether some word of the headline is `same` or `trivial`."""
    return any(c.effect.word in ("same", "trivial") for c in headline(data))


def drifting(rng: random.Random) -> StudyData:
    """Four equal levels, three rounds, a drift of 30 % over the session."""
    place = iter(range(10**6))
    return made_up(rng, named(4), 3, lambda r, *_: r.gauss(0, SD) + 0.30 * next(place) / 12 - 0.15)


def bimodal(rng: random.Random) -> StudyData:
    """Eight equal levels, three rounds, trials in one of two modes 20 % apart."""
    return made_up(rng, named(8), 3, lambda r, *_: r.gauss(0, 0.005) + r.choice((0.0, 0.2)))


def failing(rng: random.Random) -> StudyData:
    """Two equal levels, eight rounds; of one the slowest fifth of the trials fails."""

    def value(r: random.Random, _round: int, level: str, _size: str) -> float | None:
        drawn = r.gauss(0, 0.10)
        return None if level == "l1" and drawn < -0.084 else drawn

    return made_up(rng, named(2), 8, value)


def at_the_margin(rng: random.Random, levels: int) -> StudyData:
    """All levels exactly the margin better than the baseline, ten rounds."""
    edge = math.log1p(MARGIN)
    return made_up(
        rng, named(levels), 10, lambda r, _n, level, _s: r.gauss(0, SD) + edge * (level != "l0")
    )


def noisy_best(rng: random.Random) -> StudyData:
    """Four levels, six rounds; the best by 1 % is fifteen times noisier."""

    def value(r: random.Random, _round: int, level: str, _size: str) -> float:
        return r.gauss(0.01, 0.15) if level == "l3" else r.gauss(0, 0.01)

    return made_up(rng, named(4), 6, value)


def holds_best(data: StudyData) -> bool:
    """Tell whether the winner set has the truly best level."""
    ledger = build_ledger(data)
    judged = judge_pooled(ledger)
    ((group, family),) = judged.families.items()
    metric = ledger.primary_metric(group)
    assert metric is not None
    (found,) = winner_sets(family, group, metric)
    return "l3" in found.members


def words_by_pair(data: StudyData, levels: Sequence[str]) -> dict[tuple[str, str], str]:
    """Words of all pairs that one baseline after the other gives, as from the first named level."""
    turned = {"better": "worse", "worse": "better"}
    found: dict[tuple[str, str], set[str]] = {}
    for baseline in levels:
        study = replace(data.study, baseline=baseline)
        for c in headline(replace(data, study=study)):
            pair = (c.level, c.baseline) if c.level < c.baseline else (c.baseline, c.level)
            word = (
                c.effect.word if c.level < c.baseline else turned.get(c.effect.word, c.effect.word)
            )
            found.setdefault(pair, set()).add(word)
    return {pair: " or ".join(sorted(words)) for pair, words in found.items()}


def changes_by_baseline(rng: random.Random) -> bool:
    """Tell whether the baseline changes a word in a study of three levels near the margin."""
    means = {level: rng.gauss(0, 0.05) for level in named(3)}
    data = made_up(rng, named(3), 6, lambda r, _n, level, _s: r.gauss(means[level], 0.03))
    return any(" or " in word for word in words_by_pair(data, named(3)).values())


def crossing(rng: random.Random, size: float = 0.10) -> StudyData:
    """Two levels, eight cells that cross by `size`, five rounds, sd of a cell's ratio 10 %."""

    def value(r: random.Random, _round: int, level: str, cell: str) -> float:
        side = 1 if SIZES.index(cell) % 2 else -1
        return r.gauss(0, 0.10 / math.sqrt(2)) + side * size * (level == "l1")

    return made_up(rng, named(2), 5, value, cells=8)


def is_hidden(data: StudyData) -> bool:
    """Tell whether a word is said for all cells alike, without a word that they may differ."""
    (c,) = headline(data)
    return c.effect.word in ("same", "trivial") and not c.is_on_average


def depends(data: StudyData) -> bool:
    """Tell whether the word is `depends`."""
    return headline(data)[0].effect.word == "depends"


def gated(rng: random.Random, sessions: int) -> str:
    """Outcome of a gate of equal versions, sd between sessions 10 %, ten rounds a session."""

    def side() -> StudyData:
        found: list[StudyData] = []
        for _ in range(sessions):
            shift = rng.gauss(0, 0.10)
            found.append(made_up(rng, named(1), 10, lambda r, *_, s=shift: r.gauss(s, SD)))
        return as_sessions(found)

    diff = compare_studies(
        side(), side(), margin=MARGIN, roles=("primary",), sessions=(sessions, sessions)
    )
    return gate(diff).outcome


def resumed(rng: random.Random, sd: float, *, times: int = 8) -> str:
    """Word of a study at the margin that is resumed as advised until it has one."""
    edge, rounds, looks = math.log1p(MARGIN), 5, list[int]()
    rows: dict[int, tuple[float, float]] = {}
    for _ in range(times + 1):
        for number in range(1, rounds + 1):
            if number not in rows:
                rows[number] = (rng.gauss(0, sd), rng.gauss(edge, sd))
        data = made_up(
            rng, named(2), rounds, lambda _r, number, level, _s: rows[number][int(level[1:])]
        )
        effect = headline(replace(data, looks=tuple(looks)))[0].effect
        if effect.word != "undecided" or effect.further_rounds is None:
            return effect.word
        looks.append(rounds)
        rounds += effect.further_rounds
    return "undecided"


def promised(rng: random.Random) -> tuple[bool, bool]:
    """Tell whether a number of rounds was promised, and whether it decided."""
    effect, sd = rng.choice((0.0, 0.15)), 0.10
    drawn = [rng.gauss(effect, sd) for _ in range(8)]
    told = decide(estimate_mean(drawn), MARGIN)
    if told.word != "undecided" or told.further_rounds is None:
        return False, False
    drawn += [rng.gauss(effect, sd) for _ in range(told.further_rounds)]
    return True, decide(estimate_mean(drawn), MARGIN).word != "undecided"


def hosts_of(
    rng: random.Random, hosts: int, spread: float, shifts: Sequence[float] = ()
) -> list[NamedHost]:
    """Five rounds on each host: effects around 10 % with a deviation, noise of 4 %, and shifts."""
    found: list[NamedHost] = []
    for number in range(hosts):
        shift = shifts[number] if number < len(shifts) else 0.0
        effect, speed = 0.10 + rng.gauss(0, spread) + shift, rng.gauss(0, 0.5)

        def value(rng: random.Random, number: int, level: str, size: str) -> float:
            del number, size
            return speed + rng.gauss(0, 0.04) + (effect if level != "a" else 0.0)  # noqa: B023

        data = made_up(rng, ("a", "b"), 5, value)
        data = replace(data, study=replace(data.study, study_id=f"host-{number}"))
        found.append(NamedHost(f"host-{number}", data))
    return found


def fleet_covers(hosts: Sequence[NamedHost]) -> bool:
    """Tell whether the interval over hosts holds the mean effect."""
    data = as_sessions([one.data for one in hosts])
    return covers(judge_pooled(build_ledger(data)).comparisons[0], 0.10)


def apart(hosts: Sequence[NamedHost]) -> list[str]:
    """Names of the hosts that are said to stand apart."""
    return [one.host for one in judge_fleet(hosts).comparisons[0].hosts if one.is_apart]


def _fleets(fleets: int) -> Iterator[Row]:
    """Rows on the interval over hosts, and on hosts that are named."""
    for hosts, spread in ((3, 0.05), (10, 0.05), (10, 0.0), (100, 0.05)):
        # A fleet of a hundred takes as long as ten of ten.
        n = max(min(FLEETS_MIN, fleets), fleets // max(1, hosts // 10))
        rng = random.Random(f"fleet/{hosts}/{spread}")
        hits = sum(fleet_covers(hosts_of(rng, hosts, spread)) for _ in range(n))
        range_ = clopper_pearson(hits, n)
        what = f"interval over {hosts} hosts whose effects differ by {spread:.0%} covers their mean"
        is_met = range_.high >= 0.93 and range_.low <= 0.97
        yield Row(what, hits, n, "93 to 97 % not refuted", is_met)
    rng = random.Random("fleet/apart")
    named = [apart(hosts_of(rng, 10, 0.0)) for _ in range(fleets)]
    wrong = sum(map(bool, named))
    what = "a host stands apart where all are alike (of 10)"
    yield Row(what, wrong, fleets, *_at_most(wrong, fleets, 0.05))
    named = [apart(hosts_of(rng, 10, 0.0, (-0.25,))) for _ in range(fleets)]
    right = sum(names == ["host-0"] for names in named)
    what = "the one host that differs by 25 % is named, and no other (of 10)"
    yield Row(what, right, fleets, "90 % not refuted", _floor(right, fleets, 0.90))


def calibration(sessions: int) -> Iterator[Row]:
    """Rows on what is between levels, cells, trials and sessions."""

    def row(what: str, hit: Callable[[random.Random], bool], bound: float) -> Row:
        rng = random.Random(f"calibration/{what}")
        hits = sum(hit(rng) for _ in range(sessions))
        return Row(what, hits, sessions, *_at_most(hits, sessions, bound))

    def floor(what: str, hit: Callable[[random.Random], bool], bound: float) -> Row:
        rng = random.Random(f"calibration/{what}")
        hits = sum(hit(rng) for _ in range(sessions))
        is_met = _floor(hits, sessions, bound)
        return Row(what, hits, sessions, f"{bound:.0%} not refuted", is_met)

    yield row(
        "false better/worse, drift 30 %, 3 rounds", lambda r: any_difference(drifting(r)), 0.07
    )
    yield row(
        "false better/worse, two modes, 3 rounds, K = 8", lambda r: any_difference(bimodal(r)), 0.07
    )
    yield row(
        "false better/worse, the slowest fifth fails", lambda r: any_difference(failing(r)), 0.07
    )
    for k in (2, 3, 4, 5, 7):
        what = f"wrong same/trivial in the family, all at the margin, K = {k}"
        yield row(what, lambda r, k=k: any_same(at_the_margin(r, k)), 0.05)
    yield floor(
        "winner set holds a best that is 15 times noisier",
        lambda r: holds_best(noisy_best(r)),
        0.95,
    )
    yield row("the baseline changes a word, K = 3", changes_by_baseline, 0.0)
    yield row("crossing of +-10 % over 8 cells is hidden", lambda r: is_hidden(crossing(r)), 0.05)
    yield floor("  and is called depends", lambda r: depends(crossing(r)), 0.90)
    yield row("  depends without any interaction", lambda r: depends(crossing(r, 0.0)), 0.05)
    yield row(
        "gate: false regressions, 3 sessions a side, sd 10 %",
        lambda r: gated(r, 3) == "regression",
        0.05,
    )
    yield row("  one session a side", lambda r: gated(r, 1) != "undecided", 0.0)
    for sd in (0.05, 0.15):
        what = f"advised resuming up to 8 times, sd {sd:.0%}: wrong same/trivial"
        yield row(what, lambda r, sd=sd: resumed(r, sd) in ("same", "trivial"), 0.05)
    yield _promises(sessions)
    yield from _fleets(max(min(FLEETS_MIN, sessions), sessions // 8))


def _promises(sessions: int) -> Row:
    rng = random.Random("calibration/promises")
    told = [kept for is_told, kept in (promised(rng) for _ in range(4 * sessions)) if is_told]
    what = "the upper number of further rounds decides (promised 80 %)"
    return Row(
        what, sum(told), max(1, len(told)), "80 % not refuted", _floor(sum(told), len(told), 0.80)
    )


def _floor(hits: int, n: int, bound: float) -> bool:
    return clopper_pearson(hits, max(1, n)).high >= bound


def _at_most(hits: int, n: int, bound: float) -> tuple[str, bool]:
    if bound == 0:
        return "0", hits == 0
    return f"{bound:.0%} not refuted", clopper_pearson(hits, n).low <= bound


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
    for row in chain(rows(sessions), calibration(2 * sessions)):
        tell(str(row))
        sys.stdout.flush()
        is_met = is_met and row.is_met
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
