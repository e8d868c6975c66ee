"""`iolab iostat`: recorded tables to the digit, Solaris' layout, and what it refuses."""

import io
import json
import re
from pathlib import Path

import pytest

from iolab.cli import iostat
from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.cli.parser import Parser
from iolab.errors import IolabError
from iolab.library import disk_tables
from iolab.library.disk_counters import (
    Counters,
    Kstat,
    Processors,
    Reading,
    figures,
    kstat_of,
    parse_diskstats,
    read_counters,
    solaris_figures,
)

GOLDEN = Path(__file__).parent.parent / "golden" / "iostat"


@pytest.fixture
def iolab():
    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        code = main(list(arguments), console=Console(out, err))
        assert "Traceback" not in err.getvalue()
        return code, out.getvalue(), err.getvalue()

    return run


def wanted(*words):
    parser = Parser(prog="iolab iostat")
    iostat.add_arguments(parser)
    return iostat.understand(parser.understand(words))


@pytest.mark.parametrize(
    ("words", "devices"),
    [
        (("loop0", "-x", "1", "1"), ("loop0",)),
        (("-x", "1", "loop0", "-y", "1"), ("loop0",)),
        (("-p", "ALL", "1", "1"), ()),
        (("-p", "loop0,loop1", "1", "1"), ("loop0", "loop1")),
    ],
)
def test_words_stand_where_users_of_iostat_put_them(words, devices):
    found = wanted(*words)
    assert (found.devices, found.interval_s, found.count) == (devices, 1.0, 1)


def readings(name):
    """Readings of iostat for each report: disks of one report follow each other."""
    blocks = re.split(r"^### (\S+)\n", (GOLDEN / name).read_text(), flags=re.MULTILINE)[1:]
    found = []
    for path, text in zip(blocks[::2], blocks[1::2], strict=True):
        if path == "/proc/uptime":
            found.append([float(text.split()[0]), None, {}])
        elif path == "/proc/stat":
            found[-1][1] = text
        else:
            disk = path.split("/")[3]
            counters = parse_diskstats(f"7 0 {disk} {text}")
            found[-1][2].update(counters)
    for uptime_s, stat, disks in found:
        numbers = map(int, stat.split("\n", 1)[0].split()[1:9])
        yield Reading(uptime_s, 2, Processors(*numbers), disks)


def printed(monkeypatch, what, name):
    monkeypatch.setenv("S_TIME_FORMAT", "ISO")
    given = iter(readings(name))
    return "".join(iostat.reports(what, lambda: next(given), lambda _: None))


def without_head(text):
    """Without the name of the machine and the times of the reports."""
    lines = text.split("\n")[1:]
    return [re.sub(r"^20\d\d-.*T.*", "TIME", line) for line in lines]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("-d", "loop3", "1", "2"), "named-dk"),
        (("-x", "-t", "loop3", "2", "2"), "named-x-t"),
        (("-x", "-d", "1", "2"), "all-xd"),
    ],
)
def test_recorded_tables_are_reproduced_to_the_printed_digit(monkeypatch, words, name):
    ours = printed(monkeypatch, wanted(*words), f"{name}.inputs.txt")
    theirs = (GOLDEN / f"{name}.txt").read_text()
    assert without_head(ours) == without_head(theirs)


def test_a_report_without_the_one_since_the_start_is_reproduced(monkeypatch):
    what = wanted("-x", "-d", "-m", "-y", "1", "1")
    first, second = list(readings("all-xd.inputs.txt"))[-1], None
    *_, second = readings("all-xdm-y.inputs.txt")
    before = next(iter(readings("all-xdm-y.inputs.txt")))
    assert first.disks
    given = iter([before, second])
    monkeypatch.setenv("S_TIME_FORMAT", "ISO")
    ours = "".join(iostat.reports(what, lambda: next(given), lambda _: None))
    theirs = (GOLDEN / "all-xdm-y.txt").read_text()
    assert without_head(ours) == without_head(theirs)


def test_recorded_json_is_reproduced_to_the_printed_digit(monkeypatch):
    ours = printed(
        monkeypatch, wanted("-x", "-o", "JSON", "loop3", "1", "2"), "named-x-json.inputs.txt"
    )
    theirs = (GOLDEN / "named-x.json").read_text()
    at = '"statistics"'
    assert ours[ours.index(at) :].strip() == theirs[theirs.index(at) :].strip()
    assert json.loads(ours)["sysstat"]["hosts"][0]["number-of-cpus"] == 2


