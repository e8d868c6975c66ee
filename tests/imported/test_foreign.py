"""Output of iozone and bonnie++: recordings become studies, garbage an error with its line."""

import re
import struct
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.imported.foreign.join import Named, levels_of, parse_argument, read_files
from iolab.imported.foreign.recognise import read_foreign
from iolab.imported.mapping import Wishes
from iolab.imported.study import store_imported, understand, understand_files
from iolab.imported.table import TableError
from iolab.stats.judge import judge
from iolab.store.db import Store

GOLDEN = Path(__file__).parents[1] / "golden"
IOZONE = GOLDEN / "iozone"
BONNIE = GOLDEN / "bonnie"
D5_LINE = (
    "1.96,1.96,host,1,1352637907,15464M,,144,99,60984,12,35507,9,345,90,95825,10,800.4,26,"
    "16,,,,,9603,93,+++++,+++,25418,97,7615,94,+++++,+++,20001,97,"
    "103ms,212ms,1351ms,751ms,547ms,556ms,37143us,734us,584us,86610us,101us,1078us\n"
)
"""The record that the document prints, put together again from its fields."""
OLD_LINE = (
    "server,2G,30281,98,39512,9,16863,4,31400,91,42216,5,222.2,0,"
    "16:4096:512/8,3022,99,+++++,+++,+++++,+++,3100,98,+++++,+++,8100,99\n"
)


def numbers(path):
    source = read_foreign(path, path.read_bytes())
    return source.numbers if source else None


def values(path):
    return {(f.operation, *f.about): f.value for f in numbers(path)}


def study(tmp_path, *paths, **wishes):
    named = [parse_argument(str(path)) for path in paths]
    store_imported(understand_files(named, Wishes(**wishes)), tmp_path / "o" / "study.db", "test")
    with Store.open_reader(tmp_path / "o" / "study.db") as store:
        data = store.load_data()
    return data, judge(data)


def with_result(folder, suffix, mark):
    return sorted(p for p in folder.glob(f"*.{suffix}") if re.search(mark, p.read_text(), re.M))


BONNIE_LINES = with_result(BONNIE, "stdout", r"^1\.98,([^,]*,){48}[^,]*$")
BONNIE_TABLES = with_result(BONNIE, "stderr", r"------Sequential")


def test_the_recordings_are_there():
    assert len(BONNIE_LINES) >= 18
    assert len(BONNIE_TABLES) >= 14
    assert len(list(IOZONE.glob("*.xls"))) >= 6


@pytest.mark.parametrize("path", [*BONNIE_LINES, *BONNIE_TABLES], ids=lambda p: p.name)
def test_every_recorded_result_of_bonnie_is_a_study(tmp_path, path):
    data, verdict = study(tmp_path, path)
    assert data.measurements
    assert verdict.headline_word == "undecided"
    text = path.read_text()
    runs = max(text.count("\n1.98,"), text.count("Sequential Output"), 1) + text.startswith("1.98,")
    assert max(m.round for m in data.measurements) <= runs


@pytest.mark.parametrize("path", sorted(BONNIE.glob("err_*.std*")), ids=lambda p: p.name)
def test_failed_runs_are_refused(path):
    with pytest.raises(TableError):
        understand_files([Named(path)], Wishes())


def test_d5_line_says_what_the_transcription_says(tmp_path):
    path = tmp_path / "d5.csv"
    path.write_text(D5_LINE)
    ours = {
        (v.operation, v.quantity.metric): float(v.printed) * v.quantity.scale
        for v in understand_files([Named(path)], Wishes()).reading.runs
        if v.quantity
    }
    table = understand(GOLDEN / "published" / "bonnie_zfs_t510.csv", Wishes())
    theirs = {
        (v.operation, v.quantity.metric): float(v.printed) * v.quantity.scale
        for v in table.reading.runs
        if v.quantity
    }
    assert len(ours) == 22
    assert ours == {key: theirs[key] for key in ours}
    assert set(theirs) == set(ours)


def test_versions_of_the_line_agree(tmp_path):
    """The same run as 1.96 (48 fields) and 1.98 (50): only seeks and seekers are added."""
    fields = D5_LINE.strip().split(",")
    newer = ["1.98", "2.00a", *fields[2:7], "8192", "5", *fields[7:]]
    (tmp_path / "a").write_text(D5_LINE)
    (tmp_path / "b").write_text(",".join(newer) + "\n")
    (tmp_path / "c").write_text(D5_LINE.replace("1.96,1.96", "1.97,1.97", 1))
    plain = [
        [(f.operation, f.value, f.unit) for f in numbers(tmp_path / name)] for name in ("a", "b")
    ]
    assert plain[0] == plain[1]
    assert plain[0] == [(f.operation, f.value, f.unit) for f in numbers(tmp_path / "c")]
    assert dict(numbers(tmp_path / "b")[0].about)["seekers"] == "5"


