"""Time that trials take: guesses first, observations as soon as there are any."""

from __future__ import annotations

from collections.abc import Iterable

from iolab.study.estimate import cost_of
from iolab.study.plan import Trial
from iolab.study.treatment import Treatment


class Pace:
    """Predicts durations from the trials seen so far."""

    def __init__(self) -> None:
        self._observed_ns: dict[str, tuple[int, int]] = {}
        """Sum and number, by treatment."""
        self._guessed_ns: dict[str, int] = {}

    @property
    def is_observed(self) -> bool:
        """Tell whether at least one trial was seen."""
        return bool(self._observed_ns)

    def observe(self, treatment: Treatment, elapsed_ns: int) -> None:
        """Take note of one finished trial."""
        total, number = self._observed_ns.get(treatment.name, (0, 0))
        self._observed_ns[treatment.name] = (total + elapsed_ns, number + 1)
        self._guessed_ns[treatment.name] = cost_of(treatment).duration_ns

    def predict_ns(self, trials: Iterable[Trial]) -> int:
        """Time that `trials` will take together."""
        return round(sum(self._one_ns(trial.treatment) for trial in trials))

    def predict_counts_ns(self, counts: Iterable[tuple[Treatment, int]]) -> int:
        """Time that so many trials of each treatment will take together."""
        return round(sum(count * self._one_ns(of) for of, count in counts))

    def _one_ns(self, treatment: Treatment) -> float:
        """Mean of this treatment; else its guess, corrected by how wrong other guesses were."""
        own = self._observed_ns.get(treatment.name)
        if own:
            return own[0] / own[1]
        guess = float(cost_of(treatment).duration_ns)
        if not self._observed_ns:
            return guess
        seen = sum(total / number for total, number in self._observed_ns.values())
        return guess * seen / sum(self._guessed_ns.values())
