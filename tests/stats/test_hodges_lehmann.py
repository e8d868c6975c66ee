"""Hodges-Lehmann beyond a hundred rounds: counted instead of listed, normal instead of exact."""

from __future__ import annotations

import random

import pytest

from iolab.stats.methods import hodges_lehmann as method


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_counted_means_are_the_listed_ones(n: int) -> None:
    rng = random.Random(n)
    values = [round(rng.gauss(0, 1), 1) if n == 60 else rng.gauss(0, 1) for _ in range(n)]
    means = sorted((values[i] + values[j]) / 2 for i in range(n) for j in range(i, n))
    places = range(1, len(means) + 1, max(1, len(means) // 50))
    found = method.ordered_means(values, places)
    assert found == pytest.approx([means[place - 1] for place in places], abs=1e-12)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_the_normal_cut_is_almost_the_exact_one(confidence: float) -> None:
    for n in (60, 100):
        counts = method._signed_rank_counts(n)
        below = exact = 0
        while 2 * (below + counts[exact]) / 2**n <= 1 - confidence:
            below += counts[exact]
            exact += 1
        dropped, reached = method.normal_cut(n, confidence)
        assert abs(dropped - exact) <= 0.01 * exact + 1
        step = 2 * counts[exact] / 2**n
        assert reached == pytest.approx(1 - 2 * below / 2**n, abs=step + 0.0005)


def test_nothing_jumps_where_the_method_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    values = [rng.gauss(0.1, 1) for _ in range(method.EXACT_MAX)]
    exact = method.hodges_lehmann(values)
    monkeypatch.setattr(method, "EXACT_MAX", 50)
    normal = method.hodges_lehmann(values)
    assert exact is not None
    assert normal is not None
    assert normal.estimate == pytest.approx(exact.estimate, abs=1e-12)
    assert normal.low == pytest.approx(exact.low, abs=0.005)
    assert normal.high == pytest.approx(exact.high, abs=0.005)


def test_thousands_of_rounds_take_no_minutes() -> None:
    rng = random.Random(5)
    shift = method.hodges_lehmann([rng.gauss(0.1, 1) for _ in range(6000)])
    assert shift is not None
    assert shift.low is not None
    assert shift.high is not None
    assert shift.low < 0.1 < shift.high
    assert shift.high - shift.low < 0.06