def test_lines_of_before_1_90(tmp_path):
    path = tmp_path / "old.txt"
    path.write_text(f"name,file_size,putc\n{OLD_LINE}")
    found = {f.operation: f for f in numbers(path)}
    assert found["put_block"].value == "39512"
    assert found["put_block"].unit == "KB/s"
    assert found["seeks"].value == "222.2"
    assert found["ran_del"].value == "8100"
    assert found["seq_stat"].value == ""
    assert dict(found["putc"].about) == {
        "machine": "server",
        "file_size": "2g",
        "files": "16:4096:512/8",
    }


def test_the_table_of_1_96(tmp_path):
    path = tmp_path / "t"
    path.write_text(
        "Version  1.96       ------Sequential Output------ --Sequential Input- --Random-\n"
        "Concurrency   1     -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--\n"
        "Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP\n"
        "server           8G   665  99 99412  19 44104  11  3042  99 114312  14 246.9   9\n"
        "Latency             12334us     212ms    1351ms   11010us     547ms     556ms\n"
    )
    assert {f.operation: f.value for f in numbers(path) if f.unit == "KB/s"} == {
        "putc": "665",
        "put_block": "99412",
        "rewrite": "44104",
        "getc": "3042",
        "get_block": "114312",
    }


def test_text_and_line_of_one_run_agree_within_what_is_printed():
    for path in BONNIE_TABLES:
        line = path.with_suffix(".stdout")
        if line not in BONNIE_LINES or "csv2" in path.name or path.stem == "semaphores":
            continue
        exact = {f.operation: f for f in numbers(line)}
        for found in numbers(path):
            other = exact[found.operation]
            if found.unit == "KB/s" and found.value:
                assert float(found.value) == pytest.approx(float(other.value), rel=0.05)
            elif found.value:
                assert found.value == other.value, (path.name, found.operation)


def test_false_file_rates_of_the_table_are_not_believed():
    found = {f.operation: f for f in numbers(BONNIE / "files_only_sizes.stderr")}
    assert found["seq_create"].value == ""
    assert "number of files" in found["seq_create"].notes
    line = {f.operation: f for f in numbers(BONNIE / "files_only_sizes.stdout")}
    assert line["seq_create"].value == "2038"


def test_automatic_table_and_its_spreadsheets_agree():
    """Text table, report text and worksheet of one run: the same numbers."""
    text = IOZONE / "excel_auto.stdout"

    def plain(path):
        return {
            (f.operation, dict(f.about)["file_size"], dict(f.about)["record_size"]): float(f.value)
            for f in numbers(path)
        }

    assert len(plain(text)) == 24
    assert plain(text)["reread", "128k", "64k"] == 31945770
    assert plain(IOZONE / "excel_auto.auto.xls") == plain(text)


def test_report_text_alone(tmp_path):
    for name in ("excel_auto", "cpu_util_R", "multi_t", "l1_u3"):
        whole = (IOZONE / f"{name}.stdout").read_text()
        start = re.search(r'^"(Writer|Throughput) report', whole, re.M).start()
        path = tmp_path / name
        path.write_text(whole[start:])
        alone = Counter((f.operation, float(f.value)) for f in numbers(path))
        full = Counter(
            (f.operation, float(f.value)) for f in numbers(IOZONE / f"{name}.stdout") if f.value
        )
        assert alone == full, name


def test_throughput_of_children_by_number_of_processes():
    found = values(IOZONE / "multi_t.stdout")
    assert len([v for v in found.values() if v]) == 4
    by_count = {dict(key[1:])["processes"]: v for key, v in found.items() if key[0] == "write"}
    assert by_count == {"1": "3087188.75", "3": "5215304.50"}
    sheet = {
        dict(f.about)["processes"]: float(f.value)
        for f in numbers(IOZONE / "l1_u3.lu.xls")
        if f.operation == "write"
    }
    assert sheet == {"1": 3017775.75, "2": 2812273.0, "3": 2539563.25}


def test_stdio_beside_direct_is_labelled_as_page_cache():
    for name in ("excel_direct_t1.stdout", "excel_direct_t1.out.xls"):
        notes = {f.operation: f.notes for f in numbers(IOZONE / name)}
        assert "page cache" in notes["fwrite"]
        assert "page cache" not in notes["write"]


