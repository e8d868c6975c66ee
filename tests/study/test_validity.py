"""Workloads that may be compared in alternating slices, and what a study file says about it."""

import pytest

from iolab.errors import StudyError
from iolab.study import validity_results
from iolab.study.load import parse_study, study_from_table
from iolab.study.plan import make_plan
from iolab.study.render import spec_toml
from iolab.study.slice_lengths import (
    announcement,
    design_text,
    limits_text,
    slice_limits,
    unit_estimate_ns,
)
from iolab.study.source import FlagSource
from iolab.study.testbeds import TESTBED_KINDS
from iolab.study.validity import BUDGET_NS, VALIDITY, devices_of, is_shown, row_for, twins_of
from iolab.study.validity_results import ValidityResult


def study_of(**changes):
    table = {
        "name": "s",
        "testbed": "loop:1g",
        "seed": 7,
        "design": "pairs",
        "factors": {"record_size": ["4k", "64k"]},
        "workloads": [{"kind": "iozone", "tests": ["rewrite", "random-read"], "file_size": "1m"}],
    }
    wanted = {name: value for name, value in (table | changes).items() if value is not None}
    return study_from_table(wanted, FlagSource({}))


def test_a_study_in_slices_takes_three_minutes_and_is_written_back_equal():
    study = study_of()
    assert (study.design, study.rounds, study.budget_ns) == ("pairs", None, BUDGET_NS)
    assert parse_study(spec_toml(study)) == study
    assert make_plan(study).design == "pairs"


RESULT = ValidityResult(
    factor="record_size", levels="4k,64k", program="tests", testbed="loop",
    metric="throughput_bytes_per_s", is_buffered=False, margin=0.05, word="shown", rounds=30,
    units=60, ratio_slices=1.2, ratio_trials=1.21, low=0.97, high=1.01, p_equivalent=0.001,
    variance_ratio=9.0, kernel="6.1", date="2026-01-01",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "design"),
    [
        ({}, "pairs"),
        ({"testbed": "dir"}, "factorial"),
        ({"program": "streams"}, "factorial"),
        ({"metric": "latency_ns_p99"}, "factorial"),
        ({"is_buffered": True}, "factorial"),
        ({"rounds": 29}, "factorial"),
        ({"word": "not shown"}, "factorial"),
        # The word alone is not believed.
        ({"high": 1.06}, "factorial"),
        ({"p_equivalent": None}, "factorial"),
    ],
)
def test_a_passed_test_makes_slices_usual_for_just_what_it_was_about(monkeypatch, changes, design):
    from dataclasses import replace

    monkeypatch.setattr(validity_results, "validity_results", lambda: (replace(RESULT, **changes),))
    reads = [{"kind": "iozone", "tests": ["random-read"], "file_size": "1m"}]
    assert make_plan(study_of(design=None, rounds=3, workloads=reads)).design == design


def test_kept_results_can_be_read():
    assert all(result.rounds >= 30 for result in validity_results.validity_results())


def test_whole_trials_are_usual_as_long_as_no_row_is_shown(monkeypatch):
    monkeypatch.setattr(validity_results, "validity_results", lambda: ())
    study = study_of(design="trials", rounds=3)
    assert make_plan(study).design == "factorial"
    assert not any(row.is_shown for row in VALIDITY)
    table_without = study_from_table(
        {
            "testbed": "loop:1g",
            "seed": 7,
            "factors": {"record_size": ["4k", "64k"]},
            "workloads": [{"kind": "iozone", "tests": ["random-read"]}],
        },
        FlagSource({}),
    )
    assert make_plan(table_without).design == "factorial"


