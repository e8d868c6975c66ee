"""Wrong tables: a clear message with its place, exit 1, nothing written; and right ones."""

import csv
import io
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import IolabError
from iolab.imported.latency_words import names_a_statistic
from iolab.imported.mapping import Wishes
from iolab.imported.study import store_imported, understand
from iolab.imported.table import TableError, read_content
from iolab.store.db import Store
from iolab.store.verify import problems_of_study

HEAD = "scheduler,operation,run,value,unit\n"
GOOD = HEAD + "none,read,1,100,MiB/s\nbfq,read,1,90,MiB/s\n"

MALFORMED = {
    "empty": (b"", "the file is empty"),
    "blank": (b"\n \n", "the file is empty"),
    "header only": (HEAD.encode(), "there is a header but no row"),
    "one column": (b"value\n1\n", "one column only"),
    "unnamed column": (b"value,,unit\n1,2,s\n", "column 2 has no name"),
    "column twice": (b"value,unit,unit\n1,s,s\n", "column 'unit': there are two columns"),
    "no value column": (b"a,b,unit\n1,2,s\n", "no column holds the values"),
    "no unit column": (b"fs,value\next4,2\n", "no column with the unit"),
    "cell too many": ((HEAD + "none,read,1,1,234,KB/s\n").encode(), "line 2: 6 cells"),
    "cell too few": ((HEAD + "none,read,1,1\n").encode(), "line 2: 4 cells"),
    "open quote": ((HEAD + '"none,read,1,1,KB/s\n').encode(), "not well-formed CSV"),
    "text after quote": ((HEAD + '"no"ne,read,1,1,KB/s\n').encode(), "not well-formed CSV"),
    "utf-16": (GOOD.encode("utf-16"), "not UTF-8"),
    "latin-1": ((HEAD + "k\xfcrz,read,1,1,KB/s\n").encode("latin-1"), "line 2: not UTF-8"),
    "nul": ((HEAD + "no\0ne,read,1,1,KB/s\n").encode(), "line 2: there is a NUL"),
    "escape": ((HEAD + "no\x1bne,read,1,1,KB/s\n").encode(), "cannot be printed"),
    "huge cell": ((HEAD + "n" * 501 + ",read,1,1,KB/s\n").encode(), "501 characters"),
    "not a number": ((HEAD + "none,read,1,fast,KB/s\n").encode(), "line 2, column 'value': 'fast'"),
    "nan": ((HEAD + "none,read,1,nan,KB/s\n").encode(), "'nan' is not a number"),
    "too large": ((HEAD + "none,read,1,1e999,KB/s\n").encode(), "'1e999' is not a number"),
    "decimal comma": ((HEAD + 'none,read,1,"1,5",KB/s\n').encode(), "a decimal point"),
    "thousands": ((HEAD + 'none,read,1,"1,234,567",KB/s\n').encode(), "thousands separators"),
    "unit in value": ((HEAD + "none,read,1,12 MB/s,\n").encode(), "a column of its own"),
    "negative": ((HEAD + "none,read,1,-3,KB/s\n").encode(), "-3 KB/s is below zero"),
    "run zero": (
        (HEAD + "none,read,0,3,KB/s\n").encode(),
        "line 2, column 'run': '0' is not a run",
    ),
    "run a word": ((HEAD + "none,read,first,3,KB/s\n").encode(), "'first' is not a run"),
    "run twice": (
        (HEAD + "none,read,1,3,KB/s\nnone,read,1,4,KB/s\n").encode(),
        "line 3: run 1 of read · none stands in line 2 already",
    ),
    "run too large": (
        (HEAD + "none,read,000000001999999,3,KB/s\n").encode(),
        "'000000001999999' is not a run",
    ),
    "two units": (
        (HEAD + "none,read,1,3,MB/s\nnone,read,1,3000,KB/s\n").encode(),
        "line 3: run 1 of read · none stands in line 2 already in MB/s: leave one of the units out",
    ),
    "two units, runs counted": (
        b"fs,value,unit\next4,1,MB/s\next4,1000,KB/s\n",
        "line 3: all · ext4 is in KB/s, in line 2 in MB/s, and no column says which run a row is",
    ),
    "a series as runs": (
        b"fs,value,unit\n" + b"ext4,1,MB/s\n" * 1001,
        "line 1002: more than 1000 rows of all · ext4, and no column says which run a row is",
    ),
    "points part thousands": (
        (HEAD + "none,read,1,980,MB/s\nbfq,read,1,1.180,MB/s\n").replace(",", ";").encode(),
        "line 3, column 'value': '1.180' may be 1180 or 1.18: line 2 has '980', without a point",
    ),
    "points part millions": ((HEAD + "none,read,1,1.234.567,KB/s\n").encode(), "thousands separ"),
    "beyond measure": ((HEAD + "none,read,1,1e300,B/s\n").encode(), "1e300 B/s is too large to be"),
    "below measure": (
        (HEAD + "none,read,1,1e-320,B/s\n").encode(),
        "1e-320 B/s is too small to be",
    ),
    "too many columns": (
        ",".join(f"c{n}" for n in range(501)).encode() + b"\n",
        "line 1: 501 columns, more than 500",
    ),
    "huge head": (b"fs," + b"x" * 501 + b"\na,1\n", "column 2: a name of 501 characters"),
    "escape in head": (b"fs,a\x1bb\na,1\n", "column 2: a name with a character that cannot be"),
    "value twice": (
        b"fs,Value,value,unit\na,1,2,s\n",
        "columns 'Value' and 'value' may both be the value: say which one, as in --map value=Value",
    ),
    "no values": ((HEAD + "none,read,1,,KB/s\n").encode(), "no row has a value"),
    "settings only": ((HEAD + "none,read,,3,KB/s\n").encode(), "no row is a measurement"),
    "means only": ((HEAD + "none,read,mean,3,KB/s\n").encode(), "printed means but no runs"),
    "bad size": (
        b"record_size,value,unit,run\nbig,1,KB/s,1\n4k,1,KB/s,1\n",
        "line 2, column 'record_size': 'big' is not a size",
    ),
}


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(a) for a in arguments], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_tables_are_refused_and_nothing_is_written(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    content, message = MALFORMED[name]
    (tmp_path / "t.csv").write_bytes(content)
    code, out, err = run("import", "t.csv", "--out", "out")
    assert code == 1
    assert out == ""
    assert message in err
    assert err.startswith("iolab: t.csv")
    assert err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--map", "value=speed"], "--map value: there is no column 'speed'"),
        (["--map", "values=value"], "there is no role 'values'; did you mean 'value'?"),
        (["--map", "value"], "not of the form ROLE=COLUMN"),
        (["--factor", "sheduler"], "there is no column 'sheduler'; did you mean 'scheduler'?"),
        (["--compare", "shceduler"], "did you mean 'scheduler'?"),
        (["--baseline", "bqf"], "did you mean 'bfq'?"),
        (["--margin", "-1"], "--margin"),
        (["--margin", "5"], "--margin"),
    ],
)
def test_wrong_flags_are_refused_and_nothing_is_written(tmp_path, flags, message):
    (tmp_path / "t.csv").write_text(GOOD)
    code, _, err = run("import", tmp_path / "t.csv", "--out", tmp_path / "out", *flags)
    assert (code, message in err) == (1, True), err
    assert not (tmp_path / "out").exists()