def test_columns_that_touch_are_told_apart():
    found = {f.operation: f.value for f in numbers(IOZONE / "ext_tests.stdout")}
    assert found["repwrite"] == "14953435"
    assert found["pread"] == "15164624"
    assert found["repread"] == "36024719"
    assert len(found) == 17


def test_units_of_other_modes(tmp_path):
    ops = numbers(IOZONE / "ops_O.stdout")
    assert {(f.operation, f.value, f.unit) for f in ops} >= {("write", "202253", "1/s")}
    data, _ = study(tmp_path, IOZONE / "usec_N.stdout")
    assert {(m.operation, m.metric, m.value) for m in data.measurements} == {
        ("write (time per op)", "latency_ns_mean", 4000.0),
        ("rewrite (time per op)", "latency_ns_mean", 1000.0),
    }


@pytest.mark.parametrize(
    ("name", "count"),
    [("auto_A", 72), ("noretest", 9), ("async_H", 2), ("mmap_B", 9), ("multi_s_r", 16)],
)
def test_forms_of_the_table(name, count):
    assert sum(bool(f.value) for f in numbers(IOZONE / f"{name}.stdout")) == count


@pytest.mark.parametrize("name", ["err_unwritable", "reader_without_file"])
def test_a_run_that_failed_is_told_with_its_line(name):
    path = IOZONE / f"{name}.stdout"
    with pytest.raises(TableError, match=r"line \d+: ") as caught:
        understand_files([Named(path)], Wishes())
    assert str(path) in str(caught.value)


def test_an_older_head_of_the_table(tmp_path):
    path = tmp_path / "old.txt"
    path.write_text(
        "              KB  reclen   write rewrite    read    reread    read   write    read"
        "  rewrite     read   fwrite frewrite   fread  freread\n"
        "          524288       4  212345  312345  412345    512345   62345   72345   82345"
        "   912345   102345   112345   122345  132345   142345\n\n"
    )
    found = [f.value for f in numbers(path)]
    assert found == [
        *("212345", "312345", "412345", "512345", "62345", "72345", "82345"),
        *("912345", "102345", "112345", "122345", "132345", "142345"),
    ]


@pytest.mark.parametrize(
    ("names", "levels"),
    [
        (["cfq-1.txt", "cfq-2.txt", "bfq-1.txt"], ["cfq", "cfq", "bfq"]),
        (["a/run1.txt", "a/run2.txt"], ["", ""]),
        (["iozone_cfq_1.txt", "iozone_bfq_1.txt"], ["cfq", "bfq"]),
        (["raid-0.txt", "raid-5.txt"], ["0", "5"]),
        (["4.19.txt", "5.10.txt"], ["4.19", "5.10"]),
        (["ext3.txt", "ext4.txt"], ["ext3", "ext4"]),
        (["a/out.txt", "b/out.txt"], ["a", "b"]),
        (["x=1.txt", "y=2.txt"], ["x", "y"]),
        (["x.run1.txt", "x.run2.txt", "y.run1.txt"], ["x", "x", "y"]),
        (["lone.txt"], [""]),
    ],
)
def test_levels_of_files(names, levels):
    assert levels_of([parse_argument(name) for name in names]) == levels


def test_several_files_are_runs_of_levels(tmp_path):
    line = BONNIE_LINES[0].read_text()
    base = D5_LINE
    paths = []
    for level, rates in (("cfq", (60984, 61984, 59984)), ("deadline", (90984, 91984, 92984))):
        for run, rate in enumerate(rates, start=1):
            path = tmp_path / f"{level}-{run}.csv"
            path.write_text(base.replace(",60984,", f",{rate},"))
            paths.append(path)
    assert line
    data, verdict = study(tmp_path, *reversed(paths))
    assert data.study.compared_factor == "scheduler"
    block = {
        (m.levels["scheduler"], m.round): m.value / 1024
        for m in data.measurements
        if m.operation == "put_block"
    }
    assert block == {
        ("cfq", 1): 60984, ("cfq", 2): 61984, ("cfq", 3): 59984,
        ("deadline", 1): 90984, ("deadline", 2): 91984, ("deadline", 3): 92984,
    }  # fmt: skip
    cell = next(c for c in verdict.cells if c.operation == "put_block")
    assert cell.effect.word != "undecided"