def test_a_shown_row_makes_slices_the_usual_design(monkeypatch):
    from dataclasses import replace

    from iolab.study import validity

    shown = tuple(replace(row, is_shown=True) for row in VALIDITY)
    monkeypatch.setattr(validity, "VALIDITY", shown)
    study = study_from_table(
        {
            "testbed": "loop:1g",
            "seed": 7,
            "rounds": 3,
            "factors": {"record_size": ["4k", "64k"]},
            "workloads": [{"kind": "iozone", "tests": ["random-read"], "file_size": "1m"}],
        },
        FlagSource({}),
    )
    assert make_plan(study).design == "pairs"
    buffered = study_from_table(
        {
            "testbed": "loop:1g",
            "seed": 7,
            "rounds": 3,
            "factors": {"record_size": ["4k", "64k"]},
            "settings": {"direct": "false"},
            "workloads": [{"kind": "iozone", "tests": ["random-read"], "file_size": "1m"}],
        },
        FlagSource({}),
    )
    assert make_plan(buffered).design == "factorial"


READ_AHEAD = {
    "factors": {"read_ahead_kb": ["0", "128"]},
    "settings": {"direct": "false"},
    "workloads": [{"kind": "iozone", "tests": ["read", "random-read"], "file_size": "1m"}],
}
REWRITE = [{"kind": "iozone", "tests": ["rewrite"], "file_size": "1m"}]


@pytest.mark.parametrize(
    ("changes", "devices", "places", "least"),
    [
        ({"testbed": "loop:1g"}, "twins", 2, 12_000_000),
        (
            {"testbed": "device:/dev/null", "settings": {"direct": "false", "fs": "ext4"}},
            "switched",
            1,
            12_000_000,
        ),
        # bfq needs longer than a short slice to become itself again on a device that paused.
        (
            {
                "testbed": "device:/dev/null",
                "settings": {"direct": "false", "fs": "ext4", "scheduler": "bfq"},
            },
            "switched",
            1,
            1_200_000_000,
        ),
    ],
)
def test_read_ahead_is_compared_where_devices_can_differ_in_it(changes, devices, places, least):
    plan = make_plan(study_of(**READ_AHEAD | changes))
    assert plan.design == "pairs"
    assert devices_of(plan.study) == devices
    limits = slice_limits(plan.study, plan.treatments)
    assert (limits.places, limits.min_ns) == (places, least)


def test_buffered_reads_may_differ_in_how_they_are_called():
    reads = {"factors": {"record_size": ["4k", "64k"]}}
    assert make_plan(study_of(**READ_AHEAD | reads)).design == "pairs"


def test_buffered_writes_alternate_where_each_slice_ends_with_an_fsync(monkeypatch):
    from dataclasses import replace

    from iolab.study import validity

    for is_buffered in (False, True):
        shown = (replace(row, is_shown=True, is_of_buffered=is_buffered) for row in VALIDITY)
        monkeypatch.setattr(validity, "VALIDITY", tuple(shown))
        settings = {"direct": "false", "fsync": "timed"}
        study = study_of(settings=settings, workloads=REWRITE)
        plan = make_plan(study)
        assert plan.design == "pairs"
        # Only if it is asked for: what was shown is direct I/O, or reads.
        assert not is_shown(study, plan.treatments)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"testbed": "device:/dev/null", "factors": {"scheduler": ["none", "bfq"]}},
            "bfq and kyber adapt",
        ),
        (READ_AHEAD | {"settings": {}}, "direct I/O reads nothing ahead"),
        (READ_AHEAD | {"testbed": "dir:/tmp"}, "has other readers"),
        (READ_AHEAD | {"settings": {"direct": "false", "cache": "warm"}}, "each slice drops it"),
        (
            {"settings": {"direct": "false"}, "workloads": REWRITE},
            "is written during the slices of others",
        ),
        ({"settings": {"fsync": "timed"}, "workloads": REWRITE}, "flushes inside the timed"),
        ({"factors": {"vm.dirty_ratio": ["5", "20"]}}, "it belongs to the machine"),
        (
            {"factors": {"nr_requests": [str(number) for number in range(32, 50)]}},
            "18 sets of knobs would need as many devices",
        ),
        (
            {"testbed": "dir:/tmp", "factors": {"scheduler": ["none", "mq-deadline"]}},
            "nobody has looked whether they are valid for scheduler",
        ),
        ({"settings": {"direct": "false"}}, "writes through the page cache"),
        ({"settings": {"workers": "2"}}, "several workers"),
        ({"settings": {"fsync": "timed"}}, "flushes inside"),
        ({"metric": "latency_ns_p999"}, "valid for record_size"),
        ({"factors": {}}, "nothing is varied"),
        ({"width": "2%", "budget": "1h"}, "a wanted width"),
        (
            {"workloads": [{"kind": "iozone", "tests": ["write"], "file_size": "1m"}]},
            "test write makes new files",
        ),
        (
            {
                "testbed": "device:/dev/null",
                "factors": {"scheduler": ["none", "mq-deadline"]},
                "settings": {"nr_requests": "64"},
            },
            "nr_requests would be reset",
        ),
    ],
)
def test_what_slices_cannot_compare_is_refused_with_the_reason(changes, why):
    with pytest.raises(StudyError, match="alternating slices cannot compare this") as caught:
        make_plan(study_of(**changes))
    assert why in str(caught.value)
    assert caught.value.hint