def test_the_pair_of_readings_gives_the_recorded_figures():
    before, after = (
        parse_diskstats((GOLDEN / f"diskstats_{when}.txt").read_text())["vda"]
        for when in ("before", "after")
    )
    seconds = float((GOLDEN / "interval_seconds.txt").read_text())
    row = disk_tables.extended_row(figures(after.since(before), seconds), is_mb=False)
    head, values = (GOLDEN / "iostat_x_4s.txt").read_text().split("\n")[3:5]
    recorded = dict(zip(head.split()[1:], map(float, values.split()[1:]), strict=True))
    assert len(recorded) == len(row)
    for name, value in recorded.items():
        assert row[name.removeprefix("%")] == pytest.approx(value, rel=5e-3, abs=0.011), name


def test_the_published_rows_of_solaris_come_out():
    """Worked examples of the articles: svc_t is (wait + actv) over the requests per second."""
    first = solaris_figures(Kstat(0, 199, 0, 26_098_688, 0, 197.5e9, 0, 5e9), 5.0)
    second = solaris_figures(Kstat(0, 501, 0, 32_769_024, 0, 72.5e9, 0, 5e9), 5.0)
    table = disk_tables.solaris_table([("sd1", first), ("sd0", second)]).splitlines()
    assert table[1] == "device    r/s    w/s   kr/s   kw/s wait actv  svc_t  %w  %b "
    shown = [" ".join(line.split()[1:]) for line in table[2:]]
    assert shown == [
        "0.0 39.8 0.0 5097.4 0.0 39.5 992.5 0 100",
        "0.0 100.2 0.0 6400.2 0.0 14.5 144.7 0 100",
    ]
    assert table[2] == "sd1       0.0   39.8    0.0 5097.4  0.0 39.5  992.5   0 100 "


def test_processors_stand_in_the_first_row_of_solaris_only():
    nothing = solaris_figures(kstat_of(Counters()), 1.0)
    shares = Processors(user=10, system=20, iowait=30, idle=40).shares(Processors())
    rows = [("sda", nothing), ("sdb", nothing), ("sdc", nothing)]
    _, head, *lines = disk_tables.solaris_table(rows, shares).splitlines()
    assert head.endswith(" us sy wt id")
    assert lines[0].endswith(" 10 20 30 40")
    assert all(line.split()[1:] == ["0.0"] * 7 + ["0", "0"] for line in lines[1:])
    _, head, *lines = disk_tables.solaris_table(rows, has_names_last=True).splitlines()
    assert head == "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device"
    assert lines[0] == "    0.0    0.0    0.0    0.0  0.0  0.0    0.0    0.0   0   0 sda"


def test_a_counter_that_goes_backwards_counts_nothing():
    delta = Counters(rd_ios=5, wr_ios=9).since(Counters(rd_ios=7, wr_ios=4))
    assert (delta.rd_ios, delta.wr_ios) == (0, 5)


def test_short_lines_of_old_kernels_are_read():
    disks = parse_diskstats("8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n")
    assert (disks["sda"].rq_ticks, disks["sda"].dc_ios, disks["sda"].fl_ios) == (11, 0, 0)
    with pytest.raises(IolabError, match="is not understood"):
        parse_diskstats("8 0 sda 1 2 3\n")
    with pytest.raises(IolabError, match="is not understood"):
        parse_diskstats("8 0 sda " + "x " * 17)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nosuch",), "there is no device nosuch"),
        (("0",), "'0' is no interval"),
        (("1", "0"), "'0' is no count"),
        (("1", "2", "3"), "one number too many"),
        (("-o", "XML"), "there is only JSON"),
        (("-c", "-d"), "leave one out"),
        (("--solaris", "-o", "JSON"), "leave one out"),
        (("-q",), "there is no option -q"),
    ],
)
def test_what_means_nothing_is_refused(iolab, words, message):
    code, out, err = iolab("iostat", *words)
    assert (code, out) == (1, "")
    assert message in err


def test_the_running_kernel_is_read(iolab):
    disk = max(read_counters().disks.items(), key=lambda row: row[1].rd_ios)[0]
    code, out, _ = iolab("iostat", "-x", "-y", disk, "0.05", "2")
    assert code == 0
    assert out.count("Device ") == 2
    assert out.count(f"\n{disk} ") == 2
    code, out, _ = iolab("iostat", "-o", "JSON", f"/dev/{disk}")
    (report,) = json.loads(out)["sysstat"]["hosts"][0]["statistics"]
    assert code == 0
    assert report["disk"][0]["disk_device"] == disk
    assert sum(report["avg-cpu"].values()) == pytest.approx(100, abs=0.1)


def test_a_machine_without_proc_is_told(tmp_path):
    with pytest.raises(IolabError, match="cannot be read"):
        read_counters(tmp_path)