def test_files_that_are_not_there(tmp_path):
    for path, told in ((tmp_path / "none.csv", "there is no such"), (tmp_path, "cannot be read")):
        code, _, err = run("import", path, "--out", tmp_path / "out")
        assert code == 1
        assert told in err


def test_import_does_not_replace_a_study(tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    assert run("import", tmp_path / "t.csv", "--out", tmp_path / "out")[0] == 0
    before = (tmp_path / "out" / "study.db").read_bytes()
    code, _, err = run("import", tmp_path / "t.csv", "--out", tmp_path / "out")
    assert code == 1
    assert "already holds the study" in err
    assert (tmp_path / "out" / "study.db").read_bytes() == before


def test_strict_is_exit_4(tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    assert run("import", tmp_path / "t.csv", "--out", tmp_path / "out", "--strict")[0] == 4


def test_other_headers_are_mapped(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Kernel;Test;reclen;mbps\n6.1;read;4;10\n6.1;read;4;11\n6.6;read;4;20\n")
    imported = understand(
        path,
        Wishes(
            columns={"value": "mbps", "operation": "Test"},
            factors={"Kernel": "kernel", "reclen": "record_size_kb"},
            unit="MiB/s",
        ),
    )
    assert imported.plan.study.compared_factor == "kernel"
    assert [t.levels for t in imported.trials] == [
        (("kernel", "6.1"), ("record_size", "4k")),
        (("kernel", "6.6"), ("record_size", "4k")),
        (("kernel", "6.1"), ("record_size", "4k")),
    ]
    assert [t.round for t in imported.trials] == [1, 1, 2]
    assert "runs_counted" in {c.code for c in imported.caveats}


UNITS = {"KB/s": 1024.0, "MiB/s": float(1 << 20), "MB/s": 1e6, "ops/s": 1.0, "us": 1e3, "ms": 1e6}
names = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=("C", "Z")),
    min_size=1,
    max_size=12,
).filter(
    # A time that is some statistic (P0) is judged only if iolab has a metric for it.
    lambda text: text.lower() not in ("mean", "average", "avg") and not names_a_statistic(text)
)
tables = st.lists(
    st.tuples(
        st.sampled_from(["none", "bfq", "kyber"]),
        st.sampled_from([4096, 32768, 1 << 20]),
        names,
        st.integers(1, 4),
        st.floats(1e-3, 1e9, allow_nan=False),
        st.sampled_from(sorted(UNITS)),
    ),
    min_size=1,
    max_size=25,
    unique_by=lambda row: (row[0], row[1], row[2], row[3]),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables, separator=st.sampled_from([",", ";", "\t"]), has_mark=st.booleans())
def test_what_goes_in_comes_out(tmp_path_factory, rows, separator, has_mark):
    folder = tmp_path_factory.mktemp("table")
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    writer.writerow(["option", "record_size_bytes", "operation", "run", "value", "unit"])
    writer.writerows(rows)
    path = folder / "t.csv"
    path.write_bytes((b"\xef\xbb\xbf" if has_mark else b"") + text.getvalue().encode())
    store_imported(understand(path, Wishes()), folder / "out" / "study.db", "test")
    with Store.open_reader(folder / "out" / "study.db") as store:
        data = store.load_data()
    found = {
        (m.levels["scheduler"], m.levels.get("record_size"), m.operation, m.round): m.value
        for m in data.measurements
    }
    sizes = {4096: "4k", 32768: "32k", 1 << 20: "1m"}
    wanted = {
        (s, sizes[size], operation, run): value * UNITS[unit]
        for s, size, operation, run, value, unit in rows
    }
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key] == pytest.approx(value, rel=1e-12)