def test_what_belongs_to_the_machine_is_sent_to_neighbouring_trials():
    with pytest.raises(StudyError) as caught:
        make_plan(study_of(factors={"vm.dirty_ratio": ["5", "20"]}))
    assert "--design adjacent" in caught.value.hint
    changes = {"design": "adjacent", "rounds": 3, "settings": {"direct": "false"}}
    neighbours = study_of(factors={"vm.dirty_ratio": ["5", "20"]}, **changes)
    assert make_plan(neighbours).design == "adjacent"


def test_a_design_that_is_none_is_refused_by_name():
    with pytest.raises(StudyError, match="'pair' is no design"):
        study_of(design="pair")


def test_the_first_row_that_fits_decides():
    rates = "throughput_bytes_per_s"
    without = row_for("scheduler", ("none", "mq-deadline"), "tests", ("loop", rates))
    adaptive = row_for("scheduler", ("none", "kyber"), "tests", ("loop", rates))
    on_disk = row_for("scheduler", ("none", "kyber"), "tests", ("device", rates))
    assert without is not None
    assert (without.slices, without.devices) == ("short", "twins")
    assert adaptive is not None
    assert (adaptive.slices, adaptive.devices) == ("long", "twins")
    assert on_disk is not None
    assert on_disk.slices == "trials"
    assert row_for("scheduler", ("none",), "tests", ("dir", rates)) is None


def test_every_row_names_what_exists_and_says_why():
    from iolab.study.factors import find_factor
    from iolab.study.metric_names import parse_metric

    kinds = {kind.name for kind in TESTBED_KINDS}
    for row in VALIDITY:
        assert find_factor(row.factor).name == row.factor
        assert set(row.testbeds) <= kinds
        assert row.why
        assert all(parse_metric(metric) == metric for metric in row.metrics)
        assert all(find_factor(row.factor).parse(level) for level in row.levels)


SECOND = 1_000_000_000
CONTENTION = {
    "name": "beside",
    "kind": "mixed",
    "duration": "2s",
    "streams": [
        {"name": "reader", "direction": "read", "record_size": "4k", "file_size": "4m"},
        {"name": "writer", "direction": "write", "record_size": "64k", "file_size": "4m"},
    ],
}


