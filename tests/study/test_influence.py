"""Varied factors must be able to matter: refused by name, or noted, before anything is touched."""

import pytest

from iolab.errors import StudyError
from iolab.study.influence import inert_parts
from iolab.study.load import parse_study
from iolab.study.names import ENGINES, TESTS
from iolab.study.plan import make_plan
from iolab.study.simulated import ALIKE

SIM = "sim:fixed-100us"


def plan(factors, *, testbed="dir:/tmp", tests="write,read", settings="", workload=None):
    body = workload or f'[[workloads]]\nkind = "iozone"\ntests = "{tests}"\n'
    text = (
        f'name = "inert"\ntestbed = "{testbed}"\nrounds = 5\n\n'
        f"[factors]\n{factors}\n\n[settings]\n{settings}\n\n{body}"
    )
    return make_plan(parse_study(text).with_seed(1))


def codes(found):
    return [note.code for note in found.notes]


@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        ('engine = ["psync", "sync"]', "submit alike: psync and sync cannot be compared"),
        ('workers_as = ["threads", "processes"]', "workers_as cannot be compared"),
        ('lock = ["none", "record"]', "simulated files have no locks"),
        ('vectors = [1, 4]\nengine = ["pvsync"]', "vectors cannot be compared"),
        ("wbt_lat_usec = [0, 2000]", "wbt_lat_usec cannot be compared"),
        ('flush = ["fsync", "fdatasync"]\nfsync_every = [4, 8]', "fsync and fdatasync cannot"),
    ],
)
def test_what_is_not_simulated_is_not_compared_in_simulation(factors, reason):
    held = [line for line in factors.splitlines() if line.startswith('engine = ["pv')]
    varied = "\n".join(line for line in factors.splitlines() if line not in held)
    with pytest.raises(StudyError, match=reason):
        plan(varied, testbed=SIM, settings='engine = "pvsync"' if held else "")


def test_one_level_of_what_is_not_simulated_may_be_held():
    found = plan('scheduler = ["noop", "deadline"]', testbed=SIM, settings='engine = "sync"')
    assert len(found.treatments) == 2
    assert "workers_as" in {row.factor for row in ALIKE if not row.levels}
    alike = next(row for row in ALIKE if row.factor == "engine").levels
    assert set(alike) == {engine.name for engine in ENGINES if engine.default_access == "plain"}


@pytest.mark.parametrize("engine", ["mmap", "stdio"])
def test_simulation_refuses_engines_without_direct_access_as_a_machine_does(engine):
    reasons = {SIM: "without a file system", "dir:/tmp": "always goes through the page"}
    for testbed, reason in reasons.items():
        with pytest.raises(StudyError, match=reason):
            plan('record_size = ["4k", "8k"]', testbed=testbed, settings=f'engine = "{engine}"')


@pytest.mark.parametrize(
    ("factors", "tests", "reason"),
    [
        (
            'flush = ["fsync", "fdatasync"]',
            "write",
            "flush is never called: fsync_every is missing",
        ),
        ('cache = ["cold", "as_is"]', "read", "direct I/O does not pass the page cache"),
        ("read_ahead_kb = [64, 512]", "read", "direct I/O reads nothing ahead"),
        ('engine = ["psync", "sync"]', "fwrite,pread,preadv,pwritev", "calls of their own"),
        ("direct = [true, false]", "fwrite,fread", "calls of their own"),
        ("vm.dirty_ratio = [10, 20]", "write,read", "direct I/O leaves no dirty pages"),
        ("vm.dirty_expire_centisecs = [10, 20]", "write", "direct I/O leaves no dirty pages"),
        ('memory_limit = ["64m", "none"]', "write,read", "it limits the page cache"),
        ('durability = ["none", "sync"]', "read,random-read", "only writes are made durable"),
        ('fsync = ["none", "after"]', "read,reread", "only writing phases are flushed"),
        ("fsync_every = [4, 8]", "random-read", "only writes are flushed"),
    ],
)
def test_a_factor_that_cannot_matter_anywhere_is_refused(factors, tests, reason):
    with pytest.raises(StudyError, match=reason):
        plan(factors, tests=tests)


@pytest.mark.parametrize(
    ("factors", "tests", "place"),
    [
        ('flush = ["fsync", "fdatasync"]\nfsync_every = ["never", 4]', "write", "never"),
        ('cache = ["cold", "as_is"]', "read,fread", "(read)"),
        ('cache = ["cold", "as_is"]\ndirect = [true, false]', "read", "direct = true"),
        ('engine = ["psync", "sync"]', "write,pwrite,fwrite", "(pwrite, fwrite)"),
        ('durability = ["none", "sync"]', "write,read", "(read)"),
        ('fsync = ["none", "after"]', "write,read,mix", "(read)"),
        ("vm.dirty_ratio = [10, 20]\ndirect = [true, false]", "write,read", "direct = true"),
    ],
)
def test_a_factor_that_matters_in_a_part_is_noted(factors, tests, place):
    (note,) = [n for n in plan(factors, tests=tests).notes if n.code == "factor_without_effect"]
    assert place in note.message
    assert note.hint


BUFFERED_READS = """
[[workloads]]
kind = "mixed"
duration = "1s"
direct = false
[[workloads.streams]]
name = "a"
direction = "{direction}"
record_size = "4k"
file_size = "1m"
"""


