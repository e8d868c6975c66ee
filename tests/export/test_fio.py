"""fio job files: every option where it belongs, every difference said, all of it parsed by fio."""

import itertools
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.errors import RefusedError
from iolab.export.fio import ENGINES, file_name, fio_job
from iolab.study.names import ENGINES as OUR_ENGINES
from iolab.study.workloads import IOZONE_TESTS

SINGLE = [test for test in IOZONE_TESTS if test != "mix"]  # That one needs two workers.
ROOT = Path(__file__).parents[2]
STREAM = {
    "name": "db",
    "direction": "read",
    "pattern": "uniform",
    "record_size": "4k",
    "file_size": "1m",
}


def mixed(*streams, **keys):
    return {
        "workloads": [
            {"kind": "mixed", "name": "mix", "duration": "1s"}
            | keys
            | {"streams": [STREAM | stream for stream in streams]}
        ]
    }


def sections(job):
    """Options by section; a repeated option or section is a mistake."""
    found, current = {}, None
    for line in job.splitlines():
        if line.startswith("#") or not line:
            continue
        if line.startswith("["):
            current = line[1:-1]
            assert current not in found
            found[current] = {}
            continue
        key, _, value = line.partition("=")
        assert key not in found[current]
        found[current][key] = value
    return found


def job_of(items, index=0):
    return fio_job(items[index])


def test_a_job_is_as_agreed(exported, golden):
    items = exported({"tests": SINGLE}, settings={"memory_limit": "64m"})
    golden("export/iozone-all.fio", job_of(items))


def test_a_mix_is_as_agreed(exported, golden):
    items = exported(
        **mixed(
            {"direction": "70%", "depth": 8, "workers": 2},
            {
                "name": "log",
                "direction": "write",
                "pattern": "sequential",
                "rate": 100,
                "fsync_every": 4,
                "priority": "rt/1",
            },
            {
                "name": "scan",
                "direction": "30%",
                "pattern": "reverse",
                "rate": 50.5,
                "think": "1500ns",
                "priority": "idle",
            },
            duration="1500ms",
        )
    )
    golden("export/mixed.fio", job_of(items))


def test_every_engine_of_ours_has_one_of_fio():
    assert {engine.name for engine in OUR_ENGINES} <= set(ENGINES)


def test_variants_of_io_uring_are_options_of_fio(exported, with_fields):
    (item, *_) = exported()
    job = sections(fio_job(with_fields(item, engine="io_uring_fixed")))["global"]
    assert (job["ioengine"], job["fixedbufs"], job["registerfiles"]) == ("io_uring", "1", "1")


def test_an_engine_that_fio_lacks_gives_comments_only(exported):
    (item, *_) = exported()
    job = fio_job(replace(item, workload={**item.workload, "engine": "memory"}))
    assert "# no equivalent: fio has no engine that does what 'memory' does" in job
    assert sections(job) == {}


@pytest.mark.parametrize(
    ("settings", "option", "value"),
    [
        ({"direct": "true"}, "direct", "1"),
        ({"direct": "false"}, "direct", "0"),
        ({"durability": "sync"}, "sync", "sync"),
        ({"durability": "dsync"}, "sync", "dsync"),
        ({"durability": "none"}, "sync", None),
        ({"fsync": "timed"}, "end_fsync", "1"),
        ({"fsync": "after"}, "end_fsync", None),
        ({"fsync": "after"}, "exec_postrun", "sync iozone.0"),
        ({"fsync": "after", "workers": 2}, "exec_postrun", "sync iozone.0 iozone.1"),
        ({"fsync": "none"}, "exec_postrun", None),
        ({"record_size": "16k"}, "bs", "16384"),
        ({"file_size": "2m"}, "size", "2097152"),
        ({"file_size": "10k"}, "size", "8192"),
        ({"workers": 3}, "numjobs", "3"),
        ({"depth": 8}, "iodepth", "8"),
        ({}, "create_on_open", "1"),
    ],
)
def test_settings_of_a_writing_phase(exported, settings, option, value):
    assert sections(job_of(exported(settings=settings)))["write"].get(option) == value


@pytest.mark.parametrize(
    ("settings", "option", "value"),
    [
        ({"durability": "sync"}, "sync", None),
        ({"cache": "cold"}, "invalidate", "1"),
        ({"cache": "as_is"}, "invalidate", "0"),
        ({"cache": "warm", "direct": "false"}, "pre_read", "1"),
        ({"workers": 2}, "exit_what", "stonewall"),
        ({}, "allow_file_create", "0"),
        ({}, "stonewall", "1"),
        ({}, "create_serialize", "0"),
    ],
)
def test_settings_of_a_reading_phase(exported, settings, option, value):
    workload = {"tests": ["write", "read"], "file_size": "1m"}
    items = exported(workload, settings=settings)
    assert sections(job_of(items))["read"].get(option) == value