@pytest.mark.parametrize(
    ("changes", "min_ns", "places"),
    [
        ({"factors": {"scheduler": ["none", "mq-deadline"]}}, 12_000_000, 2),
        ({"factors": {"scheduler": ["none", "kyber"]}}, SECOND // 2, 2),
        ({"factors": {"scheduler": ["none", "mq-deadline", "bfq"]}}, 12 * SECOND // 10, 3),
        ({"factors": {"nr_requests": ["64", "128"]}}, 12_000_000, 2),
        (
            {"factors": {"nr_requests": ["64", "128"]}, "settings": {"scheduler": "bfq"}},
            12 * SECOND // 10,
            2,
        ),
        (
            {"factors": {"scheduler": ["none", "kyber"], "record_size": ["4k", "64k"]}},
            SECOND // 2,
            2,
        ),
        (
            {"factors": {"scheduler": ["none", "kyber"]}, "workloads": [CONTENTION]},
            SECOND // 2,
            2,
        ),
        (
            {"factors": {"scheduler": ["none", "mq-deadline"]}, "workloads": [CONTENTION]},
            2 * SECOND,
            2,
        ),
        ({"factors": {"label": ["A", "B"]}, "workloads": [CONTENTION]}, SECOND // 2, 1),
    ],
)
def test_slices_outlast_what_schedulers_remember(changes, min_ns, places):
    plan = make_plan(study_of(**changes))
    limits = slice_limits(plan.study, plan.treatments)
    assert (limits.min_ns, limits.places) == (min_ns, places)
    assert twins_of(plan.study, plan.treatments) == places
    assert limits.min_ns <= limits.max_ns <= 2 * SECOND
    assert limits.settle_ns >= min_ns // 5 or not limits.is_long
    # One slice of each cell on each device, and two of each where there is one device, fit.
    cells = sum(len(getattr(t.workload, "tests", "1")) for t in plan.treatments)
    slices = cells * (places if places > 1 else 2)
    assert unit_estimate_ns(limits, cells) >= slices * (limits.min_ns + limits.washout_ns)


def test_a_plan_in_slices_says_how_they_are_arranged_and_what_they_decide():
    twins = make_plan(study_of(factors={"scheduler": ["none", "bfq"]}))
    said = announcement(twins)
    assert said.startswith("alternating slices of 1.2 to 2 s on 2 twin devices; a balanced unit")
    assert "intervals of about" in said
    one = make_plan(study_of())
    assert devices_of(one.study) == "one"
    assert limits_text(slice_limits(one.study, one.treatments)) == (
        "alternating slices of 12 to 65 ms"
    )
    # A unit is not a round of trials: writes go on as long as slices do.
    assert one.round_cost().duration_ns >= 2_500_000_000
    assert not one.round_cost().is_bound


def test_the_design_names_its_slices_sessions_and_layouts():
    assert design_text(26e6, 1) == "alternating slices of 26 ms, one session, one layout"
    assert design_text(1.2e9, 1, 3) == (
        "alternating slices of 1.2 s on 3 twin devices, one session, one layout"
    )
    assert design_text(12.4e6, 2) == (
        "alternating slices of 12 ms, 2 sessions, each with a layout of its own"
    )


def test_the_advice_about_the_page_cache_can_be_typed():
    with pytest.raises(StudyError) as caught:
        make_plan(study_of(settings={"direct": "false"}))
    assert isinstance(caught.value, StudyError)
    flags = caught.value.hint.partition("--direct")
    assert flags[1], caught.value.hint
    assert not flags[2].strip(" ,;").startswith(("true", "false")), "the flag takes no value"


@pytest.mark.parametrize(
    "factors",
    [
        {"fs": ["ext4", "xfs"]},
        {"mount_options": ["defaults", "noatime"]},
        {"mkfs_options": ["defaults", "-O ^has_journal"], "record_size": ["4k", "64k"]},
    ],
)
def test_file_systems_are_compared_on_sets_of_images(factors):
    plan = make_plan(study_of(factors=factors))
    limits = slice_limits(plan.study, plan.treatments)
    assert (devices_of(plan.study), limits.images, limits.places) == ("images", 2, 1)
    assert twins_of(plan.study, plan.treatments) == 2
    assert "on sets of 2 images, each set made anew; a set takes" in announcement(plan)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"rounds": 4}, "4 sets of images are too few"),
        ({"factors": {"fs": ["ext4", "xfs"], "nomerges": ["0", "1"]}}, "varied at once"),
        ({"testbed": "device:/dev/null"}, "nobody has looked"),
        ({"workloads": [{"kind": "iozone", "tests": ["write"], "file_size": "1m"}]}, "new files"),
    ],
)
def test_sets_of_images_that_would_say_nothing_are_refused(changes, why):
    with pytest.raises(StudyError, match=why):
        make_plan(study_of(**{"factors": {"fs": ["ext4", "xfs"]}} | changes))


def test_a_design_on_images_names_them():
    assert design_text(12e6, 6, images=2) == (
        "alternating slices of 12 ms on 6 sets of 2 fresh images"
    )
