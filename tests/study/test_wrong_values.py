"""Wrong values of every TOML type at every key of a study file: a message, never a bug.

Issue 14, point 8. Seen: `margin = []`, `file_size = 1.5`, a date and nine other kinds ended with
exit code 70, because parsers that were written for texts and numbers met lists, tables and dates.
Now the reader tells whatever a parser cannot take, with file, line, key and value.
"""

import pytest

from iolab.errors import IolabError, StudyError
from iolab.run.core import load_core
from iolab.run.trial import check_specs
from iolab.study.factors import FACTORS
from iolab.study.load import STUDY_BYTES_MAX, load_study, parse_study
from iolab.study.plan import make_plan
from iolab.testbed.model import make_testbed

WRONG = (
    *("[]", "{}", "[[]]", "[{}]", "[1]", '[""]', '["x", 1]', "[[[[1]]]]", "{ a = 1 }"),
    *('""', '" "', '"\\u0000"', '"x"', '"\\u202e"', '"-1"', '"1.5"', '"1e400"', '"4k..4q"'),
    *("1.5", "-1.5", "inf", "-inf", "nan", "true", "false", "0", "-1", "4097"),
    *("9223372036854775807", "9223372036854775808", "1" + "0" * 40, "1" + "0" * 4000, '"9"'),
    *('"' + "9" * 5000 + '"', "1e308", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z"),
    *('"' + "a" * 300 + '"', '"4k,4k"', '","', '"/"', '"é"', '"\\ud7ff"'),
)
TOP = {
    "name": '"s"',
    "testbed": '"sim:fixed-100us"',
    "seed": "7",
    "rounds": "9",
    "budget": '"1h"',
    "margin": '"5%"',
    "looks": "2",
    "width": '"5%"',
    "compare": '"record_size"',
    "baseline": '"4k"',
    "metric": '"p99"',
    "metric_of": '"r"',
    "factors": "{ record_size = '4k,8k' }",
    "settings": "{ nr_requests = 128 }",
    "specification": "{ read = '3100MB/s' }",
}
IOZONE = {
    **{"kind": '"iozone"', "name": '"w"', "tests": '["write"]', "stride": "17", "settings": "{}"},
    **{"file_size": '"1m"', "workers": "1", "depth": "1"},
}
MIXED = {
    **{"kind": '"mixed"', "name": '"w"', "duration": '"1s"', "settings": "{}", "changes": "[]"},
    "streams": '[{ name = "r", direction = "read", record_size = "4k", file_size = "1m" }]',
}
CONTENTION = {
    **{"kind": '"contention"', "preset": '"video"', "name": '"w"', "duration": '"1s"'},
    "file_size": '"1m"',
}
STREAM = {
    **{"name": '"r"', "direction": '"read"', "pattern": '"uniform"', "record_size": '"4k"'},
    **{"depth": "1", "workers": "1", "file_size": '"1m"', "rate": "5", "fsync_every": "0"},
    **{"flush": '"fsync"', "vectors": "1", "flags": '""', "lock": '"none"', "think": '"0"'},
    **{"preallocate": "false", "begin": '"1ms"', "end": '"1s"', "priority": '"be/2"'},
    **{"operations": "5", "cgroup_weight": "100", "read_bytes_per_s": "5", "write_ops_per_s": "5"},
}
TESTBED = {
    **{"path": '"/tmp"', "size": '"1g"', "image_dir": '"/tmp"', "device_count": "1"},
    **{"logical_block_bytes": "512", "allow_knobs_on": '["sda"]', "digest": '"x"'},
    **{"allow_destructive": '"S"', "precondition": '"sequential"', "precondition_round": '"x"'},
}


SCHEDULERS = {"factors": "{ scheduler = 'noop,deadline' }"}
ON_LOOP = {"testbed": '"loop:1g"', "factors": "{ scheduler = 'none,bfq' }"}


def body(table):
    return "\n".join(f"{key} = {value}" for key, value in table.items())


def study(top=None, workload=None, header="[[workloads]]"):
    """A study file; the top-level keys that are given replace the usual ones."""
    usual = {key: TOP[key] for key in ("testbed", "rounds", "seed", "factors")} | (top or {})
    return f"{body(usual)}\n{header}\n{body(workload or IOZONE)}\n"


def cases():
    """(key, text with a place for its value)."""
    for key in TOP:
        yield key, study({key: "@"})
    for kind in (IOZONE, MIXED, CONTENTION):
        for key in kind:
            yield key, study(SCHEDULERS, {**kind, key: "@"})
    for key in STREAM:
        stream = body({**{k: STREAM[k] for k in list(STREAM)[:7]}, key: "@"}).replace("\n", ", ")
        yield key, study(SCHEDULERS, {**MIXED, "streams": f"[{{ {stream} }}]"})
    for name in ("at", "nr_requests"):
        change = ", ".join(
            f"{k} = {v}" for k, v in {"at": '"1ms"', "nr_requests": "9", name: "@"}.items()
        )
        yield name, study(ON_LOOP, {**MIXED, "changes": f"[{{ {change} }}]"})
    for factor in FACTORS:
        for table in ("factors", "settings"):
            top = {"testbed": '"loop:1g"', table: f"{{ '{factor.name}' = @ }}"}
            yield factor.name, study(top)
    for kind in ("loop", "dir", "device", "sim"):
        for key in ("kind", "name", *TESTBED):
            table = f"{{ kind = '{kind}', {key} = @ }}" if key != "kind" else "{ kind = @ }"
            yield key, study({"testbed": table})
    for key in ("read", "write"):
        yield key, study({"specification": f"{{ {key} = @ }}"})


CASES = list(cases())
N_OF_EVERY_VALUE = 60
"""Cases up to here, keys that are read one by one, get every value; factors share their parsers."""


@pytest.fixture(scope="module")
def core():
    return load_core()


def understand(text, core):
    """As `iolab run --dry-run` does, before it asks the testbed."""
    understood = parse_study(text)
    request = understood.testbed
    make_testbed(request.kind, request.argument, dict(request.options))
    plan = make_plan(understood)
    if len(plan.treatments) < 100:
        check_specs(plan, core)


def answer_to(text, core):
    """The message that a file gets; None if it may be run."""
    try:
        understand(text, core)
    except IolabError as error:
        return error
    return None


def check_answer(key, value, error):
    """Faults of a study file are told with the key; what only a machine can tell may be refused,
    too.
    """
    text = str(error)
    if not isinstance(error, StudyError) or "study.toml" not in text:
        assert error.exit_code in (1, 2), (value, text)
        return
    assert error.exit_code == 1, (value, text)
    is_first = "nothing changes" in text or "sim: needs a profile" in text
    assert key in text or is_first, (value, text)
    assert len(text) < 1500, (value, text)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_wrong_value_is_answered(number, core):
    key, text = CASES[number]
    for value in WRONG[number % 3 :: 3] if number >= N_OF_EVERY_VALUE else WRONG:
        changed = text.replace("@", value)
        problem = answer_to(changed, core)
        if problem is not None:
            check_answer(key, value, problem)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("margin = []", ["line 1, margin", "is not a share: write 5% or 0.05"]),
        ("margin = 1979-05-27", ["line 1, margin", "1979-05-27", "is not a share"]),
        ("margin = true", ["line 1, margin", "True is not a share"]),
        ("budget = 07:32:00", ["line 1, budget", "is not a duration"]),
        ("budget = inf", ["line 1, budget", "is not a duration"]),
        ("looks = 1.5", ["line 1, looks", "is not a number of looks"]),
        ("seed = 1" + "0" * 5000, ["study.toml", "too long"]),
        ("margin = 1\nmargin = 2", ["line 2", "this is not TOML"]),
        ("a = '\x00'", ["line 1", "this is not TOML"]),
    ],
)
def test_what_was_seen_to_fail_is_told(line, parts):
    with pytest.raises(StudyError) as caught:
        parse_study(line + "\n" + study())
    for part in parts:
        assert part in str(caught.value)


def test_a_size_that_is_a_fraction_is_told():
    with pytest.raises(StudyError, match=r"file_size: '1.5' is not a size: write a whole number"):
        parse_study(study({}, {**IOZONE, "file_size": "1.5"}))


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"\xff\xfe\x00", "byte 1 is not UTF-8"),
        (b"name = '\xe9'\n", "byte 9 is not UTF-8"),
        (b"\x00" * 100, "this is not TOML"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a" * (STUDY_BYTES_MAX + 1), "is larger than"),
        (b"", "there is no workload"),
    ],
)
def test_what_is_no_text_is_told(tmp_path, content, part):
    path = tmp_path / "study.toml"
    path.write_bytes(content)
    with pytest.raises(StudyError) as caught:
        load_study(path)
    assert part in str(caught.value)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "study.toml"
    path.write_bytes(b"\xef\xbb\xbf" + study().encode())
    assert load_study(path).rounds == 9
