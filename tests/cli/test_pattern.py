"""`iolab pattern`: texts of strace and truss, block traces, emitted workloads, wrong words."""

import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.library import patterns
from iolab.testbed import installed

TRACES = Path(__file__).parent.parent / "golden" / "trace"
CALLS = TRACES / "strace"


@pytest.fixture
def iolab():
    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        code = main(list(map(str, arguments)), console=Console(out, err))
        assert "Traceback" not in err.getvalue()
        return code, out.getvalue(), err.getvalue()

    return run


def found(iolab, *arguments):
    code, out, err = iolab("pattern", "--json", *arguments)
    assert code == 0, err
    return json.loads(out)


def test_every_text_of_one_program_gives_one_report(iolab):
    """Sizes, counts and phases are the program's, whatever the options of strace were."""
    reports = {}
    for name in ("f.txt", "f-ns.txt", "f-r-Xraw.txt", "f-y-T-ttt.txt", "stderr-f.txt"):
        (data,) = (
            row
            for row in found(iolab, CALLS / name, "--all")["files"]
            if Path(row["name"]).name == "data"
        )
        kept = ("pattern", "reads", "writes", "sizes", "classes", "span", "syncs", "phases")
        reports[name] = {key: data[key] for key in kept}
        # Times are those of each run.
        for phase in reports[name]["phases"]:
            del phase["pauses"], phase["before_ns"]
    assert len({json.dumps(report, sort_keys=True) for report in reports.values()}) == 1, reports
    data = reports["f.txt"]
    assert data["writes"] == {"count": 43, "bytes": 40 * 16384 + 4000 + 4000 + 333}
    assert [phase["pattern"] for phase in data["phases"]][:4] == [
        *("sequential", "sequential", "strided", "backward"),
    ]


def test_files_of_each_thread_are_one_trace_by_their_common_name(iolab):
    by_name = found(iolab, CALLS / "ff-y-ttt-T", "--only", "/data")
    whole = found(iolab, CALLS / "f-y-T-ttt.txt", "--only", "/data")
    assert by_name["files"][0]["reads"] == whole["files"][0]["reads"]


def test_the_report_reads_well(iolab):
    code, out, err = iolab("pattern", CALLS / "f-y-T-ttt.txt", "--only", "demo/data")
    assert code == 0
    assert out.splitlines()[0].split()[:4] == ["file", "pattern", "reads", "writes"]
    assert "/tmp/demo/data: " in out
    assert "In order: 40 sequential writes of 16 KiB, then" in " ".join(out.split())
    assert "io_uring; a trace of system calls does not show those transfers" in err


def test_a_listing_of_truss_is_five_random_reads(iolab, tmp_path):
    """The article's listing, as additions to the specification describe it (TR-1)."""
    places = (225968128, 174915584, 262504448, 259645440, 135151616, 38617088)
    lines = []
    for place in places:
        lines += [f"lseek(3, 0x{place:08X}, SEEK_SET)\t\t= 0x{place:08X}"]
        lines += ["read(3, 0xFFBDF5B0, 8192)\t\t\t= 0"]
    listing = tmp_path / "truss.txt"
    listing.write_text("\n".join(lines[:-1]) + "\n")
    (row,) = found(iolab, listing)["files"]
    assert row["pattern"] == "random"
    assert row["reads"] == {"count": 5, "bytes": 5 * 8192}
    assert row["is_size_by_request"]
    assert row["sought"] == 5
    out = iolab("pattern", listing)[1]
    assert "5 reads of 8 KiB, at random places" in out
    assert "Every read returned nothing" in out


def test_a_block_trace_is_a_pattern_of_its_devices(iolab):
    report = found(iolab, TRACES / "nb")
    assert [row["name"] for row in report["files"]] != []
    assert all(row["reads"]["count"] + row["writes"]["count"] > 0 for row in report["files"])
    device = report["files"][0]["name"]
    assert found(iolab, TRACES / "nb", "--device", device)["files"][0] == report["files"][0]


@pytest.mark.parametrize("form", ["study", "fio"])
def test_an_emitted_workload_never_names_the_file_itself(iolab, tmp_path, form):
    out = tmp_path / "workload"
    code, told, err = iolab(
        "pattern", CALLS / "f-y-T-ttt.txt", "--only", "data", "--emit", form, "--out", out
    )
    assert code == 0, err
    assert told.startswith("file")
    used = [line for line in out.read_text().splitlines() if not line.startswith(("#", ";"))]
    assert not any("/tmp/demo" in line for line in used)
    assert iolab("pattern", CALLS / "f.txt", "--emit", form, "--out", out)[0] == 2
    assert iolab("pattern", CALLS / "f.txt", "--emit", form)[1] != ""


def test_what_iozone_has_no_test_for_makes_no_line(iolab, tmp_path):
    out = tmp_path / "workload"
    words = ("pattern", CALLS / "f-y-T-ttt.txt", "--only", "data", "--emit", "iozone")
    code, _, err = iolab(*words, "--out", out)
    assert (code, out.exists()) == (1, False)
    assert "data: left out, use --emit fio: records of IOzone have one size" in err
    assert "iolab: no workload was made" in err
    assert iolab(*words)[1] == ""