def test_a_file_without_an_end_is_refused_and_a_pipe_is_read(tmp_path):
    """Its size said 0, so that `iolab import /dev/zero` took memory until there was none."""
    with pytest.raises(IolabError, match="/dev/zero is a device, not a regular file"):
        read_content(Path("/dev/zero"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(IolabError, match=r"is a pipe \(FIFO\), not a regular file: name a file"):
        read_content(pipe)
    # What a shell makes of <(zcat runs.csv.gz).
    end, other = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(other, GOOD.encode()), os.close(other)))
    writer.start()
    assert read_content(Path(f"/dev/fd/{end}")) == GOOD.encode()
    writer.join()
    os.close(end)


def test_content_without_an_end_is_read_to_its_limit():
    with Path("/dev/zero").open("rb") as endless, pytest.raises(TableError, match="is larger than"):
        read_content(Path(f"/dev/fd/{endless.fileno()}"))


def test_decimals_that_all_values_have_are_decimals(tmp_path):
    path = tmp_path / "t.csv"
    for values in (("1.180", "980.250"), ("1.180", "1.5", "2"), ("0.980", "1")):
        rows = [f"none;read;{run};{value};MB/s" for run, value in enumerate(values, start=1)]
        path.write_text(HEAD.replace(",", ";") + "\n".join(rows) + "\n")
        assert [v.printed for v in understand(path, Wishes()).reading.values] == list(values)


def test_a_study_that_cannot_be_stored_leaves_nothing_behind(tmp_path, monkeypatch):
    """Half of it stayed, and the second try was told that the directory holds a study already."""
    (tmp_path / "t.csv").write_text(GOOD)

    def fail(*_):
        raise OverflowError("too large for a column")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "commit_record", fail)
        assert run("import", tmp_path / "t.csv", "--out", tmp_path / "a" / "out")[0] != 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]
    assert run("import", tmp_path / "t.csv", "--out", tmp_path / "a" / "out")[0] == 0


@pytest.mark.parametrize(
    "values",
    [
        [("noop", 1, 100), ("noop", 2, 101), ("bfq", 3, 200), ("bfq", 4, 201)],
        [("noop", 1, 0), ("noop", 2, 5), ("noop", 3, 0), ("bfq", 1, 0), ("bfq", 3, 1.2)],
    ],
)
@pytest.mark.parametrize("unit", ["MB/s", "ms"])
def test_tables_whose_runs_have_no_common_number_are_judged(tmp_path, values, unit):
    """`the mean of no values does not exist`: a finding looked for rounds that levels share."""
    rows = [f"{level},read,{n},{value},{unit}" for level, n, value in values]
    (tmp_path / "t.csv").write_text(HEAD + "\n".join(rows) + "\n")
    code, out, err = run("import", tmp_path / "t.csv", "--out", tmp_path / "out")
    assert (code, "bfq" in out) == (0, True), err


def test_a_study_with_gaps_in_its_runs_is_not_called_damaged(tmp_path):
    """Runs 10 and 20 of a table: `iolab archive --check` said that there is no round 10."""
    path = tmp_path / "t.csv"
    path.write_text(GOOD.replace("read,1", "read,10") + "none,read,20,101,MiB/s\n")
    store_imported(understand(path, Wishes()), tmp_path / "out" / "study.db", "test")
    assert problems_of_study(tmp_path / "out" / "study.db") == ()


def test_a_factor_of_more_levels_than_can_be_ranked_is_refused(tmp_path):
    """Such a column numbers or dates the rows; all pairs of its levels took minutes."""
    rows = [f"{n},read,{n},MB/s" for n in range(1, 502)]
    path = tmp_path / "t.csv"
    path.write_text("stamp,operation,value,unit\n" + "\n".join(rows) + "\n")
    with pytest.raises(IolabError, match=r"stamp has 501 levels, more than 500.*--factor"):
        understand(path, Wishes())
