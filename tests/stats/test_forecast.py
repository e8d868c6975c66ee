"""Forecasts of further rounds: ranges with a chance, drawn from what the rounds seen allow."""

import math

import pytest

from iolab.stats.methods.forecast import forecast
from iolab.stats.methods.student import estimate_mean

EDGE = math.log1p(0.05)
ALONE = (1.0, 1.0)


def test_a_clear_difference_needs_few_rounds_and_more_noise_needs_more():
    quiet = forecast(estimate_mean([0.15, 0.20, 0.25, 0.18]), EDGE, ALONE, 50)
    noisy = forecast(estimate_mean([0.00, 0.40, 0.30, 0.08]), EDGE, ALONE, 50)
    assert quiet.least is not None
    assert quiet.most is not None
    assert quiet.least <= quiet.most
    assert quiet.chance >= 0.8
    assert noisy.least is not None
    assert noisy.least > quiet.least
    assert noisy.chance < quiet.chance


def test_at_the_margin_most_futures_never_have_a_word():
    values = [EDGE + d for d in (-0.05, 0.05, -0.03, 0.03, 0.01)]
    found = forecast(estimate_mean(values), EDGE, ALONE, 50)
    assert found.most is None
    assert found.chance < 0.8


def test_a_family_asks_for_more_rounds_than_one_comparison():
    estimate = estimate_mean([0.00, 0.40, 0.30, 0.08])
    one, of_six = forecast(estimate, EDGE, ALONE, 100), forecast(estimate, EDGE, (6.0, 6.0), 100)
    assert one.least is not None
    assert of_six.least is None or of_six.least >= one.least
    assert of_six.chance <= one.chance


def test_equal_data_say_equal_numbers_and_one_value_says_nothing():
    estimate = estimate_mean([0.02, 0.09, 0.05])
    assert forecast(estimate, EDGE, ALONE, 40) == forecast(estimate, EDGE, ALONE, 40)
    assert forecast(estimate_mean([0.1]), EDGE, ALONE, 40).chance == pytest.approx(0.0)