def test_what_never_writes_leaves_nothing_dirty():
    with pytest.raises(StudyError, match="what only reads leaves no dirty pages behind"):
        plan("vm.dirty_ratio = [10, 20]", tests="read", settings="direct = false")
    knob = "vm.dirty_bytes = [1000000, 2000000]"
    with pytest.raises(StudyError, match="what only reads leaves no dirty pages behind"):
        plan(knob, testbed="loop:1g", workload=BUFFERED_READS.format(direction="read"))
    found = plan(knob, testbed="loop:1g", workload=BUFFERED_READS.format(direction="90%"))
    assert "factor_without_effect" not in codes(found)


def test_a_file_written_through_the_cache_may_lie_elsewhere():
    found = plan('durability = ["none", "sync"]', tests="write,read", settings="direct = false")
    assert "factor_without_effect" not in codes(found)


def test_flags_that_mean_nothing_in_simulation_are_refused_by_name():
    for flag in ("nowait", "hipri", "dontcache"):
        for levels in (f'["defaults", "{flag}"]', f'["dsync,{flag}", "defaults"]'):
            with pytest.raises(StudyError, match=f"flags {flag} on {SIM}"):
                plan(f"flags = {levels}", testbed=SIM, tests="write")
    (note,) = plan('flags = ["defaults", "dsync"]', testbed=SIM).notes
    assert "(read)" in note.message


def test_a_factor_that_matters_is_not_noted():
    for factors, settings in (
        ("vm.dirty_ratio = [10, 20]", "direct = false"),
        ('memory_limit = ["64m", "none"]', "direct = false"),
        ('flags = ["defaults", "nowait"]', 'engine = "pvsync2"'),
        ('cache = ["cold", "as_is"]', "direct = false"),
        ('durability = ["none", "sync"]', ""),
        ('flush = ["fsync", "fdatasync"]', "fsync_every = 4"),
        ('engine = ["psync", "sync"]', ""),
    ):
        found = plan(factors, tests="write", settings=settings)
        assert "factor_without_effect" not in codes(found)


def test_tests_with_calls_of_their_own_are_known_by_their_properties():
    """A table in Rust says which they are (`names.json`); no name stands in the front end."""
    streams = {test.name for test in TESTS if test.access == "stdio"}
    own = {test.name for test in TESTS if test.has_own_calls}
    assert len(streams) == 4
    assert streams < own < {test.name for test in TESTS}
    every = ",".join(test.name for test in TESTS if test.name != "mix")
    for factor, levels, expected in (
        ("engine", '["psync", "sync"]', own),
        ("direct", "[true, false]", streams),
        ("lock", '["none", "record"]', streams),
        ("record_size", '["4k", "8k"]', set()),
    ):
        found = plan(f"{factor} = {levels}", tests=every, settings='file_size = "1m"')
        for treatment in found.treatments:
            assert set(inert_parts(found.study, factor, treatment)) == expected


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ('["none", "bfq"]', "under none"),
        ('["mq-deadline", "kyber"]', "under mq-deadline, kyber"),
        (None, "unless the device uses bfq"),
    ],
)
def test_weights_that_no_scheduler_honours_are_noted(levels, said):
    stream = 'direction = "read"\nrecord_size = "4k"\nfile_size = "1m"\ncgroup_weight = 100\n'
    workload = (
        '[[workloads]]\nkind = "mixed"\nduration = "1s"\nworkers_as = "processes"\n'
        f'[[workloads.streams]]\nname = "a"\n{stream}'
    )
    factors = f"scheduler = {levels}" if levels else "nr_requests = [64, 128]"
    found = plan(factors, testbed="loop:1g", workload=workload)
    (note,) = [n for n in found.notes if n.code == "weight_without_effect"]
    assert said in note.message


@pytest.mark.parametrize(
    ("factors", "settings", "told"),
    [
        (
            "record_size = [4096, 8192]",
            "read_ahead_kb = 128",
            "read_ahead_kb = 128 changes nothing",
        ),
        ('read_ahead_kb = [128]\nrecord_size = ["4k", "8k"]', "", "direct I/O reads nothing ahead"),
        ("record_size = [4096, 8192]", "io_poll = 1", "only requests that ask for polling feel it"),
        ("wbt_lat_usec = [0, 2000]", "", "wbt_lat_usec can hardly matter here"),
    ],
)
def test_a_knob_that_cannot_matter_is_told_before_the_run(factors, settings, told):
    """A knob that was held, or that only buffered files feel, went unsaid."""
    direct = plan(factors, settings=settings, testbed="loop:1g")
    assert any(told in note.message for note in direct.notes), direct.notes
    if "io_poll" in settings:
        settings += '\nengine = "io_uring_poll"'
    else:
        settings += "\ndirect = false"
    assert not any(
        told in note.message for note in plan(factors, settings=settings, testbed="loop:1g").notes
    )


def test_polling_is_not_compared_where_nothing_polls():
    with pytest.raises(StudyError, match="io_poll cannot matter here: only requests that ask"):
        plan("io_poll = [0, 1]", testbed="loop:1g")
    plan('io_poll = [0, 1]\nengine = ["io_uring_poll"]', testbed="loop:1g")