def test_an_emitted_job_keeps_the_orders_of_reads_and_writes(iolab, tmp_path):
    lines = ['openat(AT_FDCWD, "/d/f", O_RDWR) = 3']
    for at in range(200):
        lines.append(f'pread64(3, ""..., 4096, {at * 4096}) = 4096')
        lines.append(f'pwrite64(3, ""..., 4096, {(at * at * 7919 % 1009) << 20}) = 4096')
    text = tmp_path / "trace.txt"
    text.write_text("\n".join(lines), encoding="utf-8")
    code, out, err = iolab("pattern", text, "--emit", "fio")
    assert code == 0, err
    assert "percentage_random=0,100\n" in out


def test_an_emitted_study_and_job_file_are_understood(iolab, tmp_path):
    """Both are read again by what runs them."""
    study, job = tmp_path / "pattern.toml", tmp_path / "pattern.fio"
    for form, path in (("study", study), ("fio", job)):
        words = ("--only", "demo/data", "--emit", form, "--out", path)
        assert iolab("pattern", CALLS / "f-y-T-ttt.txt", *words)[0] == 0
    code, out, err = iolab("plan", study)
    assert code == 0, err
    assert "5 rounds" in out
    code, _, err = iolab("fio", "--parse-only", job)
    assert code == 0, err