def test_what_fio_does_of_itself_is_undone(exported):
    options = sections(job_of(exported()))["global"]
    assert options["fadvise_hint"] == "0"
    assert options["fallocate"] == "none"
    assert options["thread"] == "1"
    assert (
        "thread" not in sections(job_of(exported(settings={"workers_as": "processes"})))["global"]
    )


def test_knobs_stand_before_the_job_as_lines_for_root(exported):
    items = exported(settings={"read_ahead_kb": "64", "vm.dirty_ratio": "5", "bfq.slice_idle": 0})
    by_scheduler = {re.search(r"scheduler=([\w-]+)", item.name)[1]: fio_job(item) for item in items}
    job = by_scheduler["bfq"]
    assert "# $ echo bfq > /sys/block/DEVICE/queue/scheduler\n" in job
    assert "# $ echo 64 > /sys/block/DEVICE/queue/read_ahead_kb\n" in job
    assert "# $ echo 0 > /sys/block/DEVICE/queue/iosched/slice_idle\n" in job
    assert "# $ echo 5 > /proc/sys/vm/dirty_ratio\n" in job
    assert job.index("/scheduler") < job.index("/iosched/slice_idle")
    assert "slice_idle" not in by_scheduler["none"].partition("$ echo")[2]


def test_no_text_of_a_study_can_become_an_option(exported):
    (item, *_) = exported()
    evil = replace(item, name="x\n[evil]\nexec_prerun=reboot", environment=("a\r\nexec_prerun=b",))
    assert sections(fio_job(evil)).keys() == sections(fio_job(item)).keys()
    assert "\nexec_prerun" not in fio_job(evil)


def test_a_stream_called_global_is_a_job(exported):
    items = exported(**mixed({"name": "global"}, name="global"))
    assert sections(job_of(items))["job-global"]["rw"] == "randread"


def test_streams_run_together_and_are_reported_apart(exported):
    items = exported(**mixed({}, {"name": "log"}))
    found = sections(job_of(items))
    assert "stonewall" not in found["mix.log"]
    assert found["mix.log"]["new_group"] == "1"


def test_a_simulated_study_says_so(exported):
    items = exported(testbed="sim:fixed-100us", factors={"scheduler": ["noop", "deadline"]})
    assert "# no equivalent: the stack was simulated" in job_of(items)


def matrix(exported):
    """Treatments of every pattern, engine, cache and durability that a study can ask for."""
    for engine, direct, cache in itertools.product(
        OUR_ENGINES, (True, False), ("cold", "as_is", "warm")
    ):
        if direct and not engine.has_direct:
            continue  # Refused before anything runs.
        for workers in (1, 3):
            yield from exported(
                {"tests": SINGLE},
                settings={
                    "engine": engine.name,
                    "direct": direct,
                    "cache": cache,
                    "workers": workers,
                    "workers_as": "processes" if workers > 1 else "threads",
                },
            )
    for durability, fsync in itertools.product(
        ("none", "sync", "dsync"), ("none", "after", "timed")
    ):
        yield from exported(settings={"durability": durability, "fsync": fsync})
    for pattern in ("sequential", "reverse", "stride", "permutation", "uniform", "same"):
        for direction in ("read", "write", "33.5%"):
            yield from exported(**mixed({"pattern": pattern, "direction": direction}))
    for stream in (
        {"rate": 0.5},
        {"rate": 99.5, "direction": "50%"},
        {"think": "1ns"},
        {"priority": "be/7"},
        {"priority": "rt/0"},
        {"priority": "idle"},
        {"depth": 64},
        {"fsync_every": 3, "direction": "write"},
        {"workers": 7},
    ):
        yield from exported(**mixed(stream, {"name": "other"}, duration="1ms1ns"))


