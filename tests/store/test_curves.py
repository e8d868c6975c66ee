"""Latency curves out of stored histograms, against the core's own quantiles."""

from __future__ import annotations

import json
import random

import pytest

from iolab.run.core import load_core
from iolab.store.curves import GRID, LADDER, quantiles_of


def _index(value: int, bits: int = 7) -> int:
    shift = max(0, value.bit_length() - bits - 1)
    return (shift << bits) + (value >> shift)


def _histogram(values: list[int]) -> dict[str, object]:
    counts: dict[int, int] = {}
    for value in values:
        counts[_index(value)] = counts.get(_index(value), 0) + 1
    return {
        "unit": "ns",
        "count": len(values),
        "min": min(values),
        "max": max(values),
        "sum": sum(values),
        "sub_bucket_bits": 7,
        "counts": [[index, counts[index]] for index in sorted(counts)],
    }


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_those_of_the_core(seed: int) -> None:
    rng = random.Random(seed)
    values = [int(rng.lognormvariate(11, 2)) + 1 for _ in range(20_000)]
    histogram = _histogram(values)
    found = quantiles_of([histogram])
    assert found is not None
    count, quantiles = found
    assert count == 20_000
    wanted = list(quantiles)
    expected = load_core().histogram_quantiles(json.dumps(histogram), wanted)
    assert list(quantiles.values()) == pytest.approx(expected)


def test_a_quantile_needs_an_operation_beyond_it() -> None:
    for count, highest in ((10, 0.9), (999, 0.99), (1000, 0.999), (100_000, 0.99999)):
        found = quantiles_of([_histogram(list(range(1, count + 1)))])
        assert found is not None
        assert max(found[1]) == highest
    assert quantiles_of([]) is None


def test_reads_and_writes_are_one_distribution() -> None:
    low, high = list(range(100, 1100)), list(range(10_100, 11_100))
    both = quantiles_of([_histogram(low), _histogram(high)])
    whole = quantiles_of([_histogram(low + high)])
    assert both == whole
    assert set(LADDER) <= set(GRID)