def test_names_may_have_any_bytes(iolab, tmp_path):
    text = tmp_path / "calls"
    text.write_bytes(
        b'open("a\\nb\\377<c>", O_RDONLY) = 3\n' + b'read(3, "\xff\xfe", 4096) = 4096\n' * 20
    )
    code, out, _ = iolab("pattern", text)
    assert code == 0
    assert all(line.isprintable() for line in out.splitlines())
    assert iolab("pattern", text, "--emit", "fio")[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "needs a trace, or a program to follow"),
        (("{calls}", "--for", "true"), "reads a trace, or follows a program"),
        (("{calls}", "--seconds", "3"), "--seconds is for a program that is followed"),
        (("{calls}", "--with", "strace"), "--with is for a program that is followed"),
        (("{calls}", "--out", "x"), "--out is for a workload"),
        (("{calls}", "--emit", "fio", "--json"), "--emit and --json both print"),
        (("{calls}", "--device", "loop0"), "has no devices, and loop0 is asked for"),
        (("{empty}",), "is empty"),
        (("{prose}",), "is neither a text of strace or truss nor a block trace"),
        (("nowhere",), "nowhere: there is no such file"),
        (("--pid", "0"), "there is no process 0"),
        (("--pid", "x"), "there is no process x"),
        (("--for", "true", "--seconds", "-1"), "--seconds -1 is not a time"),
    ],
)
def test_wrong_words_are_told_in_one_line(iolab, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    (tmp_path / "prose").write_text("It was a dark (and stormy) night.\n")
    shutil.copy(CALLS / "f.txt", tmp_path / "calls")
    places = {"calls": tmp_path / "calls", "empty": tmp_path / "empty", "prose": tmp_path / "prose"}
    code, out, err = iolab("pattern", *(word.format(**places) for word in words))
    assert (code, out) == (1, "")
    assert told in err
    assert len(err.splitlines()) <= 3


def test_what_is_no_call_is_told_and_the_rest_is_used(iolab, tmp_path):
    text = tmp_path / "calls"
    text.write_text('hello\nopen("f", O_RDONLY) = 3\nread(3, "", 8) = 8\nread(3, "tor')
    code, out, err = iolab("pattern", text)
    assert code == 0
    assert "1 read of 8 B" in out
    assert "line 1: it is no system call: `hello`" in err


@pytest.mark.parametrize("has_strace", [True, False])
def test_who_may_not_use_trace_points_is_told_what_to_do(iolab, monkeypatch, tmp_path, has_strace):
    """Without a wish strace follows a command; nothing runs before a refusal."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(installed, "INSTALLED_AGENT", tmp_path / "nowhere")
    ran = tmp_path / "ran"
    code, out, err = iolab("pattern", "--with", "tracepoints", "--for", f"touch {ran}")
    assert (code, out, ran.exists()) == (1, "", False)
    assert "trace points cannot be used: this needs root: run it as root" in err
    assert "install-agent" in err
    assert "--with strace" in err
    assert len(err.splitlines()) == 1
    if not has_strace:
        monkeypatch.setattr(patterns, "which", lambda _: None)
    elif shutil.which("strace") is None:
        pytest.skip("needs strace")
    code, _, err = iolab("pattern", "--for", f"touch {ran}")
    assert (code == 0, ran.exists()) == (has_strace, has_strace)
    assert "trace points" not in err if has_strace else "strace is not installed" in err


def test_a_program_that_runs_is_followed_by_strace_where_trace_points_are_not_to_be_had(
    iolab, monkeypatch, tmp_path
):
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(installed, "INSTALLED_AGENT", tmp_path / "nowhere")
    with subprocess.Popen(["sleep", "60"]) as process:
        _, _, err = iolab("pattern", "--pid", str(process.pid), "--seconds", "0.3")
        process.kill()
    first = err.splitlines()[0]
    assert "followed by strace, which slows every call: trace points cannot be used" in first
    assert "this needs root" in first


def emitted(iolab, tmp_path, lines, form, flags="O_RDWR"):
    """Report and workload of calls on one file."""
    text, out = tmp_path / "calls.txt", tmp_path / f"workload-{form}"
    text.write_text("\n".join([f'openat(AT_FDCWD, "/d/f", {flags}) = 3', *lines]) + "\n")
    out.unlink(missing_ok=True)
    code, _, err = iolab("pattern", text, "--emit", form, "--out", out)
    row = found(iolab, text)["files"][0]
    return row, out.read_text() if out.exists() else "", (code, err)


def call(name, size, at):
    return f'{name}64(3, ""..., {size}, {at}) = {size}'


ANYWHERE = [at * at * 7919 % 1009 * 8192 for at in range(300)]


@pytest.mark.parametrize(
    ("reads", "writes", "pattern", "orders"),
    [
        (ANYWHERE, ANYWHERE, "random", None),
        ([(8000 - at) * 4096 for at in range(300)], None, "mixed", ["backward", "sequential"]),
        ([at * 65536 for at in range(300)], None, "mixed", ["strided", "sequential"]),
        ([at * 65536 for at in range(300)], [0] * 300, "mixed", ["strided", "same-place"]),
    ],
    ids=["read-modify-write", "backward", "strided", "one hot block"],
)
def test_reads_and_writes_in_turn_have_orders_of_their_own(
    iolab, tmp_path, reads, writes, pattern, orders
):
    """Symptom: each access was compared with the last one of either direction."""
    writes = writes or [(1 << 26) + at * 4096 for at in range(300)]
    lines = [
        line
        for read, write in zip(reads, writes, strict=True)
        for line in (call("pread", 4096, read), call("pwrite", 4096, write))
    ]
    row, job, _ = emitted(iolab, tmp_path, lines, "fio")
    assert (row["pattern"], row["directions"]) == (pattern, orders), row["sentence"]
    if orders is None:
        assert "rw=randrw" in job
        assert "percentage_random" not in job


def test_few_accesses_with_most_of_the_bytes_are_kept(iolab, tmp_path):
    """Symptom: five writes of 4 MiB beside 1200 small reads became 40,000 more of these."""
    lines = [call("pread", 512, at % 1200 * 512) for at in ANYWHERE * 4]
    for at in range(5):
        lines.insert(at * 200, call("pwrite", 4 << 20, at << 22))
    _, job, _ = emitted(iolab, tmp_path, lines, "fio")
    assert "rw=randrw" in job
    assert "bs=512,4194304" in job
    assert "rwmixread=99" in job


def test_a_short_read_past_the_cache_is_no_size(iolab, tmp_path):
    """Symptom: fio and iolab refused a job whose direct reads were of 457120 bytes."""
    lines = [call("pread", 1 << 20, at << 20) for at in range(5)]
    lines.append('pread64(3, ""..., 1048576, 5242880) = 457120')
    _, job, _ = emitted(iolab, tmp_path, lines, "fio", flags="O_RDONLY|O_DIRECT")
    assert "bs=1048576\n" in job
    assert "direct=1" in job


def test_records_that_iozone_does_not_take_make_no_line(iolab, tmp_path):
    lines = [call("pread", 32 << 20, at * (32 << 20)) for at in range(8)]
    _, line, (code, err) = emitted(iolab, tmp_path, lines, "iozone")
    assert (code, line) == (1, "")
    assert "records of IOzone have at most 16 MiB" in err


def test_a_study_of_several_files_is_one_that_runs(iolab, tmp_path):
    """Symptom: each file was a workload called fio, of which two were refused."""
    text, out = tmp_path / "calls.txt", tmp_path / "study.toml"
    lines = ['openat(AT_FDCWD, "/d/a", O_RDONLY) = 3', 'openat(AT_FDCWD, "/d/b", O_RDWR) = 4']
    for at in range(40):
        lines.append(f'pread64(3, ""..., 4096, {at * 4096}) = 4096')
        lines.append(f'pwrite64(4, ""..., 4096, {at * 4096}) = 4096')
    text.write_text("\n".join(lines) + "\n")
    assert iolab("pattern", text, "--emit", "study", "--out", out)[0] == 0
    code, _, err = iolab("plan", out, "--on", "sim:fixed-100us")
    assert code == 0, err


def test_a_name_that_no_file_has_is_told(iolab, tmp_path):
    text = 'openat(AT_FDCWD, "/d/a", O_RDONLY) = 3\nread(3, ""..., 4096) = 4096\n'
    (tmp_path / "calls").write_text(text)
    code, out, _ = iolab("pattern", tmp_path / "calls", "--only", "nothere")
    assert (code, "another name than --only asks for" in out) == (1, True), out