@pytest.mark.needs_fio
@pytest.mark.timeout(120)
def test_fio_understands_every_job(exported, tmp_path):
    jobs = {fio_job(item): item for item in matrix(exported)}
    assert len(jobs) > 100
    paths = []
    for number, (job, item) in enumerate(jobs.items()):
        paths.append(tmp_path / f"{number}-{file_name(item)}")
        paths[-1].write_text(job)
    done = subprocess.run(
        ["fio", "--parse-only", *paths], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def offsets(tmp_path, section, records):
    """Records that fio touches for one section, in a file of so many records."""
    with (tmp_path / "data").open("wb") as file:
        file.truncate(records * int(section["bs"]))
    keys = ("rw", "bs", "size", "io_size", "norandommap", "randrepeat", "randseed")
    options = [f"--{key}={section[key]}" for key in keys if key in section]
    log = tmp_path / "log"
    log.unlink(missing_ok=True)
    subprocess.run(
        [
            "fio",
            "--name=x",
            f"--write_iolog={log}",
            "--filename=data",
            *options,
        ],
        check=True,
        capture_output=True,
        cwd=tmp_path,
    )
    transfers = re.findall(r" (?:read|write) (\d+) (\d+)$", log.read_text(), re.MULTILINE)
    assert {int(length) for _, length in transfers} == {int(section["bs"])}
    return [int(offset) // int(section["bs"]) for offset, _ in transfers]


@pytest.mark.needs_fio
def test_patterns_touch_the_records_that_the_comments_promise(exported, tmp_path):
    items = exported({"tests": SINGLE, "file_size": "256k"})
    found = sections(job_of(items))
    records = 64
    assert offsets(tmp_path, found["write"], records) == list(range(records))
    assert sorted(offsets(tmp_path, found["random-read"], records)) == list(range(records))
    assert offsets(tmp_path, found["record-rewrite"], records) == [0] * records
    backward = offsets(tmp_path, found["backward-read"], records)
    assert backward == [0, *range(records - 2, -1, -1)]
    assert "begins at record 0, goes on with record 62 and never reads record 63" in job_of(items)
    strided = offsets(tmp_path, found["stride-read"], records)
    assert strided[:5] == [0, 17, 34, 51, 0]
    assert len(strided) == records


@pytest.mark.needs_fio
@pytest.mark.parametrize("records", [1, 2, 3, 4, 5, 7, 9, 10, 13, 31])
def test_a_stride_moves_as_many_records_as_ours_whatever_the_size(exported, tmp_path, records):
    items = exported(
        {"tests": ["read", "stride-read"], "stride": 3, "file_size": f"{records * 4}k"}
    )
    assert len(offsets(tmp_path, sections(job_of(items))["stride-read"], records)) == records


WORKLOAD_FIELDS = """
version name engine workers_as seed content verify pin_cpus interval_ns is_calibrated
goes_on_after_failure file_sets key_spaces phases
"""
PHASE_FIELDS = """
name is_stonewalled keeps_files engine ignores records_per_op cuts_ns pause_after_ns tenants
"""
TENANT_FIELDS = """
name workers is_file_shared file file_first file_step file_bytes io_size_bytes pattern
direction depth access durability fsync flush vectors flags lock is_preallocated
stream_buffer_bytes opening primes_first_record rate_ops_per_s think_ns begins_ns priority
share limit
"""


DIALECT_FIELDS = " files file_set is_close_timed manner draws region program kv"
"""Only the command lines of other programs ask for these: exports of theirs say so in comments."""


def test_what_only_command_lines_ask_for_is_said(exported, with_fields):
    manner = {"jumps_every": 100, "buffers": 4}
    item = with_fields(exported()[0], manner=manner, is_close_timed=True, opening="keep")
    item.workload["phases"][0]["pause_after_ns"] = 2_000_000_000
    notes = " ".join(fio_job(item).replace("#", " ").split())
    for text in ("buffers, jumps_every", "closing the file", "a first write", "a pause of 2 s"):
        assert f"no equivalent: {text}" in notes


def test_a_part_of_a_file_is_an_offset_and_a_size(exported, with_fields):
    region = {"from_bytes": 65_536, "bytes": 131_072, "step_bytes": 262_144}
    item = with_fields(exported()[0], region=region, is_file_shared=True, opening="existing")
    job = fio_job(item)
    found = [part for part in sections(job).values() if "offset" in part]
    assert found
    assert all(part["offset"] == "65536" for part in found)
    assert all(part["offset_increment"] == "262144" for part in found)
    assert all(part["size"] == "131072" for part in found)
    assert "no equivalent: a part of the file" not in job


def test_lowered_workloads_have_no_field_that_nobody_translates(exported):
    """A new field of the workload spec must be looked at here before it is exported."""
    crate = ROOT / "crates/iolab-workload/src"
    rust = "".join(
        (crate / name).read_text(encoding="utf-8") for name in ("spec.rs", "spec/tenant.rs")
    )
    for name, known in (
        ("Workload", WORKLOAD_FIELDS),
        ("Phase", PHASE_FIELDS),
        ("Tenant", TENANT_FIELDS + DIALECT_FIELDS),
    ):
        body = rust.partition(f"pub struct {name} {{")[2].partition("\n}")[0]
        assert set(re.findall(r"^    pub (\w+):", body, re.MULTILINE)) == set(known.split()), name


def test_operations_with_an_end_and_what_the_agent_does_beside(exported, with_fields):
    limit = {"kind": "ops", "ops": 10, "within_ns": 2_000_000_000}
    item = with_fields(exported()[0], limit=limit)
    job = fio_job(replace(item, midway=("5 s after the beginning scheduler = bfq is set.",)))
    section = next(found for found in sections(job).values() if "io_size" in found)
    assert (section["io_size"], section["runtime"]) == (str(10 * 4096), "2s")
    assert "no equivalent: 5 s after the beginning scheduler = bfq is set." in job


def test_streams_of_the_library_are_said_to_be_something_else(exported):
    job = job_of(exported({"tests": ["write", "fwrite", "fread"]}))
    found = sections(job)
    assert found["fwrite"]["ioengine"] == "sync"
    assert found["fwrite"]["direct"] == "0"
    assert "ioengine" not in found["write"]
    assert job.count("no equivalent: a stream of the C library") == 2
    assert "Asked for, but this test has none, here as in iolab: direct I/O." in job


def test_vectored_groups_are_larger_calls(exported):
    job = job_of(exported({"tests": ["pwritev", "preadv"]}))
    assert sections(job)["preadv"]["ioengine"] == "pvsync"
    assert sections(job)["preadv"]["bs"] == str(16 * 4096)
    assert "no equivalent: 16 buffers in each call; fio's calls have one." in job


def test_the_mix_has_a_section_per_worker(exported):
    found = sections(job_of(exported({"tests": ["write", "mix"]}, settings={"workers": 3})))
    files = {name: found[name]["filename_format"] for name in found if name == "write"}
    assert files == {"write": "iozone.$jobnum"}
    mixed = {name: options for name, options in found.items() if name.startswith("mix.")}
    assert {name: (o["rw"], o.get("filename", "iozone.$jobnum")) for name, o in mixed.items()} == {
        "mix.readers.0": ("randread", "iozone.$jobnum"),  # Its only clone has number 0.
        "mix.readers.1": ("randread", "iozone.2"),
        "mix.writers.0": ("randwrite", "iozone.1"),
    }


@pytest.mark.parametrize(
    ("stream", "option", "value"),
    [
        ({"flush": "fdatasync"}, "fdatasync", "3"),
        ({"flush": "sync_file_range"}, "sync_file_range", "wait_before,write,wait_after:3"),
        ({"flush": "fsync"}, "fsync", "3"),
        ({"begin": "250ms"}, "startdelay", "250ms"),
        ({"begin": "250ms"}, "runtime", "750ms"),
        ({"end": "500ms"}, "runtime", "500ms"),
    ],
)
def test_what_streams_have(exported, stream, option, value):
    writing = {"direction": "write", "fsync_every": 3}
    found = sections(job_of(exported(**mixed(writing | stream))))
    assert found["mix"][option] == value


def test_preallocation_locks_and_flags(exported, with_fields):
    (item, *_) = exported(settings={"preallocate": "true"})
    assert sections(fio_job(item))["write"]["fallocate"] == "native"
    assert "create_on_open" not in sections(fio_job(item))["write"]
    manner = {
        "preallocation": "reserved",
        "advice": "random",
        "nice": 3,
        "write_life": "long",
        "range_sync": {"waits_before": False, "writes": True, "waits_after": False},
    }
    every = {"fsync": {"kind": "every", "ops": 3}, "flush": "sync_file_range"}
    options = sections(fio_job(with_fields(item, manner=manner, **every)))["write"]
    assert (options["fallocate"], options["fadvise_hint"]) == ("keep", "random")
    assert (options["nice"], options["sync_file_range"]) == ("3", "write:3")
    assert options["write_hint"] == "long"
    flags = ["nowait", "dsync", "odd"]
    job = fio_job(with_fields(item, engine="pvsync2", flags=flags, lock="record"))
    assert "no equivalent: fcntl locks (record)" in job
    assert sections(job)["write"]["nowait"] == "1"
    assert sections(job)["write"]["sync"] == "dsync"
    assert "no equivalent: the flag odd" in job


@pytest.mark.parametrize("name", ["a]\n[b", "a b", "a;b", "$a", "-a", ""])
def test_no_name_of_a_phase_or_stream_makes_another_section(exported, name):
    item = exported()[0]
    first = {**item.workload["phases"][0], "name": name}
    hostile = replace(item, workload={**item.workload, "phases": [first]})
    with pytest.raises(RefusedError, match="cannot be exported"):
        fio_job(hostile)


def test_no_value_of_a_job_makes_another_option(exported, with_fields):
    hostile = with_fields(exported()[0], durability="sync\nexec_prerun=touch pwned")
    with pytest.raises(RefusedError, match="control characters"):
        fio_job(hostile)
