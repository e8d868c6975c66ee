"""Time that trials take: guesses first, observations as soon as there are any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iolab.study.estimate import cost_of
from iolab.study.plan import Trial
from iolab.study.treatment import Treatment


class Pace:
    """Predicts durations from the trials seen so far."""

    def __init__(self) -> None:
        self._observed_ns: dict[str, list[int]] = {}
        self._guessed_ns: dict[str, int] = {}

    @property
    def is_observed(self) -> bool:
        """Tell whether at least one trial was seen."""
        return bool(self._observed_ns)

    def observe(self, treatment: Treatment, elapsed_ns: int) -> None:
        """Take note of one finished trial."""
        self._observed_ns.setdefault(treatment.name, []).append(elapsed_ns)
        self._guessed_ns[treatment.name] = cost_of(treatment).duration_ns

    def predict_ns(self, trials: Iterable[Trial]) -> int:
        """Time that `trials` will take together."""
        return round(sum(self._one_ns(trial.treatment) for trial in trials))

    def _one_ns(self, treatment: Treatment) -> float:
        """Mean of this treatment; else its guess, corrected by how wrong other guesses were."""
        own = self._observed_ns.get(treatment.name)
        if own:
            return _mean(own)
        guess = float(cost_of(treatment).duration_ns)
        if not self._observed_ns:
            return guess
        seen = sum(_mean(times) for times in self._observed_ns.values())
        return guess * seen / sum(self._guessed_ns.values())


def _mean(times_ns: Sequence[int]) -> float:
    return sum(times_ns) / len(times_ns)
