"""Ratios in words. Issue 14, point 15.

Symptoms: "95 % interval 71 % faster to 29 times as fast" (two units, and 71 % faster than what?),
"is 100 % slower" of something a thousand times slower. Cause: each end of an interval chose its
own unit, and percentages were used down to zero.

Issue 24: "cfq is 79 times lower" is no English, and stood beside "0.57 times as high", which counts
in the other direction. Ratios below one are multiples too, below a tenth fractions: "1/79 as high".
"""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.stats.effect_words import (
    CAP,
    EQUAL,
    amount_of_effect,
    form_of,
    further_digits,
    no_interval,
    percent,
    size_of_effect,
    size_of_interval,
)
from iolab.stats.metrics import METRIC_BY_NAME

RATE, LATENCY = METRIC_BY_NAME["throughput_bytes_per_s"], METRIC_BY_NAME["latency_ns_p99"]
METRICS = st.sampled_from([RATE, LATENCY])
RATIOS = st.floats(-6, 6).map(lambda power: 10**power)


@pytest.mark.parametrize(
    ("ratio", "rate", "latency"),
    [
        (1e-3, "1/1000 as fast", "1000 times as high"),
        (1e-6, "1/1\u202f000\u202f000 as fast", "1\u202f000\u202f000 times as high"),
        (0.5, "0.50 times as fast", "2.0 times as high"),
        (79.4, "79 times as fast", "1/79 as high"),
        (0.6, "40 % slower", "67 % higher"),
        (1.0, "equal", "equal"),
        (1 + 1e-7, "equal", "equal"),
        (1.0003, "0.03 % faster", "0.03 % lower"),
        (0.99996, "0.004 % slower", "0.004 % higher"),
        (1.12, "12 % faster", "11 % lower"),
        (2.3, "2.3 times as fast", "0.43 times as high"),
        (9.97, "10 times as fast", "0.10 times as high"),
    ],
)
def test_sizes(ratio, rate, latency):
    assert size_of_effect(RATE, ratio) == rate
    assert size_of_effect(LATENCY, ratio) == latency


@pytest.mark.parametrize(
    ("middle", "ends", "text"),
    [
        (7.0, (1.71, 29.0), "1.71 to 29 times"),
        (1.8, (1.71, 29.0), "1.71 to 29 times as fast"),
        (1.1, (1.05, 1.2), "5.0 to 20 %"),
        (1.01, (0.97, 1.05), "3.0 % slower to 5.0 % faster"),
        (0.6, (0.3, 1.5), "0.30 to 1.50 times as fast"),
        (1e-3, (5e-4, 2e-3), "1/500 to 1/2000"),
        (0.09, (0.05, 0.4), "1/2.5 to 1/20"),
        (0.09, (0.05, 1.4), "0.05 to 1.40 times as fast"),
        (0.6, (0.3, 0.9), "0.30 to 0.90 times as fast"),
        (1.0, (1.0, 1.0), "0 to 0 %"),
        (1.0, (1.0, 1.02), "0 to 2.0 % faster"),
        (1.0, (0.9, 1.02), "10 % slower to 2.0 % faster"),
        (1.0, (4.8e-8, 2.8e8), "<.001 to >999 times as fast"),
        (2.0, (0.5, 5000.0), "0.50 to >999 times"),
        (0.01, (1e-5, 0.5), "1/2.0 to <1/999"),
        (2000.0, (1500.0, 2500.0), "1500 to 2500 times"),
    ],
)
def test_intervals(middle, ends, text):
    assert size_of_interval(RATE, middle, ends) == text


@pytest.mark.parametrize(
    ("ratio", "ends", "text"),
    [
        (10.6, (10.2, 11.04), "10.6 times as fast (10.2 to 11.0 times)"),
        (10.6, (9.96, 12.0), "11 times as fast (10 to 12 times)"),
        (9.97, (9.93, 10.02), "9.97 times as fast (9.93 to 10.0 times)"),
        (3.0952, (3.0923, 3.0981), "3.095 times as fast (3.092 to 3.098 times)"),
        (0.8753, (0.8746, 0.8761), "12.47 % slower (12.39 to 12.54 %)"),
        (1.116, (1.115, 1.124), "11.6 % faster (11.5 to 12.4 %)"),
        (1 / 79.2, (1 / 80.1, 1 / 78.6), "1/79.2 as fast (1/78.6 to 1/80.1)"),
        (1.0004, (1.0003, 1.01), "0.04 % faster (0.03 to 1.0 %)"),
        (
            12345.4,
            (12345.2, 12400.0),
            "12\u202f345.4 times as fast (12\u202f345.2 to 12\u202f400.0 times)",
        ),
        (3.0, (3.0000001, 3.0000002), "3.000 times as fast (3.000 to 3.000 times)"),
        (0.8, (0.8, 0.8), "20 % slower (20 to 20 %)"),
    ],
)
def test_a_size_does_not_look_like_an_end_of_its_interval(ratio, ends, text):
    """Symptom: "11 times (10 to 11 times)": the estimate looked like a bound."""
    form = form_of((ratio, *ends))
    further = further_digits(RATE, ratio, ends, form)
    size = size_of_effect(RATE, ratio, form, further=further)
    assert f"{size} ({size_of_interval(RATE, ratio, ends, form, further=further)})" == text


