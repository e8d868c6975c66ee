"""The plan of a study: which trial runs when, with which seed.

A plan is a pure function of a study with a seed. Rounds are produced on demand, because with a
time budget nobody knows at the start how many will fit; round ``n`` is the same however many
follow it. The digest covers everything but the number of rounds and the budget, so that a study
may be continued with more of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iolab.digest import sha256
from iolab.frozen import frozen, replace
from iolab.study.checks import PlanNote, check
from iolab.study.designs import DESIGNS
from iolab.study.estimate import Cost, cost_of, ops_of
from iolab.study.model import Levels, Study
from iolab.study.render import spec_toml
from iolab.study.slice_lengths import unit_cost
from iolab.study.treatment import Place, Treatment, treatments_of
from iolab.study.validity import ADJACENT, PAIRS, check_adjacent, check_pairs, is_shown

RANDOM, TABLE = "factorial", "table"


@frozen
class Trial:
    """One planned execution of a treatment."""

    trial_id: str
    ordinal: int
    """1-based place in the whole plan."""
    round: int
    position: int
    """0-based place inside its round."""
    treatment: Treatment
    seed: int
    """Equal for all treatments of a workload in a round, so that they do the same random work."""
    is_plot_start: bool
    """True if a round begins, or its hard-to-change levels differ from the trial before."""

    @property
    def workload(self) -> str:
        """Name of its workload."""
        return self.treatment.workload.name

    @property
    def levels(self) -> Levels:
        """Its varied levels."""
        return self.treatment.levels


@frozen
class Plan:
    """A study with its seed, its treatments and what was noticed about them."""

    study: Study
    seed: int
    treatments: tuple[Treatment, ...]
    notes: tuple[PlanNote, ...]
    design: str = RANDOM

    @property
    def digest(self) -> str:
        """Identity of what is executed, whatever the number of rounds and what it is judged by."""
        # Looks are levels of a number of rounds: with them it belongs to the plan.
        rounds = self.study.rounds if self.study.looks else None
        open_ended = replace(
            self.study,
            rounds=rounds,
            budget_ns=None,
            metric=None,
            metric_of=None,
            specification=(),
            command=(),
        )
        text = f"{self.design}\n{spec_toml(open_ended)}"
        return sha256(text.encode()).hexdigest()

    @property
    def look_rounds(self) -> tuple[int, ...]:
        """After which rounds it is looked whether all is decided; the last one is the end."""
        looks, rounds = self.study.looks, self.study.rounds
        return look_rounds(rounds, looks) if looks and rounds else ()

    @property
    def rounds(self) -> int | None:
        """Rounds asked for; None if only a budget limits them."""
        return self.study.rounds

    def round_trials(self, round_number: int) -> tuple[Trial, ...]:
        """All trials of one round (1-based), in the order of execution."""
        order = DESIGNS[self.design](
            self.treatments,
            compared=self.study.compared_factor,
            seed=self.seed,
            round_number=round_number,
        )
        first_ordinal = (round_number - 1) * len(self.treatments) + 1
        trials = list[Trial]()
        for position, treatment in enumerate(order):
            ordinal = first_ordinal + position
            is_plot_start = position == 0 or order[position - 1].whole_plot != treatment.whole_plot
            trials.append(
                Trial(
                    trial_id=f"t{ordinal:04d}",
                    ordinal=ordinal,
                    round=round_number,
                    position=position,
                    treatment=treatment,
                    seed=_trial_seed(self.seed, round_number, treatment.workload.name),
                    is_plot_start=is_plot_start,
                )
            )
        return tuple(trials)

    def n_trials(self, rounds: int) -> int:
        """Number of trials of the first `rounds` rounds."""
        return rounds * len(self.treatments)

    def trials(self, rounds: int) -> Iterator[Trial]:
        """Trials of the first `rounds` rounds."""
        for round_number in range(1, rounds + 1):
            yield from self.round_trials(round_number)

    def round_cost(self) -> Cost:
        """Guessed cost of one round; ``file_bytes`` is the peak, the rest are sums.

        The round of a study in slices is a balanced unit.
        """
        if self.design == PAIRS:
            return unit_cost(self.study, self.treatments)
        costs = [cost_of(treatment) for treatment in self.treatments]
        return Cost(
            written_bytes=sum(cost.written_bytes for cost in costs),
            moved_bytes=sum(cost.moved_bytes for cost in costs),
            file_bytes=max(cost.file_bytes for cost in costs),
            duration_ns=sum(cost.duration_ns for cost in costs),
            is_bound=all(cost.is_bound for cost in costs),
            is_file_bound=all(cost.is_file_bound for cost in costs),
        )


def round_ops(plan: Plan) -> int | None:
    """Operations of one round's tests; None if some end by the clock."""
    counts = [ops_of(treatment) for treatment in plan.treatments]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def look_rounds(rounds: int, looks: int) -> tuple[int, ...]:
    """After which of `rounds` rounds to look: equal steps, rounded up, the last is the end."""
    return tuple(dict.fromkeys(-(-rounds * look // looks) for look in range(1, looks + 1)))


def make_plan(study: Study, table: Sequence[Place] | None = None) -> Plan:
    """Plan of a study whose seed is decided.

    Parameters
    ----------
    table : the treatments that are wanted, which run in this order; otherwise all, at random.

    Raises
    ------
    StudyError : some treatment cannot run; names it and what to change.
    """
    if study.seed is None:
        raise AssertionError("draw a seed before planning: study.with_seed(...)")
    treatments, design = treatments_of(study), TABLE if study.command else RANDOM
    if study.design == PAIRS or (study.design is None and is_shown(study, treatments)):
        check_pairs(study, treatments)
        design = PAIRS
    elif study.design == ADJACENT:
        check_adjacent(study)
        design = ADJACENT
    if table is not None:
        placed = {treatment.place: treatment for treatment in treatments}
        treatments, design = tuple(placed[place] for place in table), TABLE
    return Plan(study, study.seed, treatments, check(study, treatments), design)


def _trial_seed(seed: int, round_number: int, workload: str) -> int:
    digest = sha256(f"iolab/{seed}/round/{round_number}/{workload}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1
