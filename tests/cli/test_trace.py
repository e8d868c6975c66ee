"""`iolab trace`: recorded texts, conversion there and back, measures, and damaged files."""

import csv
import gzip
import io
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from iolab.cli.console import Console
from iolab.cli.main import main

GOLDEN = Path(__file__).parent.parent / "golden"
TRACES = GOLDEN / "trace"
SYN = [str(TRACES / f"syn.blktrace.{cpu}") for cpu in (0, 1)]
NB = str(TRACES / "nb")


@pytest.fixture
def iolab():
    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        code = main(list(map(str, arguments)), console=Console(out, err))
        assert "Traceback" not in err.getvalue()
        return code, out.getvalue(), err.getvalue()

    return run


def recorded(name):
    lines = (TRACES / name).read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("Input file "))


def test_show_prints_what_blkparse_printed(iolab):
    assert iolab("trace", "show", *SYN) == (0, recorded("syn.blkparse.txt"), "")
    assert iolab("trace", "show", NB) == (0, recorded("nb.blkparse.txt"), "")
    code, out, _ = iolab("trace", "show", "-q", "-a", "read", *SYN)
    assert (code, out) == (0, recorded("syn.blkparse-a-read.txt"))


def test_show_takes_the_fields_of_blkparse(iolab):
    code, out, _ = iolab("trace", "show", "-q", "-f", r"%T.%t %a %-4d|%8S\n", "-a", "issue", *SYN)
    assert code == 0
    assert out.splitlines()[0] == "0.000018000 D RS  |    2048"
    assert iolab("trace", "show", "-f", r"\q", *SYN)[0] == 1
    assert "there is no event kind 'reads'" in iolab("trace", "show", "-a", "reads", *SYN)[2]


def test_a_part_of_a_trace_has_the_times_of_the_whole(iolab, tmp_path):
    whole = iolab("trace", "show", "-q", NB)[1].splitlines()
    times = [float(line.split()[3]) for line in whole]
    for words, begin, end in [
        (("--since", "0.02"), 0.02, 9),
        (("--until", "30ms"), 0, 0.03),
        (("--since", "20ms", "--until", "0.03"), 0.02, 0.03),
        (("--since", "0"), 0, 9),
    ]:
        code, out, err = iolab("trace", "show", "-q", NB, *words)
        assert (code, err) == (0, "")
        expected = [line for line, time in zip(whole, times, strict=True) if begin <= time < end]
        assert out.splitlines() == expected
        assert len(expected) >= 8
    part = tmp_path / "part.iotrace"
    assert iolab("trace", "convert", NB, part, "--since", "0.02", "--until", "0.03")[0] == 0
    events = json.loads(iolab("trace", "stages", "--json", part)[1])["events"]
    window = ("--since", "0.02", "--until", "0.03")
    found = json.loads(iolab("trace", "stages", "--json", NB, *window)[1])
    assert (found["events"], found["span_ns"]) == (events, 10_000_000)
    found = json.loads(iolab("trace", "stages", "--json", NB, "--since", "0.02")[1])
    assert found["span_ns"] == pytest.approx((times[-1] - 0.02) * 1e9, abs=1)
    assert iolab("trace", "diff", NB, part, *window)[0] == 1, "a part begins at 0 again"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--since", "5"), "no event is from 5 s on: the nearest is at 1.13651401 s"),
        (("--since", "2", "--until", "1"), "--until 1 is not after --since 2"),
        (("--until", "0"), "--until 0 is not after the beginning"),
        (("--since", "soon"), "--since: soon is no time"),
        (("--since=-1",), "--since: -1 is no time"),
        (("--until", "nan"), "--until: nan is no time"),
    ],
)
def test_a_part_that_is_none_is_told(iolab, words, message):
    code, out, err = iolab("trace", "stages", NB, *words)
    assert (code, out) == (1, "")
    assert message in err


@pytest.mark.parametrize("ending", ["iotrace", "blktrace", "csv"])
def test_a_converted_trace_has_the_same_text_and_figures(iolab, tmp_path, ending):
    out = tmp_path / f"t.{ending}"
    code, told, _ = iolab("trace", "convert", *SYN, out)
    assert code == 0
    assert "56 events in" in told or "55 events in" in told
    shown = iolab("trace", "show", "-q", out)[1]
    assert shown == iolab("trace", "show", "-q", *SYN)[1]
    figures = [iolab("trace", "stages", "--btt", name)[1] for name in (out, TRACES / "syn")]
    assert figures[0] == figures[1] == (TRACES / "syn.btt-A.txt").read_text()


