"""Do the intervals cover, and how often is a winner claimed that is none? Simulated, seeded.

The noise is made up: ln-noise of 2 % (independent or AR(1) with phi .6),
5 % drift over the session, random order inside each round. Bounds are binomial, at five standard
errors, so that a correct implementation fails once in millions of seeds.
"""

from __future__ import annotations

import math
import random

import pytest

from iolab.stats.methods.holm import holm_steps
from iolab.stats.methods.student import MeanEstimate, estimate_mean
from iolab.stats.methods.verdict_rule import decide

SESSIONS = 2000


def _binomial_bound(p: float, n: int) -> float:
    return 5 * math.sqrt(p * (1 - p) / n)


def _session(
    rng: random.Random, k: int, rounds: int, *, phi: float, drift: float
) -> list[list[float]]:
    """Return ln-values[treatment][round] of `k` identical treatments in random rounds."""
    values = [[0.0] * rounds for _ in range(k)]
    state = rng.gauss(0, 1)
    for r in range(rounds):
        for position, treatment in enumerate(rng.sample(range(k), k)):
            state = phi * state + math.sqrt(1 - phi * phi) * rng.gauss(0, 1)
            at = (r * k + position) / (rounds * k)
            values[treatment][r] = 0.02 * state + drift * at
    return values


def _against_first(values: list[list[float]]) -> list[MeanEstimate]:
    return [
        estimate_mean([a - b for a, b in zip(other, values[0], strict=True)])
        for other in values[1:]
    ]


@pytest.mark.parametrize("rounds", [3, 5, 10])
def test_interval_of_the_pooled_ratio_covers(rounds: int) -> None:
    """95 % intervals hold the true ratio in 95 % of the sessions, with four cells averaged."""
    rng = random.Random(11 + rounds)
    effect, hits = math.log(0.9), 0
    for _ in range(SESSIONS):
        ratios = [
            math.fsum(effect + rng.gauss(0, 0.03) for _ in range(4)) / 4 for _ in range(rounds)
        ]
        estimate = estimate_mean(ratios)
        hits += abs(estimate.mean - effect) <= estimate.half_width(0.95)
    assert hits / SESSIONS == pytest.approx(0.95, abs=_binomial_bound(0.95, SESSIONS))


@pytest.mark.parametrize(
    ("phi", "drift"), [(0.0, 0.0), (0.0, 0.05), (0.6, 0.05)], ids=["iid", "drift", "ar1+drift"]
)
def test_false_winners_among_identical_treatments(phi: float, drift: float) -> None:
    """Holm keeps "any of three differs from the baseline" at 5 % (3.4: .03 to .05 with Holm)."""
    rng = random.Random(23)
    differs = wins = 0
    for _ in range(SESSIONS):
        estimates = _against_first(_session(rng, 4, 5, phi=phi, drift=drift))
        steps = holm_steps([e.p_value() for e in estimates])
        decisions = [
            decide(e, 0.05, divisor=s.divisor) for e, s in zip(estimates, steps, strict=True)
        ]
        differs += any(d.sign != "none" for d in decisions)
        wins += any(d.word in ("better", "worse") for d in decisions)
    bound = _binomial_bound(0.05, SESSIONS)
    assert differs / SESSIONS <= 0.05 + bound
    assert wins / SESSIONS <= 0.002


def test_paired_rate_under_drift_matches_methodology() -> None:
    """3.4, "random blocks, paired", drift 5 %, n = 5: .050 of A/A pairs differ at 5 %."""
    rng = random.Random(5)
    found = 0
    for _ in range(SESSIONS):
        (estimate,) = _against_first(_session(rng, 2, 5, phi=0.0, drift=0.05))
        found += decide(estimate, 0.05).sign != "none"
    assert found / SESSIONS == pytest.approx(0.05, abs=_binomial_bound(0.05, SESSIONS))


def test_power_under_drift_matches_methodology() -> None:
    """3.4: a true 3 % effect under 5 % drift is found by 12 paired blocks with power .92."""
    rng = random.Random(7)
    found = 0
    for _ in range(SESSIONS):
        first, second = _session(rng, 2, 12, phi=0.0, drift=0.05)
        (estimate,) = _against_first([first, [v - math.log(1.03) for v in second]])
        found += decide(estimate, 0.05).sign == "worse"
    assert found / SESSIONS == pytest.approx(0.92, abs=0.04)


def test_wrongly_same_is_rare_at_the_margin() -> None:
    """A true difference of exactly the margin is called same or trivial in at most 5 %."""
    rng = random.Random(13)
    edge, claims = math.log1p(0.05), 0
    for _ in range(SESSIONS):
        estimate = estimate_mean([edge + rng.gauss(0, 0.01) for _ in range(6)])
        claims += decide(estimate, 0.05).word in ("same", "trivial")
    assert claims / SESSIONS <= 0.05 + _binomial_bound(0.05, SESSIONS)