@given(METRICS, RATIOS, st.floats(1.005, 3), st.floats(1.005, 3))
def test_more_digits_tell_a_size_from_its_ends(metric, ratio, below, above):
    ends = (ratio / below, ratio * above)
    form = form_of((ratio, *ends))
    further = further_digits(metric, ratio, ends, form)
    size = size_of_effect(metric, ratio, form, further=further)
    bounds = size_of_interval(metric, ratio, ends, form, further=further)
    number = size.partition(" ")[0]
    if size != EQUAL and abs(ratio - 1) > 0.1 and 0.01 < ratio < 100:
        assert number not in bounds.split(), (size, bounds)


@pytest.mark.parametrize(
    ("n", "ends", "text"),
    [
        (2, (0.1, 10.0), "no useful interval from 2 rounds"),
        (2, (0.99, 1.01), ""),
        (3, (0.1, 10.0), ""),
    ],
)
def test_two_rounds_may_have_no_interval_that_says_anything(n, ends, text):
    """Seen: "95 % interval 0.000000048 to 276 078 996 times" of two rounds."""
    assert no_interval(n, ends) == text


def natural_of(text: str) -> float:
    """The ratio that a text of one size says, read as a person would."""
    if text == EQUAL:
        return 1.0
    number, unit, direction = text.split(" ", 2)
    number = number.replace("\u202f", "").lstrip("<>")
    if number.startswith("1/"):
        return 1 / float(number[2:])
    value = float(number)
    if unit == "times":
        assert direction.startswith("as "), text
        return value
    return 1 + value / 100 * (1 if direction in ("faster", "higher") else -1)


@given(METRICS, RATIOS)
def test_a_size_says_its_ratio_and_nothing_stands_still(metric, ratio):
    text = size_of_effect(metric, ratio)
    natural = ratio if metric.is_higher_better else 1 / ratio
    assert math.isclose(natural_of(text), natural, rel_tol=0.06), (text, natural)
    if " % " in text:
        assert float(text.split(" ")[0]) <= 100
        assert not re.match("100 % (slower|lower)", text)
        assert 0.5 < natural < 2
    assert text == EQUAL or "e" not in text.split(" ")[0]
    assert metric.label in amount_of_effect(metric, ratio)


@given(METRICS, RATIOS, RATIOS, RATIOS)
def test_both_ends_of_an_interval_have_one_unit_and_say_their_ratios(metric, one, two, three):
    low, middle, high = sorted((one, two, three))
    text = size_of_interval(metric, middle, (low, high))
    assert ("%" in text) + ("times" in text) + ("1/" in text) == 1, text
    wanted = sorted(r if metric.is_higher_better else 1 / r for r in (low, high))
    near, far = text.split(" to ")
    direction = size_of_effect(metric, middle).partition(" ")[2] or "% faster"
    if "%" in near:  # Both ends with a direction of their own.
        ends = [natural_of(near), natural_of(far)]
    elif "1/" in near:
        ends = [natural_of(f"{end.split(' ')[0]} as fast") for end in (near, far)]
    else:
        number, unit, *given = far.split(" ", 2)
        said = f"{unit} {given[0]}" if given else direction
        ends = [natural_of(f"{near} {said}"), natural_of(f"{number} {said}")]
    if "<" in text or ">" in text:
        assert high > low * CAP, text
        return
    for end, ratio in zip(sorted(ends), wanted, strict=True):
        assert math.isclose(end, ratio, rel_tol=0.06, abs_tol=0.002), (text, wanted)


@pytest.mark.parametrize(
    ("share", "text"), [(0.0996, "10 %"), (0.0994, "9.9 %"), (0.0004, "0.04 %"), (0, "0 %")]
)
def test_shares(share, text):
    assert percent(share) == text
