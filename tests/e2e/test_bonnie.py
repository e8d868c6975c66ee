"""`iolab bonnie++` and `bon-csv2txt` as they are typed, and the programs that read their output."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.imported.foreign.join import Named
from iolab.imported.mapping import Wishes
from iolab.imported.study import understand_files
from iolab.store.db import Store

from .strace import sessions

GOLDEN = Path(__file__).parents[1] / "golden" / "bonnie"
QUICK = ["-r", "8", "-s", "16", "-n", "1", "-m", "box", "-z", "42"]


def iolab(*arguments):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(a) for a in arguments], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def bonnie(tmp_path, *arguments):
    place = tmp_path / "place"
    place.mkdir(exist_ok=True)
    out_dir = tmp_path / "stored"
    code, out, err = iolab("bonnie++", "--out", out_dir, "-d", place, *arguments)
    assert list(place.iterdir()) == [], "nothing stays"
    return code, out, err


def masked(text):
    """Numbers, marks and units of times masked, as wide as they are; blanks counted."""
    return [re.sub(r"[0-9+.]", "#", line.rstrip()) for line in text.splitlines()]


def test_all_phases_print_the_table_and_the_line(tmp_path):
    code, out, err = bonnie(tmp_path, "-u", str(os.geteuid()), "-f1", *QUICK)
    assert code == 0, err
    lines = out.splitlines()
    assert lines[-1].startswith("1.98,2.00a,box,1,42,16M,,8192,5,")
    assert lines[-1].count(",") == 49
    assert lines[0].startswith("Version 2.00a       ------Sequential Output------")
    assert max(map(len, lines[:-1])) <= 80
    said = err.splitlines()
    assert said[0] == f"Using uid:{os.geteuid()}, gid:{os.getegid()}."
    assert "start 'em...done...done...done...done...done..." in said
    assert said[-1].startswith("iolab: stored as run ")
    with Store.open_reader(tmp_path / "stored" / "study.db") as store:
        data = store.load_data()
    rates = {m.operation for m in data.measurements if m.metric == "throughput_ops_per_s"}
    assert rates == {
        *("putc", "put_block", "rewrite", "getc", "get_block", "seeks"),
        *("seq_create", "seq_stat", "seq_del", "ran_create", "ran_stat", "ran_del"),
    }
    assert iolab("report", tmp_path / "stored")[0] == 0


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fast_f", "-f -q -n 0 -s 64 -r 16"),
        ("files_only_sizes", "-s 0 -n 2:2048:512:4 -q"),
        ("files_link", "-s 0 -n 1:-1 -q"),
        ("files_symlink", "-s 0 -n 1:-2 -q"),
        ("sync_b", "-s 32:8k:512 -r 16 -n 1 -q -b -f"),
        ("files_chunk", "-s 0 -n 1:16384:0:2:4096 -q"),
    ],
)
def test_where_it_is_printed_and_how_as_recorded(tmp_path, name, arguments):
    code, out, err = bonnie(tmp_path, *arguments.split(), "-m", "testhost", "-z", "42")
    assert code == 0, err
    theirs = (GOLDEN / f"{name}.stdout").read_text().splitlines()
    assert len(out.splitlines()) == len(theirs)
    ours = out.strip().split(",")
    empty = [field == "" for field in ours]
    assert empty == [field == "" for field in theirs[0].split(",")], name
    table = [line for line in err.splitlines() if not line.startswith("iolab:")]
    recorded = (GOLDEN / f"{name}.stderr").read_text().splitlines()
    assert [line for line in table if "sec %CP" in line or "------" in line] == [
        line for line in recorded if "sec %CP" in line or "------" in line
    ]
    assert len([line for line in table if line]) == len([line for line in recorded if line])


def test_several_runs_are_rounds_of_one_study(tmp_path):
    code, out, _ = bonnie(tmp_path, "-s", "0", "-n", "1", "-q", "-x", "2")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == (GOLDEN / "x2.stdout").read_text().splitlines()[0]
    assert [line[:4] for line in lines[1:]] == ["1.98", "1.98"]
    with Store.open_reader(tmp_path / "stored" / "study.db") as store:
        data = store.load_data()
    assert {m.round for m in data.measurements} == {1, 2}


def test_what_reads_the_original_reads_ours(tmp_path):
    _, out, _ = bonnie(tmp_path, "-f", "-q", *QUICK)
    path = tmp_path / "line.csv"
    path.write_text(out)
    found = understand_files([Named(path)], Wishes()).reading
    assert {v.operation for v in found.values} >= {"put_block_latency", "ran_del_latency"}
    for program in ("bon_csv2txt", "bon_csv2html"):
        if shutil.which(program):
            done = subprocess.run([program], input=out, capture_output=True, text=True, check=True)
            assert "box" in done.stdout, done.stderr
            assert "Expected" not in done.stderr


def test_direct_leaves_out_what_cannot_be(tmp_path):
    code, out, err = bonnie(tmp_path, "-D", "-q", "-r", "0", "-s", "8", "-n", "0")
    if code and "direct" in err:
        pytest.skip("this file system has no direct I/O")
    assert code == 0, err
    assert "note: -D: the per-character phases are left out" in err
    assert out.split(",")[9:11] == ["", ""]
    assert out.split(",")[11]


def test_files_of_others_stay(tmp_path):
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "Bonnie.1").write_text("mine")
    code, _, err = iolab(
        "bonnie++", "--out", tmp_path / "s", "-d", tmp_path / "place", "-s", "0", "-n", "1", "-q"
    )
    assert code == 0, err
    assert [p.name for p in (tmp_path / "place").iterdir()] == ["Bonnie.1"]
    assert (tmp_path / "place" / "Bonnie.1").read_text() == "mine"


WRONG = [
    ("-J", "there is no option -J"),
    ("-s", "-s needs a value"),
    ("-s 64x", "has an unknown unit"),
    ("-s fast", "is no number"),
    ("-s -1", "is no number"),
    ("-s 1.5g", "has an unknown unit"),
    ("-s 64:3k", "a chunk of 3072 bytes"),
    ("-s 64:8k:1k:0", "by 0 seekers"),
    ("-s 64 -r 64", "File size should be double RAM for good results, RAM is 64M."),
    ("-s 0 -n 0", "nothing to measure"),
    ("-n 1:10:20", "at most 10 and at least 20"),
    ("-n 1:2:1:5000", "5000 directories"),
    ("-c 0", "-c takes 1 to 200"),
    ("-f 1", "write -f1 without a blank"),
    ("-fx", "-f takes a whole number"),
    ("-x 0", "-x takes 1 to 1000"),
    ("-z 4294967296", "of 32 bits"),
    ("-s 0 -n 1 -Z none", "-Z none cannot be read"),
    ("-p 0", "-p takes 1 to 32767 copies"),
    ("-y x", "-y takes s or p"),
    ("-p 2 -y s", "-p and -y at the same time"),
    ("-s 0 -n 1 -y s -x 2", "a semaphore that was counted down"),
    ("-s 0 -n 1 -u root:root -g root", "two groups"),
    ("-s 0 -n 1000:16384638463846384 -r 0", "1000K files of"),
    ("-m a,b", "would break the CSV line"),
    ("stray", "'stray' is neither an option"),
    ("--sizes 4", "there is no option --sizes"),
    ("-s 0 -n 1 -u nosuchuser", "Can't find user nosuchuser"),
    ("-s 0 -n 1 -g nosuchgroup", "Can't find group nosuchgroup"),
    ("-s 0 -n 1 --repeat 0", "--repeat 0"),
    ("-s 0 -n 1 --on moon", "moon"),
    ("-s 0 -n 1 -d /nonexistent", "/nonexistent"),
    ("-r 8 -s 16 -n 1 --on sim:sata7200-4tb", "-D -f"),
    ("-s 0 -n 1:-1 --on sim:sata7200-4tb", "files in simulation have one name"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_malformed_command_lines_write_nothing(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = iolab("bonnie++", *text.split())
    assert (code, out) == (1, ""), err
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_a_link_of_the_name_selects_the_dialect(tmp_path):
    program = tmp_path / "bonnie++"
    program.write_text("from iolab.cli.main import main\nimport sys\nsys.exit(main())\n")
    done = subprocess.run(
        [sys.executable, str(program), "-s", "0", "-n", "0"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, "nothing to measure" in done.stderr) == (1, True), done.stderr


def test_csv2txt_of_files_of_any_version(tmp_path):
    line = (GOLDEN / "quiet_256.stdout").read_text()
    old = "h,2G,30,98,39,9,16,4,31,91,42,5,222.2,0,16,3022,99,+++++,+++,+++++,+++,3100,98,,,8,9\n"
    (tmp_path / "a.csv").write_text(line)
    (tmp_path / "b.csv").write_text(old)
    code, out, err = iolab("bon-csv2txt", tmp_path / "a.csv", tmp_path / "b.csv")
    assert (code, err) == (0, "")
    assert "testho 256M::8192:5" in out
    assert "h                2G   30k  98" in out
    (tmp_path / "c.csv").write_text("1.93,1,2\n")
    code, out, err = iolab("bon-csv2txt", tmp_path / "a.csv", tmp_path / "c.csv")
    assert code == 1
    assert "testhost" in out
    assert f"line {len(line.splitlines()) + 1}: not a line of bonnie++" in err
    assert iolab("bon-csv2txt", tmp_path / "none")[0] == 1


def test_plans_are_json_that_comes_back():
    from iolab import _core

    plan = _core.dialect_parse("bonnie++", ["-s", "0", "-n", "1"])
    assert json.loads(plan)["dialect"] == "bonnie++"
    assert masked("a1+") == ["a##"]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_calls_are_those_of_the_traced_original(tmp_path):
    """As golden/bonnie/trace_bulk_direct.txt: 64 chunks a phase, all rewritten after reading."""
    from iolab import _core
    from iolab.testbed.command import find_agent

    words = ["-s", "1:16k:42:1", "-r", "0", "-n", "0", "-f", "-z", "7"]
    plan = json.loads(_core.dialect_parse("bonnie++", words))
    workload = plan["rows"][0]["workload"]
    workload["is_calibrated"] = False
    trial = {"trial": "t1", "directory": str(tmp_path), "workload": workload}
    log = tmp_path / "strace.txt"
    calls = "trace=open,openat,creat,close,read,write,lseek,fsync"
    argv = ["strace", "-f", "-s", "0", "-e", calls, "-o", log, find_agent(), "measure"]
    done = subprocess.run(
        argv, input=json.dumps(trial) + "\n", capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1])["result"]["status"] == "ok"
    found = [session.transfers for session in sessions(log.read_text(), plan["files"][0])]
    assert (GOLDEN / "trace_bulk_direct.txt").read_text().count("64 in all") == 2
    chunk = 16384
    offsets = [chunk * place for place in range(64)]
    assert found[0] == [("write", at, chunk) for at in offsets]
    assert found[1] == [(call, at, chunk) for at in offsets for call in ("read", "write")]
    assert found[2] == [("read", at, chunk) for at in offsets]
    assert len(found) == 4
    seeker = found[3]
    reads = [transfer for transfer in seeker if transfer[0] == "read"]
    assert len(reads) == 42
    assert {(at % chunk, size) for _, at, size in reads} == {(0, chunk)}
    assert max(at for _, at, _ in reads) < 1 << 20
    assert 0 < len(seeker) - len(reads) < 15, "about a tenth is updated"
    for before, (call, at, _) in pairwise(seeker):
        assert call == "read" or before == ("read", at, chunk), "an update is written back"
    assert log.read_text().count("fsync(") >= 4, "each phase ends with one"


ORIGINAL = shutil.which("bonnie++", path="/usr/sbin:/usr/bin")
_NAMED = re.compile(r'(?:openat\(\w+|newfstatat\(\w+|statx\(\w+|unlink|rmdir|mkdir)[(, ]+"([^"]+)"')
_KINDS = {"openat": "open", "newfstatat": "stat", "statx": "stat"}


def file_calls(log: Path) -> list[tuple[str, str, str]]:
    """Calls on the small files, as (call, last part of the name, bytes or flags)."""
    found: list[tuple[str, str, str]] = []
    is_inside, opened = False, ""
    for raw in log.read_text().splitlines():
        line = re.sub(r"^\d+ +", "", raw)
        call = line.split("(")[0]
        name = match[1].rsplit("/", 1)[-1] if (match := _NAMED.match(line)) else ""
        if call == "mkdir" and "Bonnie." in line:
            is_inside = True
        if not is_inside or re.search(r"= -1 ", line):
            continue
        if call in ("openat", "newfstatat", "statx", "unlink") and re.search(r"0{7}\w{3}", name):
            flags = re.search(r"O_(?:RDONLY|WRONLY|RDWR)", line)
            found.append((_KINDS.get(call, call), name, flags[0] if flags else ""))
            opened = line.rsplit(" ", 1)[-1] if call == "openat" else ""
        elif call in ("read", "write") and opened and line.startswith(f"{call}({opened},"):
            found.append((call, "", line.rsplit(" ", 1)[-1]))
        elif call == "close" and line.startswith(f"close({opened})"):
            opened = ""
        elif call == "sync":
            found.append((call, "", ""))
    return found


def traced(tmp_path: Path, name: str, argv: list[str], **options) -> list[tuple[str, str, str]]:
    log = tmp_path / f"{name}.txt"
    calls = "trace=openat,close,read,write,newfstatat,statx,unlink,mkdir,rmdir,sync"
    subprocess.run(
        ["strace", "-f", "-s", "40", "-e", calls, "-o", str(log), *argv],
        capture_output=True,
        text=True,
        check=True,
        **options,
    )
    return file_calls(log)


@pytest.mark.skipif(
    shutil.which("strace") is None or ORIGINAL is None, reason="strace or bonnie++ is not installed"
)
@pytest.mark.timeout(180)
def test_small_files_are_touched_as_the_original_touches_them(tmp_path):
    """The same names and sizes in the same order, found as their directory lists them."""
    from iolab import _core
    from iolab.testbed.command import find_agent

    words = ["-s", "0", "-n", "1:3000:100", "-z", "42", "-r", "0"]
    user = ["-u", "root"] if os.geteuid() == 0 else []
    (tmp_path / "theirs").mkdir()
    original = [str(ORIGINAL), *user, "-d", str(tmp_path / "theirs"), "-q", *words]
    theirs = traced(tmp_path, "theirs-log", original)
    workload = json.loads(_core.dialect_parse("bonnie++", words))["rows"][0]["workload"]
    (tmp_path / "ours").mkdir()
    folder = str(tmp_path / "ours")
    trial = {"trial": "t1", "directory": folder, "is_ours": True, "workload": workload}
    agent = [str(find_agent()), "measure"]
    ours = traced(tmp_path, "ours-log", agent, input=json.dumps(trial) + "\n")
    phases = [split(calls) for calls in (ours, theirs)]
    for place, (mine, other) in enumerate(zip(*phases, strict=True)):
        if place in (1, 2):
            # The directory's own order, which follows from a number of each file system's own.
            mine, other = sorted(by_file(mine)), sorted(by_file(other))
        assert mine == other, place
    assert list((tmp_path / "ours").iterdir()) == []


def split(calls: list[tuple[str, str, str]]) -> list[list[tuple[str, str, str]]]:
    """The calls of the six phases."""
    opens = [
        "made" if how == "O_WRONLY" else "stat" if call == "stat" else "gone"
        for call, _, how in calls
        if call in ("open", "stat", "unlink") and not (call == "open" and how == "O_RDONLY")
    ]
    assert [kind for kind, before in zip(opens, ["", *opens], strict=False) if kind != before] == [
        *("made", "stat", "gone"),
        *("made", "stat", "gone"),
    ]
    parts: list[list[tuple[str, str, str]]] = []
    kind = ""
    for one in calls:
        here = {"stat": "stat", "unlink": "gone"}.get(one[0], kind)
        here = "made" if one[2] == "O_WRONLY" else here
        if here != kind:
            parts.append([])
            kind = here
        parts[-1].append(one)
    return parts


def by_file(calls: list[tuple[str, str, str]]) -> list[tuple[tuple[str, str, str], ...]]:
    """Calls that belong to one file, file by file."""
    files: list[list[tuple[str, str, str]]] = []
    for one in calls:
        if one[0] in ("stat", "unlink") or not files:
            files.append([])
        if one[0] != "sync":
            files[-1].append(one)
    return [tuple(one) for one in files]


def test_several_workers_have_a_directory_each(tmp_path):
    code, out, err = bonnie(tmp_path, "-s", "0", "-n", "1:512:0:2", "-c", "3", "-q", "-z", "7")
    assert code == 0, err
    assert "-c 3: so many workers" in err
    with Store.open_reader(tmp_path / "stored" / "study.db") as store:
        data = store.load_data()
    rates = [m for m in data.measurements if m.metric == "throughput_ops_per_s"]
    assert {m.operation for m in rates} >= {"seq_create", "seq_stat", "seq_del", "ran_del"}
    assert (tmp_path / "place").exists()
    assert out.count(",") == 49


@pytest.mark.parametrize("words", ["-n 1:4096:512:2", "-n 1 -b", "-n 1:4096 -c 2"])
def test_small_files_on_a_simulated_disk(tmp_path, words):
    """Names cost nothing there and the user is told; data and flushes take the disk's time."""
    arguments = ["-s", "0", "-q", "-z", "42", "-m", "box", *words.split()]
    out_dir = tmp_path / "stored"
    code, out, err = iolab("bonnie++", "--out", out_dir, "--on", "sim:sata7200-4tb", *arguments)
    assert code == 0, err
    fields = out.strip().split(",")
    assert len(fields) == 50
    assert iolab("report", out_dir)[0] == 0
    again = iolab("bonnie++", "--out", tmp_path / "2", "--on", "sim:sata7200-4tb", *arguments)
    assert again[1] == out, "the same in every run"
