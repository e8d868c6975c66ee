"""Trial specs: exactly the shape of contract 0002."""

from iolab.run.trial import check_specs, trial_spec


def spec_of(plan, core, name):
    trial = next(item for item in plan.round_trials(1) if name in item.treatment.name)
    return trial_spec(trial, core, is_fresh_fs=True)


def test_stack_knobs_and_workload_of_a_loop_trial(plan_of, core):
    plan = plan_of(
        settings={
            "mkfs_options": "-b 1024  -m 0",
            "mount_options": "nodelalloc,noatime",
            "memory_limit": "64m",
            "vm": {"dirty_ratio": 10},
            "bfq.slice_idle": 0,
            "direct": False,
        }
    )
    spec = spec_of(plan, core, "bfq, record_size=8k")
    assert set(spec) == {
        "trial",
        "stack",
        "is_fresh_fs",
        "knobs",
        "cache",
        "memory_limit_bytes",
        "reserve_bytes",
        "time_limit_ns",
        "workload",
    }
    assert spec["stack"] == {
        "fs": "ext4",
        "mkfs_options": ["-b", "1024", "-m", "0"],
        "mount_options": ["nodelalloc", "noatime"],
        "has_external_journal": False,
    }
    assert spec["knobs"] == {"scheduler": "bfq", "vm.dirty_ratio": "10", "bfq.slice_idle": "0"}
    assert (spec["cache"], spec["memory_limit_bytes"]) == ("cold", 64 << 20)
    assert spec["workload"]["access"] == "plain"
    assert spec["workload"]["io_size_bytes"] == 8192
    assert spec["workload"]["file_bytes"] == 1 << 20
    assert spec["workload"]["seed"] == plan.round_trials(1)[0].seed


def test_a_directory_has_no_stack(plan_of, core):
    plan = plan_of(testbed="dir:/tmp")
    spec = spec_of(plan, core, "none, record_size=4k")
    assert spec["stack"] is None
    assert spec["is_fresh_fs"] is False


def test_a_mixed_workload_holds_its_own_knobs(plan_of, core):
    stream = {
        "name": "reader",
        "direction": "70%",
        "record_size": "4k",
        "file_size": "1m",
        "depth": 4,
        "rate": "500/s",
        "priority": "rt/2",
        "vectors": 4,
        "flags": "nowait",
        "begin": "500ms",
    }
    mixed = {
        "name": "mix",
        "kind": "mixed",
        "duration": "2s",
        "settings": {"driver_queue_depth": 4},
        "streams": [stream],
    }
    iozone = {"kind": "iozone", "tests": ["write"], "file_size": "1m"}
    plan = plan_of(workloads=[iozone, mixed])
    spec = spec_of(plan, core, "mix (scheduler=none)")
    assert spec["knobs"] == {"scheduler": "none", "driver_queue_depth": "4"}
    workload = spec["workload"]
    (reader,) = workload["streams"]
    expected = {
        "name": "reader",
        "read_share": 0.7,
        "pattern": "uniform",
        "io_size_bytes": 4096,
        "depth": 4,
        "workers": 1,
        "file_bytes": 1 << 20,
        "rate_ops_per_s": 500.0,
        "fsync_every": 0,
        "think_ns": 0,
        "priority": {"class": "rt", "level": 2},
        "flush": "fsync",
        "vectors": 4,
        "flags": ["nowait"],
        "lock": "none",
        "is_preallocated": False,
        "begins_ns": 500_000_000,
        "ends_ns": None,
        "ops": None,
        "share": None,
    }
    assert {key: reader[key] for key in expected} == expected
    assert "changes" not in spec
    assert "io_groups" not in spec
    assert {key: value for key, value in workload.items() if key != "streams"} == {
        "name": "mix",
        "duration_ns": 2_000_000_000,
        "engine": "io_uring",
        "workers_as": "threads",
        "access": "direct",
        "seed": spec["workload"]["seed"],
        "cuts_ns": [],
        "verify": "none",
    }
    assert "driver_queue_depth" not in spec_of(plan, core, "iozone")["knobs"]


def test_every_treatment_is_lowered_before_anything_runs(plan_of, core):
    check_specs(plan_of(), core)
    assert {item["io_size_bytes"] for item in core.inputs} == {4096, 8192}
    assert len(core.inputs) == 4