def test_compare_names_the_factor_of_the_files(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(D5_LINE)
    data, _ = study(tmp_path, f"6.1={tmp_path}/a", f"6.6={tmp_path}/b", compare="kernel")
    assert data.study.compared_factor == "kernel"
    with pytest.raises(TableError, match="no such factor"):
        study(tmp_path, tmp_path / "a", compare="kernle")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (D5_LINE.replace("1.96,1.96", "1.93,1.93c", 1), "line 1: bonnie\\+\\+'s CSV format '1.93'"),
        (D5_LINE.replace(",+++++,+++", ",+++++", 1), "line 1: 47 fields, but format 1.96 has 48"),
        ("x\n" + D5_LINE.replace("60984", "6x984"), "line 2: put_block: '6x984' is no rate"),
        (D5_LINE.replace("212ms", "212m"), "line 1: put_block: '212m' is no latency"),
        (D5_LINE.replace(",12,", ",12%,"), "'12%' is no share of a processor"),
    ],
)
def test_broken_lines_of_bonnie(tmp_path, content, message):
    path = tmp_path / "b.csv"
    path.write_text(content)
    with pytest.raises(TableError, match=message):
        understand_files([Named(path)], Wishes())


def test_spreadsheets_of_others_are_refused_by_name(tmp_path):
    for content in (b"PK\x03\x04rest", bytes.fromhex("d0cf11e0a1b11ae1") + b"x"):
        path = tmp_path / "x.xls"
        path.write_bytes(content)
        with pytest.raises(TableError, match="as Excel or LibreOffice saves it"):
            understand_files([Named(path)], Wishes())


def test_broken_worksheets(tmp_path):
    whole = (IOZONE / "excel_auto.auto.xls").read_bytes()
    path = tmp_path / "x.xls"
    for cut in (8, 9, 100, len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:cut])
        with pytest.raises(TableError, match="broken off"):
            understand_files([Named(path)], Wishes())
    nan = whole[:8] + struct.pack("<HHHH3xd", 3, 15, 0, 0, float("nan")) + b"\x0a\0\0\0"
    path.write_bytes(nan)
    with pytest.raises(TableError, match="byte 8: a number that is none"):
        understand_files([Named(path)], Wishes())


def test_same_file_twice_and_tables_among_others(tmp_path):
    (tmp_path / "a").write_text(D5_LINE)
    (tmp_path / "t.csv").write_text("value,unit\n1,KB/s\n")
    with pytest.raises(TableError, match="named twice"):
        read_files([Named(tmp_path / "a"), Named(tmp_path / "a")])
    with pytest.raises(TableError, match="imported alone"):
        read_files([Named(tmp_path / "a"), Named(tmp_path / "t.csv")])
    with pytest.raises(TableError, match="is of no level, but other files are"):
        read_files([Named(tmp_path / "a", "A"), Named(tmp_path / "t.csv")])


SEEDS = [
    *(p.read_bytes() for p in sorted(IOZONE.glob("*.xls"))),
    *(p.read_bytes() for p in sorted(IOZONE.glob("*.stdout"))),
    *(p.read_bytes() for p in (*BONNIE_LINES, *BONNIE_TABLES)),
    D5_LINE.encode(),
    OLD_LINE.encode(),
]


@settings(max_examples=300, deadline=2000)
@given(data=st.data())
def test_damaged_recordings_never_crash(tmp_path_factory, data):
    """A recording with bytes changed, cut, doubled: a study or an error that names the file."""
    content = bytearray(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, max(0, len(content) - 1)))
        match data.draw(st.sampled_from(["set", "cut", "insert", "double", "digits"])):
            case "set":
                content[place : place + 1] = data.draw(st.binary(min_size=1, max_size=2))
            case "cut":
                del content[place : place + data.draw(st.integers(1, 400))]
            case "insert":
                content[place:place] = data.draw(st.binary(max_size=40))
            case "double":
                content += content[place:]
            case _:
                content[place:place] = b"9" * data.draw(st.integers(1, 30))
    path = tmp_path_factory.mktemp("f") / "x"
    path.write_bytes(bytes(content))
    try:
        imported = understand_files([Named(path)], Wishes())
    except TableError as error:
        assert str(path) in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert imported.trials


@settings(max_examples=200, deadline=2000)
@given(
    st.one_of(st.binary(max_size=4000), st.text(alphabet="0123456789,.+kMG \n\t-", max_size=4000))
)
def test_garbage_never_crashes(tmp_path_factory, garbage):
    path = tmp_path_factory.mktemp("g") / "x"
    path.write_bytes(garbage if isinstance(garbage, bytes) else garbage.encode())
    for start in (b"", bytes((9, 0, 4, 0, 2, 0, 16, 0)), b"   kB  reclen    write  rewrite\n"):
        path.write_bytes(start + path.read_bytes())
        try:
            understand_files([Named(path)], Wishes())
        except TableError as error:
            assert str(error)  # noqa: PT017 - either outcome is right
