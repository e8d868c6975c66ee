"""``iolab check`` as it is typed: words and exit codes, what is listed, refused and left behind."""

import io
import json
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import TestbedError
from iolab.library.check import (
    CheckResult,
    check_study,
    check_time_ns,
    find_requirements,
    judged_records,
)
from iolab.library.check_text import check_text, requirements_text
from iolab.study.requirements import REQUIREMENTS
from iolab.testbed.command import find_agent

SECOND_NS = 10**9


def iolab(*words):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in words], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def histogram(value, count):
    shift = max(0, int(value).bit_length() - 8)
    part = (int(value) >> shift) + (shift << 7)
    return {
        **{"unit": "ns", "count": count, "min": value, "max": value, "sum": value * count},
        **{"sub_bucket_bits": 7, "counts": [[part, count]]},
    }


def record(flush_ns=1_000_000, *codes, count=100):
    worker = {"elapsed_ns": SECOND_NS, "ops": count, "read_bytes": 0, "write_bytes": 2300 * count}
    service = {"read": None, "write": histogram(2000, count), "sync": histogram(flush_ns, count)}
    warnings = [{"code": code, "message": f"about {code}", "hint": "do that"} for code in codes]
    tenant = {"name": "etcd", "workers": [worker], "service": service}
    return {
        "facts": {},
        "warnings": [],
        "phases": [{"name": "etcd", "tenants": [tenant], "warnings": warnings}],
    }


def judged(records, **facts):
    told = {name.replace("__", "."): value for name, value in facts.items()}
    (requirement,) = find_requirements("etcd")
    return judged_records(requirement, records, told, Path("/data"))


def needs_agent():
    try:
        find_agent()
    except TestbedError as error:
        pytest.skip(f"needs iolab-agent: {error}")


def test_a_directory_is_measured_and_left_as_it_was(tmp_path, monkeypatch):
    needs_agent()
    temporary, data = tmp_path / "tmp", tmp_path / "data"
    temporary.mkdir()
    data.mkdir()
    (data / "mine").write_text("kept")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    code, out, err = iolab("check", data, "--for", "etcd,postgres", "--time", "12s", "--json")
    found = json.loads(out)
    etcd, postgres = found["requirements"]
    assert code == {"PASS": 0, "FAIL": 5, "UNDECIDED": 4}[etcd["word"]], err
    assert found["directory"] == str(data)
    (criterion,) = etcd["criteria"]
    assert criterion["limit"] == 10e6
    assert criterion["unit"] == "ns"
    assert criterion["interval"][0] <= criterion["value"]
    assert etcd["sources"][0] == "https://etcd.io/docs/v3.5/faq/"
    assert postgres["word"] is None
    assert [one["limit"] for one in postgres["criteria"]] == [None, None]
    assert all(one["value"] > 0 for one in postgres["criteria"])
    assert [path.name for path in data.iterdir()] == ["mine"]
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--for", "etdc"), "there is no such requirement; did you mean 'etcd'?"),
        (("--time", "1s"), "--time 1s is not between 5 s and 1 h"),
        (("--time", "soon"), "--time: 'soon' is not a duration"),
        (("/nowhere/at/all", "--for", "etcd"), "/nowhere/at/all does not exist"),
        (("/dev/null", "--for", "etcd"), "/dev/null is not a directory"),
        (("/proc", "--for", "etcd"), "/proc lies on no file system for data"),
        (("/tmp", "--list"), "--list measures nothing, and /tmp is named"),
    ],
)
def test_what_cannot_be_checked_is_refused(words, message):
    if words[0].startswith("/"):
        needs_agent()
    code, out, err = iolab("check", *words)
    assert code in (1, 2)
    assert message in err
    assert "--on" not in err
    assert out == ""


def test_the_list_has_every_limit_with_its_source():
    code, out, _ = iolab("check", "--list")
    assert code == 0
    for one in REQUIREMENTS:
        assert f"{one.name}  " in out
        assert all(source.url in out for source in one.sources)
    assert "500 flushes per second" in " ".join(out.split())
    assert "nothing; figures only" in out
    listed = json.loads(iolab("check", "--list", "--json", "--for", "gitaly")[1])
    assert [limit["limit"] for limit in listed[0]["limits"]] == [8000.0, 2000.0]


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda one: one.name)
def test_each_requirement_is_a_study_with_its_phases(requirement):
    study = check_study(requirement, {"kind": "dir", "path": "/tmp"}, check_time_ns("1m"))
    assert study.rounds == 20
    assert study.testbed == "dir:/tmp"
    phases = {word.removeprefix("--name=") for word in requirement.job.split()}
    assert {one.operation for one in requirement.criteria} <= phases
    assert all(source.url.startswith("https://") for source in requirement.sources)
    assert requirements_text([requirement]).startswith(requirement.name)


