"""Plans: balance, whole plots, stability, identity."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.errors import StudyError
from iolab.study.load import study_from_table
from iolab.study.plan import make_plan
from iolab.study.source import FlagSource


def make(seed=7, **changes):
    table = {
        "testbed": "loop:1g",
        "seed": seed,
        "factors": {"fs": ["ext4", "xfs"], "scheduler": ["none", "bfq"], "record_size": "4k..16k"},
        "workloads": [{"kind": "iozone", "tests": "write,read", "file_size": "1m"}],
    }
    return study_from_table(table | changes, FlagSource({}))


SUBSETS = st.fixed_dictionaries(
    {"record_size": st.sampled_from(["4k", "4k..16k", "4k..64k"])},
    optional={
        "fs": st.sampled_from([["ext4", "xfs"], ["ext2", "ext4", "btrfs"]]),
        "mount_options": st.just(["noatime", "noatime,discard", "defaults"]),
        "scheduler": st.just(["none", "mq-deadline", "bfq"]),
        "direct": st.just([True, False]),
    },
).filter(lambda factors: len(factors) > 1 or factors["record_size"] != "4k")


@settings(max_examples=60)
@given(seed=st.integers(0, 2**63 - 1), factors=SUBSETS, round_number=st.integers(1, 50))
def test_every_round_holds_every_treatment_once_and_plots_stay_together(
    seed, factors, round_number
):
    plan = make_plan(make(seed, factors=factors))
    trials = plan.round_trials(round_number)
    assert Counter(trial.treatment.name for trial in trials) == Counter(
        treatment.name for treatment in plan.treatments
    )
    n_plots = len({treatment.whole_plot for treatment in plan.treatments})
    assert sum(trial.is_plot_start for trial in trials) == n_plots
    assert [trial.position for trial in trials] == list(range(len(trials)))


def test_each_treatment_visits_each_position_about_equally_often():
    plan = make_plan(make(factors={"scheduler": ["none", "bfq", "kyber"]}))
    counts = Counter(
        (trial.treatment.name, trial.position)
        for round_number in range(1, 601)
        for trial in plan.round_trials(round_number)
    )
    assert len(counts) == 9
    assert all(160 <= count <= 240 for count in counts.values()), counts


def test_the_order_is_the_same_in_every_version():
    """Stored studies are resumed by newer programs: this order must never change."""
    plan = make_plan(make(11, factors={"scheduler": ["none", "bfq"], "record_size": "4k,8k"}))
    found = [
        "/".join(level for _, level in trial.levels)
        for round_number in (1, 2)
        for trial in plan.round_trials(round_number)
    ]
    assert " ".join(found) == ("none/4k none/8k bfq/8k bfq/4k bfq/8k bfq/4k none/4k none/8k")


def test_ids_are_unique_and_ordered_over_rounds():
    plan = make_plan(make())
    trials = list(plan.trials(4))
    assert [trial.ordinal for trial in trials] == list(range(1, len(trials) + 1))
    assert trials[0].trial_id == "t0001"
    assert len({trial.trial_id for trial in trials}) == len(trials)


def test_seeds_are_shared_inside_a_round_and_fresh_between_rounds():
    plan = make_plan(make())
    seeds = [{trial.seed for trial in plan.round_trials(number)} for number in (1, 2)]
    assert len(seeds[0]) == len(seeds[1]) == 1
    assert seeds[0] != seeds[1]


def test_digest_is_the_identity_of_the_trials_not_of_their_number():
    study = make()
    digest = make_plan(study).digest
    assert make_plan(replace(study, rounds=50, budget_ns=1)).digest == digest
    assert make_plan(study.with_seed(8)).digest != digest
    assert make_plan(make(margin="6%")).digest != digest


def test_more_than_64_treatments_and_few_rounds_are_noted():
    study = make(
        rounds=3,
        factors={"record_size": "512..16m", "scheduler": ["none", "bfq"], "fs": ["ext4", "xfs"]},
        workloads=[{"kind": "iozone", "tests": "write", "file_size": "16m"}, MIXED],
    )
    codes = {note.code for note in make_plan(study).notes}
    assert codes == {"many_treatments", "few_rounds"}


def test_a_million_treatments_are_refused_before_they_are_made():
    """Symptom: they were made, until the memory ended."""
    factors = {
        "record_size": [512 * (1 + n) for n in range(1000)],
        "read_ahead_kb": [4 * n for n in range(1000)],
    }
    with pytest.raises(StudyError, match=r"1 000 000 treatments \(1000 record_size x 1000 read_"):
        make_plan(make(factors=factors))


def test_a_tunable_that_does_nothing_under_other_schedulers_is_noted():
    factors = {"scheduler": ["none", "bfq"], "bfq": {"slice_idle": [0, 8]}}
    assert [note.code for note in make_plan(make(factors=factors)).notes] == [
        "tunable_without_effect"
    ]


def test_costs_of_a_round():
    cost = make_plan(make(factors={"record_size": "4k,8k"})).round_cost()
    assert cost.written_bytes == 2 * (1 << 20)
    assert cost.file_bytes == 1 << 20
    assert cost.moved_bytes == 4 * (1 << 20)


def test_planning_without_a_seed_is_a_programmers_error():
    with pytest.raises(AssertionError, match="seed"):
        make_plan(replace(make(), seed=None))


MIXED = {
    "name": "mixed",
    "kind": "mixed",
    "duration": "1s",
    "streams": [{"name": "a", "direction": "read", "record_size": "4k", "file_size": "1m"}],
}


def adjacent(**changes):
    factors = {"scheduler": ["none", "mq-deadline", "bfq"], "record_size": "4k..16k"}
    usual = {"factors": factors, "compare": "scheduler", "design": "adjacent"}
    return make_plan(make(**usual | changes))


def test_adjacent_trials_of_a_cell_follow_each_other_in_random_order():
    plan = adjacent()
    assert plan.design == "adjacent"
    orders, cells = set(), set()
    for number in range(1, 40):
        trials = plan.round_trials(number)
        assert len({trial.treatment.place for trial in trials}) == 9
        rounds = [trials[at : at + 3] for at in range(0, 9, 3)]
        for group in rounds:
            assert len({trial.treatment.effective["record_size"] for trial in group}) == 1
            orders.add(tuple(trial.treatment.effective["scheduler"] for trial in group))
        cells.add(tuple(group[0].treatment.effective["record_size"] for group in rounds))
    assert len(orders) == 6
    assert len(cells) == 6


def test_adjacent_trials_stay_in_their_whole_plots():
    factors = {"fs": ["ext4", "xfs"], "scheduler": ["none", "bfq"], "record_size": "4k..16k"}
    plan = adjacent(factors=factors)
    for number in range(1, 20):
        systems = [trial.treatment.effective["fs"] for trial in plan.round_trials(number)]
        assert systems in (["ext4"] * 6 + ["xfs"] * 6, ["xfs"] * 6 + ["ext4"] * 6)


def test_levels_that_need_a_new_file_system_cannot_be_neighbours():
    with pytest.raises(StudyError, match="needs a new file system") as caught:
        adjacent(factors={"fs": ["ext4", "xfs"]}, compare="fs")
    assert "leave design out" in caught.value.hint
