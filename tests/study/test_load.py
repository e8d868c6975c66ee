"""Study files: what they mean, and that every mistake is answered with place and remedy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.errors import StudyError
from iolab.study.factors import FACTORS, FactorKind, find_factor
from iolab.study.load import load_study, parse_study
from iolab.study.model import (
    Factor,
    IozoneWorkload,
    MixedWorkload,
    Priority,
    Stream,
    Study,
    TestbedRequest,
)
from iolab.study.plan import make_plan
from iolab.study.render import spec_toml
from iolab.study.stream_keys import FLUSHES, LOCKS, PATTERNS
from iolab.study.workloads import IOZONE_TESTS

GOOD = """\
name = "schedulers"
testbed = "loop:1g"
seed = 7
rounds = 5
margin = "5%"

[factors]
scheduler = ["none", "mq-deadline", "bfq"]
record_size = ["4k", "32k"]

[settings]
fs = "ext4"
direct = true

[[workloads]]
name = "iozone"
kind = "iozone"
tests = ["write", "read"]
file_size = "32m"

[[workloads]]
name = "contention"
kind = "mixed"
duration = "4s"
settings = { driver_queue_depth = "4" }

[[workloads.streams]]
name = "reader"
direction = "read"
pattern = "uniform"
record_size = "4k"
depth = 16
workers = 2
file_size = "64m"
"""


def test_a_good_file_means_what_it_says():
    study = parse_study(GOOD)
    assert study.factors[0] == Factor("scheduler", ("none", "mq-deadline", "bfq"))
    assert (study.compared_factor, study.baseline) == ("scheduler", "none")
    assert study.workloads[1].settings == (("driver_queue_depth", "4"),)
    plan = make_plan(study)
    assert len(plan.treatments) == 3 * 2 + 3
    mixed = next(item for item in plan.treatments if item.workload.name == "contention")
    assert mixed.effective["engine"] == "io_uring"
    assert mixed.effective["driver_queue_depth"] == "4"
    assert dict(mixed.levels).keys() == {"scheduler"}


# (what is replaced, by what, parts of the message)
BAD = [
    ('"32k"]', '"32x"]', ["line 9", "record_size", "'32x' is not a size"]),
    ('record_size = ["4k", "32k"]', 'record_sise = ["4k", "8k"]', ["line 9", "'record_size'"]),
    ('"bfq"', '"bqf"', ["line 8", "did you mean 'bfq'"]),
    ('"bfq"', '"cfq"', ["older kernels", "offers 'bfq'"]),
    ('"bfq"', '"noop"', ["offers 'none'"]),
    ('"bfq"', '"deadline"', ["offers 'mq-deadline'"]),
    ('"bfq"', '"none"', ["level 'none' is given twice"]),
    ('fs = "ext4"', 'fs = "ext5"', ["line 12", "settings.fs", "did you mean 'ext4'"]),
    ('fs = "ext4"', 'fs = ["ext4", "xfs"]', ["list"]),
    ('fs = "ext4"', 'scheduler = "none"', ["both varied and held"]),
    ("direct = true", 'direct = "yes"', ["neither true nor false"]),
    ("direct = true", "workers = 0", ["not a whole number above zero"]),
    ("direct = true", "workers = 100000", ["more than 4096"]),
    ("direct = true", 'nomerges = "all"', ["not a whole number"]),
    ("seed = 7", 'seed = "x"', ["line 3", "not a seed"]),
    ("seed = 7", "seeds = 7", ["did you mean 'seed'"]),
    ("seed = 7", 'seed = "x', ["line 3", "not TOML", "quotes"]),
    ("rounds = 5", "rounds = 0", ["line 4", "from 1 to 1000"]),
    ("rounds = 5", "rounds = true", ["number of rounds"]),
    ("rounds = 5", 'budget = "soon"', ["not a duration", "30m"]),
    ('margin = "5%"', 'margin = "500%"', ["between 0 % and 100 %"]),
    ('margin = "5%"', 'compare = "fs"', ["'fs' is not varied", "scheduler, record_size"]),
    ('margin = "5%"', 'baseline = "kyber"', ["not a level of scheduler", "mq-deadline"]),
    ('margin = "5%"', 'baseline = "cfq"', ["offers 'bfq'"]),
    ('testbed = "loop:1g"\n', "", ["'testbed' is missing"]),
    ('"loop:1g"', "7", ["loop:1g, dir:PATH, device:PATH or sim:PROFILE"]),
    ('"loop:1g"', '{ kind = "loop", sise = "1g" }', ["did you mean 'size'"]),
    ('"loop:1g"', '{ kind = "lop" }', ["did you mean 'loop'"]),
    ('"schedulers"', '"a/b"', ["line 1", "not a name"]),
    ('tests = ["write", "read"]', 'tests = ["write", "raed"]', ["line 18", "did you mean 'read'"]),
    ('tests = ["write", "read"]', "tests = []", ["at least one test"]),
    ('tests = ["write", "read"]', 'tests = ["read", "read"]', ["named twice"]),
    ('tests = ["write", "read"]\n', "", ["'tests' is missing", "line 15"]),
    ('kind = "mixed"', 'kind = "mixd"', ["line 23", "did you mean 'mixed'"]),
    ('name = "contention"', 'name = "iozone"', ["two workloads are called 'iozone'"]),
    ('name = "contention"', "depth = 3", ["there is no 'depth'"]),
    ('{ driver_queue_depth = "4" }', '{ record_size = "4k" }', ["belongs to its streams"]),
    ('direction = "read"', 'direction = "reads"', ["not a direction", "70%"]),
    ('direction = "read"', 'direction = "170%"', ["not a direction"]),
    ('pattern = "uniform"', 'pattern = "unifrom"', ["did you mean 'uniform'"]),
    ("depth = 16", "dpth = 16", ["line 32", "did you mean 'depth'"]),
    ("depth = 16", "depth = 16\nrate = 0", ["not a rate"]),
    ("depth = 16", "depth = 16\nfsync_every = 4", ["nothing to fsync"]),
    ('name = "reader"', 'name = "all"', ["'all' is the sum"]),
]


@pytest.mark.parametrize(("old", "new", "parts"), BAD, ids=[f"{new[:30]}" for _, new, _ in BAD])
def test_mistakes_are_answered_with_place_and_remedy(old, new, parts):
    assert old in GOOD, "the case must change the file"
    with pytest.raises(StudyError) as caught:
        parse_study(GOOD.replace(old, new, 1))
    assert caught.value.exit_code == 1
    for part in ("study.toml", *parts):
        assert part in str(caught.value)


# Mistakes that only show when levels are combined.
IMPOSSIBLE = [
    ('file_size = "32m"', 'file_size = "16k"', ["32k is larger than the file (16k)"]),
    ('"4k", "32k"', '"4k", "1000"', ["1000 is not a multiple of 512", "--buffered"]),
    ("direct = true", 'engine = "psync"', ["depth 16 would silently be 1", "io_uring"]),
    ('record_size = "4k"', 'record_size = "1g"', ["contention/reader", "larger than the file"]),
    ("direct = true", '"kyber.read_lat_nsec" = 1', ["kyber is not among the schedulers"]),
    ("direct = true", "vm.dirty_ratio = 1\nvm.dirty_bytes = 4096", ["two views of one setting"]),
    ('"loop:1g"', '"dir:/tmp"', ["a directory keeps the file system"]),
    ('fs = "ext4"', 'fs = "btrfs"\nexternal_journal = true', ["btrfs has no journal"]),
]


@pytest.mark.parametrize(("old", "new", "parts"), IMPOSSIBLE)
def test_impossible_combinations_are_refused_before_anything_runs(old, new, parts):
    assert old in GOOD
    study = parse_study(GOOD.replace(old, new, 1))
    with pytest.raises(StudyError) as caught:
        make_plan(study)
    for part in parts:
        assert part in str(caught.value)


def test_one_configuration_is_a_study_too():
    text = GOOD.replace('["none", "mq-deadline", "bfq"]', '"none"').replace('"4k", "32k"', '"4k"')
    study = parse_study(text)
    assert not study.is_comparison
    assert (study.factors, study.compared_factor, study.baseline) == ((), "", "")
    assert dict(study.settings)["scheduler"] == "none"
    seeded = study.with_seed(1)
    make_plan(seeded)
    assert parse_study(spec_toml(seeded)) == seeded


def test_a_single_run_is_a_study_without_a_factor():
    study = parse_study('testbed = "dir:/x"\n[[workloads]]\nkind = "iozone"\ntests = ["read"]\n')
    assert (study.factors, study.compared_factor, study.baseline) == ((), "", "")
    assert "compare" not in spec_toml(study)
    assert "[factors]" not in spec_toml(study)


def test_the_file_of_a_single_run_that_an_older_program_stored_is_read():
    """Symptom: it had a factor with one level, and compared it."""
    old = (
        'testbed = "dir:/x"\ncompare = "direct"\nbaseline = "true"\n[factors]\n'
        'direct = ["true"]\n[[workloads]]\nkind = "iozone"\ntests = ["read"]\n'
    )
    study = parse_study(old)
    assert not study.is_comparison
    assert dict(study.settings) == {"direct": "true"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ('compare = "scheduler"\n', "nothing is varied"),
        ('baseline = "bfq"\n', "there is no baseline"),
    ],
)
def test_words_about_a_comparison_are_refused_where_nothing_is_compared(words, said):
    text = f'testbed = "dir:/x"\n{words}[[workloads]]\nkind = "iozone"\ntests = ["read"]\n'
    with pytest.raises(StudyError, match=said):
        parse_study(text)


@pytest.mark.parametrize("zero", ['"0"', "0", '"0s"', '"0 ms"'])
def test_no_pause_can_be_written_as_zero(zero):
    with_pause = GOOD.replace("direction", f"think = {zero}\ndirection", 1)
    assert with_pause != GOOD
    assert parse_study(with_pause) == parse_study(GOOD)


def test_headline_workload_must_follow_the_compared_factor():
    held = GOOD.replace('file_size = "32m"', 'settings = { scheduler = "none" }', 1)
    with pytest.raises(StudyError, match="first workload, 'iozone'"):
        parse_study(held)


def test_a_factor_that_no_workload_follows_is_refused():
    held = GOOD.replace('file_size = "32m"', 'record_size = "4k"', 1)
    with pytest.raises(StudyError, match="no workload follows record_size"):
        parse_study(held)


def test_memory_is_not_called_durable():
    text = GOOD.replace("direct = true", 'engine = "mmap"\ndirect = false\ndurability = "dsync"')
    with pytest.raises(StudyError, match="cannot make each write durable"):
        make_plan(parse_study(text))


def test_flags_are_known_by_name():
    flags = find_factor("flags")
    assert flags.parse("dsync,nowait") == ("dsync,nowait",)
    assert flags.parse("defaults") == ("defaults",)
    with pytest.raises(ValueError, match=r"'dsnyc' is not one of .*did you mean 'dsync'"):
        flags.parse("dsnyc")


def test_missing_file_names_its_neighbour(tmp_path):
    (tmp_path / "study.toml").write_text(GOOD)
    with pytest.raises(StudyError, match=r"did you mean 'study\.toml'"):
        load_study(tmp_path / "studdy.toml")
    with pytest.raises(StudyError, match="is a directory"):
        load_study(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="byte 1 is not UTF-8"):
        load_study(tmp_path / "binary.toml")


def test_ranges_lists_and_aliases():
    definition = find_factor("record-size")
    assert definition is find_factor("io_size") is find_factor("reclen")
    assert definition.parse("4k..32k") == ("4k", "8k", "16k", "32k")
    for text, reason in (
        ("32k..4k", "backwards"),
        ("4k..20k", "doubled some times"),
        ("1..16m", "levels, more than"),
    ):
        with pytest.raises(ValueError, match=reason):
            definition.parse(text)


def test_factor_table_is_consistent():
    names = [name for row in FACTORS for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    for row in FACTORS:
        if row.default is not None:
            assert row.parse(row.default) == (row.default,)
        has_names = row.kind is FactorKind.NAME or row.name == "flags"
        assert bool(row.choices) == has_names


NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
SIZES = st.integers(min_value=1, max_value=64).map(lambda n: f"{n}k")
OPTION_TEXTS = st.text(min_size=1, max_size=12).map(str.strip).filter(bool)
STREAMS = st.builds(
    Stream,
    name=NAMES.filter(lambda name: name != "all"),
    read_share=st.floats(0, 99).map(lambda percent: percent / 100),
    pattern=st.sampled_from(PATTERNS),
    io_size_bytes=st.integers(1, 1 << 40),
    depth=st.integers(1, 64),
    workers=st.integers(1, 64),
    file_bytes=st.integers(1, 1 << 40),
    rate_ops_per_s=st.none() | st.floats(0.1, 1e6),
    fsync_every=st.integers(1, 100),
    flush=st.sampled_from(FLUSHES),
    vectors=st.integers(1, 8),
    flags=st.sampled_from([(), ("dsync",), ("dsync", "nowait")]),
    lock=st.sampled_from(LOCKS),
    is_preallocated=st.booleans(),
    begins_ns=st.integers(0, 100),
    ends_ns=st.none() | st.integers(101, 10**13),
)
WORKLOADS = st.tuples(
    st.builds(
        IozoneWorkload,
        name=st.just("iozone"),
        tests=st.lists(st.sampled_from(IOZONE_TESTS), min_size=1, unique=True).map(tuple),
        stride=st.integers(1, 100),
        settings=st.sampled_from([(), (("file_size", "64m"), ("vm.dirty_ratio", "10"))]),
    ),
    st.builds(
        MixedWorkload,
        name=st.just("mixed"),
        duration_ns=st.integers(1, 10**13),
        streams=st.lists(STREAMS, min_size=1, max_size=3, unique_by=lambda s: s.name).map(tuple),
        settings=st.sampled_from([(), (("nr_requests", "4"), ("engine", "io_uring"))]),
    ),
)


@st.composite
def studies(draw):
    factors = [Factor("fs", ("ext4", "xfs"))]
    if draw(st.booleans()):
        sizes = draw(st.lists(SIZES, min_size=2, max_size=4, unique=True))
        factors.insert(
            0, Factor("record_size", tuple(find_factor("io_size").parse(s)[0] for s in sizes))
        )
    options = draw(st.lists(OPTION_TEXTS, max_size=3, unique=True))
    if len(options) > 1:
        factors.append(Factor("mount_options", tuple(options)))
    return Study(
        name=draw(NAMES),
        testbed=draw(
            st.sampled_from(
                [
                    TestbedRequest("loop", "1g"),
                    TestbedRequest("dir", '/t "quoted" \\ ü'),
                    TestbedRequest("loop", "2g", (("device_count", "2"), ("image_dir", "/x y"))),
                ]
            )
        ),
        factors=tuple(factors),
        settings=(("cache", "warm"), ("vm.dirty_ratio", "10")),
        workloads=draw(WORKLOADS),
        compared_factor="fs",
        baseline="xfs",
        margin=draw(st.floats(0.001, 0.9)),
        rounds=draw(st.integers(1, 1000)),
        budget_ns=draw(st.none() | st.integers(1, 10**15)),
        seed=draw(st.none() | st.integers(0, (1 << 63) - 1)),
    )


@given(studies())
def test_rendering_a_study_and_loading_it_gives_an_equal_study(study):
    assert parse_study(spec_toml(study)) == study


def simulated(text="", *, testbed="sim:fixed-100us", stream="", factor='["noop", "deadline"]'):
    """Small study whose only mistake is the caller's."""
    return parse_study(
        f'''
testbed = "{testbed}"
seed = 1
[factors]
scheduler = {factor}
[settings]
{text}
[[workloads]]
kind = "mixed"
duration = "1s"
[[workloads.streams]]
name = "reader"
direction = "read"
record_size = "4k"
file_size = "1m"
{stream}
'''
    )