def test_the_word_and_the_notes_follow_from_the_records():
    assert judged([record()] * 8).judged.word == "PASS"
    assert judged([record(20_000_000)] * 8).judged.word == "FAIL"
    few = judged([record()] * 3).judged
    assert few.word == "UNDECIDED"
    assert few.criteria[0].reason.startswith("3 complete rounds of at least 4")


@pytest.mark.parametrize(
    ("facts", "memory"),
    [
        ({"fs__type": "tmpfs"}, "tmpfs"),
        ({"fs__type": "ext4", "fs__source": "/dev/zram0"}, "/dev/zram0"),
        ({"fs__type": "ext4", "fs__source": "/dev/ram1"}, "/dev/ram1"),
        ({"fs__type": "ext4", "device__loop3__below__fs": "tmpfs"}, "loop3, a file on tmpfs"),
    ],
)
def test_files_in_memory_get_no_word(facts, memory):
    for flush_ns in (1_000_000, 20_000_000):
        found = judged([record(flush_ns)] * 8, **facts).judged
        assert found.word == "UNDECIDED"
        assert f"lie in memory ({memory})" in found.criteria[0].reason


def test_files_on_a_disk_below_a_loop_device_get_a_word():
    facts = {"fs__type": "ext4", "fs__source": "/dev/loop3", "device__loop3__below__fs": "ext4"}
    assert judged([record(1_000_000)] * 8, **facts).judged.word == "PASS"


@pytest.mark.parametrize("option", ["nobarrier", "barrier=0"])
def test_a_file_system_without_flushes_is_told(option):
    found = judged([record(1_000_000)] * 8, fs__options=f"rw,relatime,{option}")
    assert [note.code for note in found.notes] == ["no_barriers"]
    assert option in found.notes[0].text
    assert judged([record(1_000_000)] * 8, fs__options="rw,relatime,barrier=1").notes == ()


def test_a_busy_processor_forbids_fail_and_the_page_cache_pass():
    assert judged([record(20_000_000, "cpu_bound")] * 8).judged.word == "UNDECIDED"
    assert judged([record(20_000_000, "generator_bound")] * 8).judged.word == "UNDECIDED"
    assert judged([record(1_000_000, "cpu_bound")] * 8).judged.word == "PASS"
    assert judged([record(1_000_000, "page_cache")] * 8).judged.word == "UNDECIDED"
    assert judged([record(20_000_000, "page_cache")] * 8).judged.word == "FAIL"


def test_what_disturbs_most_rounds_is_told_by_name():
    found = judged(
        [record(1_000_000, "cpu_pressure")] * 6 + [record()] * 2,
        fs__type="nfs4",
        device__nvme0n1__queue__write_cache="write through",
    )
    assert [note.code for note in found.notes] == ["cpu_pressure", "network", "no_flushes"]
    assert found.notes[0].text.endswith("not the storage: about cpu_pressure.")
    assert found.notes[1].text == "/data lies on a network file system (nfs4)."
    assert judged([record(1_000_000, "load")] + [record()] * 7).notes == ()


def test_notes_name_the_rows_that_they_are_about():
    """Symptom: rows said PASS, and below them "a processor may have been the limit" of none."""
    told = [record(1_000_000, "cpu_pressure")] * 8
    (gitaly,) = find_requirements("gitaly")
    checked = (judged(told), judged_records(gitaly, [record()] * 8, {}, Path("/data")))
    result = CheckResult(Path("/data"), "ext4", "/dev/vda", checked)
    text = " ".join(check_text(result, is_table=True, width=200).split())
    assert "Note on etcd: a processor may have been the limit" in text
    both = CheckResult(Path("/data"), "ext4", "/dev/vda", (judged(told), judged(told)))
    assert "Note on every row: " in check_text(both, is_table=True, width=200)


def test_progress_names_the_requirement(tmp_path):
    """Symptom: "trial 7 of 7, round 7 of 7: fio" twice, and nobody knew which requirement ran."""
    needs_agent()
    _, _, err = iolab("check", tmp_path, "--for", "etcd", "--time", "5s")
    assert ": etcd" in err
    assert ": fio" not in err