def test_a_trace_becomes_a_log_for_fio(iolab):
    code, out, err = iolab("trace", "convert", "--to", "iolog", *SYN, "-")
    assert code == 0
    lines = out.splitlines()
    assert lines[:4] == [
        "fio version 3 iolog",
        "0 /dev/block/8:16 add",
        "0 /dev/block/8:16 open",
        "0 /dev/block/8:16 read 1048576 4096",
    ]
    assert lines[-1] == "10990 /dev/block/8:16 close"
    assert err == ""


def test_an_output_is_replaced_only_if_it_is_named(iolab, tmp_path):
    out = tmp_path / "t.csv"
    out.write_text("mine")
    code, _, err = iolab("trace", "convert", *SYN, out)
    assert code == 2
    assert "exists already" in err
    assert out.read_text() == "mine"
    assert iolab("trace", "convert", *SYN, out, "--overwrite", out)[0] == 0
    assert out.read_text().startswith("ts_ns,event,")
    code, _, err = iolab("trace", "convert", *SYN, tmp_path / "t.what")
    assert code == 1
    assert "does not say by its ending" in err
    assert list(tmp_path.iterdir()) == [out]


def test_stages_are_told_per_process_and_as_json(iolab):
    code, out, _ = iolab("trace", "stages", NB, "--by", "process", "--json")
    report = json.loads(out)
    assert code == 0
    (device,) = report["devices"]
    names = {group["name"] for group in device["groups"]}
    assert {"sync (163)", "init (158)"} <= names
    assert sum(group["bytes_share"] for group in device["groups"]) == pytest.approx(1)
    whole = next(row for row in report["stages"] if row["stage"] == "Q2C")
    assert whole["count"] == 137
    assert whole["min_ns"] <= whole["p50_ns"] <= whole["p99_ns"] <= whole["max_ns"]
    assert device["outstanding"]["mean"] == pytest.approx(device["outstanding_by_little"])
    code, out, _ = iolab("trace", "stages", NB, "--by", "direction")
    assert " device nb (254,0), read: 40 bios in" in out


def test_summary_and_diff_name_what_matters(iolab):
    code, out, _ = iolab("trace", "summary", NB)
    assert code == 0
    assert out.startswith("431 events in 1.14 s\n")
    assert "process    sync (163)" in out
    code, out, _ = iolab("trace", "diff", NB, TRACES / "syn", "--json")
    pairs = {pair["figure"]: pair for pair in json.loads(out)}
    assert pairs["events"]["first"] == 431
    assert pairs["Q2C_mean_ns"]["ratio"] < 0.1
    assert "Q2C p99" in iolab("trace", "diff", NB, TRACES / "syn")[1]


def test_recordings_and_simulations_are_measured_alike(iolab):
    code, out, _ = iolab("trace", "stages", GOLDEN / "dispatch" / "deep-bfq.csv.gz", "--json")
    assert code == 0
    report = json.loads(out)
    assert report["events"] == 17_898
    (device,) = report["devices"]
    assert device["in_flight"]["max"] == 4