def test_a_simulated_queue_has_the_older_schedulers_and_their_tunables():
    study = simulated('"deadline.fifo_batch" = 4')
    assert study.levels_in_use("scheduler") == ("noop", "deadline")
    assert dict(study.settings) == {"deadline.fifo_batch": "4"}
    make_plan(study)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('"deadline.fifo_batch" = -1', ["out of range", "from 0 to"]),
        ('"deadline.front_merges" = 2', ["out of range", "from 0 to 1"]),
        ('"deadline.fifo_bach" = 1', ["did you mean 'deadline.fifo_batch'"]),
        ("rq_affinity = 1", ["a sim testbed has no knob rq_affinity"]),
        ('"vm.vfs_cache_pressure" = 10', ["a sim testbed has no knob vm.vfs_cache_pressure"]),
    ],
)
def test_a_knob_that_a_simulated_queue_lacks_is_refused_where_it_stands(text, parts):
    with pytest.raises(StudyError) as caught:
        simulated(text)
    for part in ("study.toml, line 7, settings", *parts):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("direct = false", "a simulation has no buffered files without a file system"),
        ('cache = "warm"', "no page cache"),
        ('memory_limit = "1g"', "no memory that could be limited"),
        ("external_journal = true", "lies on one device in simulation"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(text, part):
    with pytest.raises(StudyError, match=part):
        make_plan(simulated(text))


def test_a_tunable_of_an_older_scheduler_needs_a_simulation():
    with pytest.raises(StudyError, match=r"settings.*no scheduler of the running kernel"):
        simulated('"deadline.fifo_batch" = 4', testbed="loop:1g", factor='["none", "mq-deadline"]')


@pytest.mark.parametrize(
    ("stream", "parts"),
    [
        ('priority = "rt/8"', ["level goes from 0", "to 7"]),
        ('priority = "idl"', ["did you mean 'idle'", "be/7"]),
        ('priority = "idle/3"', ["idle has no levels"]),
        ("priority = 3", ["'3' is not a priority"]),
        ('think = "long"', ["not a duration"]),
        ('think = "1ms"\ndepth = 4', ["one in flight, not 4"]),
    ],
)
def test_priorities_and_think_times_that_mean_nothing(stream, parts):
    with pytest.raises(StudyError) as caught:
        simulated(stream=stream)
    for part in ("study.toml, line 1", *parts):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "priority"),
    [
        ("rt/0", Priority("rt", 0)),
        ("be/2", Priority("be", 2)),
        ("be", Priority("be", 4)),
        ("idle", Priority("idle")),
    ],
)
def test_a_stream_has_a_priority_and_thinks(text, priority):
    study = simulated(stream=f'priority = "{text}"\nthink = "1ms"')
    stream = study.workloads[0].streams[0]
    assert (stream.priority, stream.think_ns) == (priority, 1_000_000)
    assert study.has_real_time_streams == (priority.class_ == "rt")
    assert parse_study(spec_toml(study)) == study