def test_a_simulated_trial_goes_through_the_same_command(iolab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(
        'testbed = "sim:fixed-100us"\nseed = 3\nrounds = 1\n[factors]\n'
        'scheduler = ["noop", "bfq"]\n[settings]\nfile_size = "1m"\n'
        '[[workloads]]\nkind = "iozone"\n'
        'tests = ["write", "random-read"]\n'
    )
    assert iolab("sim", "trace", "s.toml", "--out", "t.csv.gz")[0] == 0
    code, text, _ = iolab("trace", "stages", "t.csv.gz", "--by", "direction", "--json")
    assert code == 0
    (device,) = json.loads(text)["devices"]
    whole = {"count": 256, "bytes": 1 << 20}
    assert device["counts"]["queued"][:2] == [whole, whole]
    assert [group["completed"] for group in device["groups"]] == [whole, whole]
    served = next(row for row in device["stages"] if row["stage"] == "D2C")
    assert served["p50_ns"] == pytest.approx(100_000, rel=0.01)


def test_damaged_and_cut_files_are_used_as_far_as_they_go(iolab, tmp_path):
    whole = (TRACES / "nb.blktrace.0").read_bytes()
    cut = tmp_path / "cut.blktrace.0"
    cut.write_bytes(whole[: len(whole) - 20])
    code, out, err = iolab("trace", "show", "-q", cut)
    assert code == 0
    assert out
    assert "the last record is cut off after 28 bytes and is not used" in err
    at = whole.index(b"\x07tae", 1000)
    cut.write_bytes(whole[:at] + bytes(4) + whole[at + 4 :])
    code, out, err = iolab("trace", "show", "-q", cut)
    assert code == 5
    assert out
    assert f"offset {at}: no record begins here" in err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text", b"hello\n", "is no block trace in a known format: it begins with `hello"),
        ("empty", b"", "it is empty"),
        ("x.gz", b"no gzip", "cannot be unpacked"),
        ("v8.blktrace.0", b"\x08tae" + bytes(60), "a record of version 8, only 7 is known"),
    ],
)
def test_what_is_no_trace_is_refused(iolab, tmp_path, name, content, message):
    file = tmp_path / name
    file.write_bytes(content)
    code, out, err = iolab("trace", "stages", file)
    assert (code, out) == (1, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_what_gzip_packed_is_read_whatever_its_name(iolab, tmp_path):
    packed = tmp_path / "t.blktrace"
    packed.write_bytes(gzip.compress((TRACES / "nb.blktrace.0").read_bytes()))
    plain = iolab("trace", "show", "-q", TRACES / "nb.blktrace.0")[1]
    assert iolab("trace", "show", "-q", packed) == (0, plain, "")


def test_records_of_kinds_that_nobody_knows_are_counted(iolab, tmp_path):
    """A newer kernel has more kinds; the number is the lower half of a record's action."""
    content = bytearray((TRACES / "nb.blktrace.0").read_bytes())
    at, changed = 0, []
    while at < len(content) and len(changed) < 2:
        if content[at + 28] == 1:
            changed.append(at)
            content[at + 28] = 77
        at += 48 + int.from_bytes(content[at + 46 : at + 48], "little")
    newer = tmp_path / "newer.blktrace.0"
    newer.write_bytes(content)
    code, _, err = iolab("trace", "summary", newer)
    assert code == 0
    assert f"offset {changed[0]}: 2 records of unknown kinds are left out, the first one" in err


def test_a_recording_has_a_file(iolab):
    code, _, err = iolab("trace", "record", "loop0", "-o", "-", "--seconds", "1")
    assert code == 1
    assert "is written into a file, not to standard output" in err


def test_unknown_words_are_refused(iolab, tmp_path):
    assert "there is no 'iolab trace shw'" in iolab("trace", "shw", "x")[2]
    assert "there is no such file" in iolab("trace", "show", tmp_path / "no")[2]
    assert "holds no trace" in iolab("trace", "show", tmp_path)[2]


def test_a_name_in_a_trace_is_no_command_to_the_terminal(iolab, tmp_path):
    csv = tmp_path / "t.csv"
    name = b"\x1b[2J".hex()
    csv.write_text(
        "ts_ns,event,sector,nr_sectors,rwbs,pid,device,payload\n"
        f"1,process,0,0,N,7,8:0,{name}\n2,Q,8,8,R,7,8:0,\n"
    )
    code, out, _ = iolab("trace", "show", "-q", csv)
    assert code == 0
    assert "[?[2J]" in out
    assert "\x1b" not in out


def test_a_reader_that_leaves_ends_it_quietly(tmp_path):
    """Long text to a pipe that is closed after one line: no message, no endless work."""
    csv = tmp_path / "t.csv.gz"
    rows = "".join(f"{n},Q,{n * 8},8,R,,1,0\n" for n in range(200_000))
    csv.write_bytes(
        gzip.compress(b"ts_ns,event,sector,nr_sectors,rwbs,ioprio,pid,cpu\n" + rows.encode())
    )
    command = [sys.executable, "-m", "iolab", "trace", "show", str(csv)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    )
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_columns_lie_in_memory_as_arrow_has_them(iolab, tmp_path):
    from iolab import _core

    kinds = {row["name"]: row["kind"] for row in json.loads(_core.trace_column_kinds())}
    batches = []
    told = json.loads(
        _core.trace_columns(
            ([(name, None) for name in SYN], []), lambda *batch: batches.append(batch)
        )
    )
    ((rows, columns),) = batches
    assert rows == told["written"]
    out = tmp_path / "t.csv"
    assert iolab("trace", "convert", *SYN, out)[0] == 0
    table = list(csv.DictReader(out.read_text().splitlines()))
    assert len(table) == rows
    assert list(kinds) == list(table[0])
    for (name, kind), (validity, offsets, values) in zip(kinds.items(), columns, strict=True):
        written = [row[name] for row in table]
        if kind.startswith("uint"):
            bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
            read = np.frombuffer(values, f"<u{int(kind[4:]) // 8}").tolist()
            present = bits[:rows].tolist() if validity else [1] * rows
            expected = [int(text, 0) if text else 0 for text in written]
            assert (read, present) == (expected, [int(bool(text)) for text in written]), name
        else:
            ends = np.frombuffer(offsets, "<i4").tolist()
            pieces = [values[a:b] for a, b in itertools.pairwise(ends)]
            is_hex = kind == "binary"
            assert [p.hex() if is_hex else p.decode() for p in pieces] == written, name


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather"])
def test_a_table_of_columns_needs_pyarrow_and_says_so(iolab, tmp_path, monkeypatch, ending):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    out = tmp_path / f"t.{ending}"
    code, _, err = iolab("trace", "convert", *SYN, out)
    assert code == 1
    assert "pip install 'iolab[parquet]'" in err
    assert not out.exists()


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_table_of_columns_is_read_back(iolab, tmp_path, ending):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import csv as arrow_csv
    from pyarrow import ipc, parquet

    out, text = tmp_path / f"t.{ending}", tmp_path / "t.csv"
    code, told, _ = iolab("trace", "convert", *SYN, out)
    assert (code, "events in" in told) == (0, True)
    assert iolab("trace", "convert", *SYN, text)[0] == 0
    if ending == "parquet":
        table = parquet.read_table(out)
    else:
        table = ipc.open_file(pyarrow.memory_map(str(out))).read_all()
    table.validate(full=True)
    plain = arrow_csv.read_csv(text)
    assert table.column_names == plain.column_names
    for name in ("ts_ns", "event", "sector", "bytes", "pid", "device"):
        assert table[name].to_pylist() == plain[name].to_pylist(), name
    assert iolab("trace", "convert", *SYN, out)[0] == 2
    assert "needs a file" in iolab("trace", "convert", *SYN, "-", "--to", ending)[2]


@pytest.mark.parametrize("name", ["tracefs", "tracefs-6.1"])
def test_raw_pages_are_decoded_as_recorded(name):
    from iolab import _core

    folder = TRACES / name
    headers = tuple((folder / "events" / it).read_text() for it in ("header_page", "header_event"))
    formats = [path.read_text() for path in (folder / "events/block").glob("*/format")]
    pages = [path.read_bytes() for path in sorted(folder.glob("cpu*.raw"))]
    told = json.loads(_core.trace_ring_pages(headers, formats, pages))
    rows = list(csv.DictReader((folder / "decoded.csv").read_text().splitlines()))
    # Plugs name no device; the others repeat what further events say.
    left_out = ("plug", "io_start", "io_done", "rq_error")
    taken = [row for row in rows if not row["event"].endswith(left_out)]
    names = told["events"] - len(taken)
    assert 0 <= names < len(taken), "notes of the names of processes"
    assert told["damaged_pages"] == told["pages_after_losses"] == 0
    cut = json.loads(_core.trace_ring_pages(headers, formats, [page[:5000] for page in pages]))
    assert 0 < cut["events"] < told["events"]


REMAPPED = (
    "  perf 99 [002]  1551.000000: block:block_bio_queue: 8,17 RA 64 + 8 [perf]\n"
    "  perf 99 [002]  1551.000001: block:block_bio_remap: 8,0 RA 2112 + 8 <- (8,17) 64\n"
)


@pytest.mark.parametrize("to", ["iolab", "blktrace", "blkparse", "csv"])
def test_a_remap_keeps_its_letter_and_the_place_it_came_from(iolab, tmp_path, to):
    (tmp_path / "perf.txt").write_text(REMAPPED)
    shown = iolab("trace", "show", "-q", tmp_path / "perf.txt")[1]
    events = [line.split(maxsplit=5)[5] for line in shown.splitlines()[:2]]
    assert events == ["Q  RA 64 + 8 [perf]", "A  RA 2112 + 8 <- (8,17) 64"]
    out = tmp_path / "converted"
    assert iolab("trace", "convert", "--to", to, tmp_path / "perf.txt", out)[0] == 0
    assert iolab("trace", "show", "-q", out)[1] == shown


def test_events_of_one_device_are_chosen(iolab, tmp_path):
    both, out = [*SYN, f"{NB}.blktrace.0", f"{NB}.blktrace.1"], tmp_path / "one.iotrace"
    code, alone, _ = iolab("trace", "stages", *SYN)
    assert iolab("trace", "stages", "--device", "8:16", *both) == (code, alone, "")
    assert iolab("trace", "convert", "--device", "syn", *both, out)[0] == 0
    assert iolab("trace", "stages", out)[1] == alone
    code, told, _ = iolab("trace", "diff", "--device", "syn", out, SYN[0])
    assert (code, "D2C mean" in told) == (0, True)


@pytest.mark.parametrize("command", ["show", "stages", "summary", "convert", "diff"])
def test_a_trace_of_another_device_says_what_it_is_of(iolab, tmp_path, command):
    out = tmp_path / "none.csv"
    files = {"convert": [*SYN, out], "diff": SYN}.get(command, SYN)
    code, _, err = iolab("trace", command, "--device", "loop3", *files)
    assert code == 1
    count = "" if command == "diff" else "50 "
    assert f"iolab: no event is of loop3: the trace has syn (8,16) with {count}" in err
    assert err.endswith("name one of its devices\n")
    assert not out.exists()