def test_a_file_that_no_study_can_be_is_refused_without_reading_it_whole(tmp_path):
    huge = tmp_path / "huge.toml"
    with huge.open("w") as file:
        file.write(GOOD)
        file.truncate(1 << 40)  # Sparse: reading it would end the memory.
    with pytest.raises(StudyError, match="is larger than 1m"):
        load_study(huge)
    deep = tmp_path / "deep.toml"
    deep.write_text("a = " + "[" * 100_000 + "]" * 100_000)
    with pytest.raises(StudyError, match="nested too deeply"):
        load_study(deep)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    marked = tmp_path / "marked.toml"
    marked.write_text(GOOD, encoding="utf-8-sig")
    assert load_study(marked) == parse_study(GOOD)


def test_an_option_and_its_opposite_are_two_levels():
    """Seen: `--mount-options delalloc,nodelalloc` was run as one treatment with both."""
    text = """
name = "s"
testbed = "loop:1g"
rounds = 3
seed = 1
[factors]
mount_options = [{}]
[[workloads]]
name = "w"
kind = "iozone"
tests = ["write"]
file_size = "16m"
"""
    with pytest.raises(StudyError, match="delalloc and nodelalloc at once") as caught:
        make_plan(parse_study(text.format('"delalloc,nodelalloc", "noatime"')))
    assert "--mount-options delalloc --mount-options nodelalloc" in caught.value.hint
    make_plan(parse_study(text.format('"delalloc", "nodelalloc,noatime"')))
