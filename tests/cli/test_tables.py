"""`iolab import`, `diff`, `gate` and `lint` as they are typed."""

import io
import json
import sqlite3
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main

PUBLISHED = Path(__file__).parents[1] / "golden" / "published"
D2 = PUBLISHED / "iozone_vmware_pc601.csv"


def iolab(*arguments):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(a) for a in arguments], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def table(path, *values, unit="MiB/s"):
    rows = [f"none,read,{i},{value},{unit}" for i, value in enumerate(values, start=1)]
    path.write_text("\n".join(["scheduler,operation,run,value,unit", *rows]) + "\n")
    return path


def test_import_prints_the_answer_and_report_repeats_it(tmp_path):
    words = ("import", D2, "--out", tmp_path / "out", "--baseline", "cfq", "--full")
    code, out, err = iolab(*words)
    assert code == 0
    assert out.startswith("Imported from iozone_vmware_pc601.csv.")
    assert "Time per request = a + b x record size" in out
    assert "column option is the factor scheduler" in err
    assert "printed means: 33 of 34 agree" in err
    assert iolab("report", tmp_path / "out", "--full")[1] == out
    assert max(map(len, out.splitlines()[:-4])) <= 80


def test_units_are_a_choice_of_the_reader(tmp_path):
    """Text, Markdown and page follow; what programs read stays as it is."""
    words = ("import", D2, "--out", tmp_path / "out", "--baseline", "cfq", "--full")
    code, iec, _ = iolab(*words)
    stored = (tmp_path / "out" / "verdict.json").read_bytes()
    code, si, _ = iolab("report", tmp_path / "out", "--units", "si", "--full")
    assert code == 0
    assert ("µs/KiB" in iec, "kB" in iec) == (True, False)
    assert ("µs/kB" in si, "iB" in si) == (True, False)
    assert 'id="units-si" class="units" checked' in (tmp_path / "out" / "report.html").read_text()
    assert (tmp_path / "out" / "verdict.json").read_bytes() == stored
    markdown = iolab("report", tmp_path / "out", "--units", "si", "--md")[1]
    assert ("iB/s" in markdown, "MB/s" in markdown) == (False, True)
    assert "µs/kB" in iolab("import", D2, "--out", tmp_path / "si", "--units", "si", "--full")[1]


def test_archive_of_an_imported_study(tmp_path):
    iolab("import", D2, "--out", tmp_path / "out")
    code, _, err = iolab("archive", tmp_path / "out", "--out", tmp_path / "x.iolab")
    assert code == 0, err
    assert "imported from a table, which says nothing that could be run" in err
    assert iolab("lint", tmp_path / "x.iolab")[0] == 5
    code, _, err = iolab("archive", tmp_path / "out", "--export", "fio", "--out", tmp_path / "fio")
    assert (code, "imported from a table" in err) == (1, True)


@pytest.mark.parametrize(
    ("old", "new", "code", "word"),
    [
        ((100, 101, 99, 100, 100), (100, 99, 101, 100, 100), 0, "pass"),
        ((100, 101, 99, 100, 100), (80, 81, 79, 80, 80), 5, "regression"),
        ((100, 120, 80, 100, 90), (95, 80, 110, 120, 70), 4, "undecided"),
    ],
)
def test_gate_exit_codes(tmp_path, old, new, code, word):
    a, b = table(tmp_path / "a.csv", *old), table(tmp_path / "b.csv", *new)
    found, out, _ = iolab("gate", a, b, "--runs-are-sessions")
    assert (found, out.splitlines()[-1].split(":")[0]) == (code, word)
    assert out.startswith(f"{word:10} read")


def test_one_session_a_side_cannot_be_gated(tmp_path):
    """A table of one session said `regression` in 6 to 32 % where nothing had changed."""
    a = table(tmp_path / "a.csv", 100, 101, 99, 100, 100)
    b = table(tmp_path / "b.csv", 80, 81, 79, 80, 80)
    code, out, _ = iolab("gate", a, b)
    assert code == 4
    assert "cannot gate: 1 session a side" in out
    single = table(tmp_path / "single.csv", 100)
    assert iolab("gate", single, single, "--runs-are-sessions")[0] == 4
    several = [flag for n in (1, 2) for flag in ("--also-baseline", a, "--also-new", b)]
    code, out, _ = iolab("gate", a, b, *several)
    assert "n=3/3" in out


def test_levels_of_one_study_are_gated_against_its_baseline(tmp_path):
    code, _, err = iolab(
        *("compare", "--on", "sim:fixed-100us", "--record-size", "4k,8k", "--seed", "3"),
        *("--test", "read", "--file-size", "1m", "--rounds", "3", "--out", tmp_path / "a"),
    )
    assert code == 0, err
    code, out, _ = iolab("gate", tmp_path / "a")
    assert (code, out.split()[0]) == (0, "pass")


def test_gate_knows_that_less_time_is_better(tmp_path):
    a = table(tmp_path / "a.csv", 10, 10.1, 9.9, 10, unit="ms")
    b = table(tmp_path / "b.csv", 5, 5.1, 4.9, 5, unit="ms")
    metric = ("--metric", "elapsed_ns_total", "--runs-are-sessions")
    assert iolab("gate", a, b, *metric)[0] == 0
    assert iolab("gate", b, a, *metric)[0] == 5


def test_gate_usage_errors_are_exit_1(tmp_path):
    a = table(tmp_path / "a.csv", 1, 2)
    for arguments, message in (
        ([], "needs BASELINE"),
        ([a, "--also-new", a], "only one study is named"),
        ([a, tmp_path / "none"], "does not exist"),
        ([a, tmp_path / "none.csv"], "there is no such file"),
        ([a, a, "--metric", "latency_ns_p98"], "did you mean 'latency_ns_p9"),
        ([a, a, "--metric", "latency_ns_p99"], "was not measured by both"),
        ([a, a, "--margin", "0"], "--margin"),
    ):
        code, out, err = iolab("gate", *arguments)
        assert (code, out) == (1, ""), arguments
        assert message in err, err


def test_gate_refuses_other_machines_unless_it_is_told_not_to(tmp_path, digests_anew):
    """Two simulated studies are one machine; one that says it was real is another.

    Issue 14, point 16: `diff` judged a simulated against a real study with a remark at its end.
    """
    for name in ("a", "b"):
        code, _, err = iolab(
            *("compare", "--on", "sim:fixed-100us", "--scheduler", "noop,deadline", "--seed", "3"),
            *("--test", "read", "--file-size", "1m", "--rounds", "5", "--out", tmp_path / name),
        )
        assert code == 0, err
    arguments = ("gate", tmp_path / "a", tmp_path / "b")
    assert iolab(*arguments)[0] == 0
    with sqlite3.connect(tmp_path / "b" / "study.db") as database:
        named = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'study'"
        for (name,) in database.execute(named).fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE study SET kind = 'real'")
        digests_anew(database)
    code, out, err = iolab(*arguments)
    assert (code, out) == (1, "")
    assert f"{tmp_path / 'a'} is simulated, {tmp_path / 'b'} is real: a difference would be" in err
    code, _, err = iolab(*arguments, "--allow-other-machine")
    assert code in (0, 4)
    assert "note: one of the two is simulated and the other is not" in err
    for form in ((), ("--md",)):
        told = " ".join(iolab("diff", tmp_path / "a", tmp_path / "b", *form)[1].split())
        assert told.startswith("Mind that one of the two is simulated and the other is not: what")


def test_gate_knows_the_short_names_of_metrics(tmp_path):
    """`gate --metric p99` was refused, though every other command takes it."""
    study = tmp_path / "a"
    code, _, err = iolab(
        *("compare", "--on", "sim:fixed-100us", "--record-size", "4k,8k", "--seed", "3"),
        *("--test", "read", "--file-size", "1m", "--rounds", "3", "--out", study),
    )
    assert code == 0, err
    code, out, _ = iolab("gate", study, study, "--metric", "p50,throughput")
    assert code == 0
    assert "median latency" in out
    assert "throughput" in out
    code, _, err = iolab("gate", study, study, "--metric", "p98")
    assert code == 1
    assert "'p98' is not a metric; did you mean 'p99'?" in err


def test_diff_in_three_forms(tmp_path):
    iolab("import", D2, "--out", tmp_path / "a")
    code, out, _ = iolab("diff", tmp_path / "a", D2)
    assert code == 0
    assert "35 cells match" in " ".join(out.split())
    assert "two independent samples" in " ".join(out.split())
    assert out.index("Environment") < out.index("Cells")
    document = json.loads(iolab("diff", tmp_path / "a", D2, "--json")[1])
    assert len(document["cells"]) == 35
    assert {c["effect"]["ratio"] for c in document["cells"]} == {1.0}
    markdown = iolab("diff", tmp_path / "a", D2, "--md")[1]
    assert markdown.count("| Re-read ·") == 6
    assert "### Environment" in markdown


def test_lint_of_a_table_names_what_it_breaks():
    code, out, _ = iolab("lint", D2)
    assert code == 5
    assert out.splitlines()[-1] == "6 of 12 broken: 3, 5, 7, 8, 9, 11"
    rules = json.loads(iolab("lint", D2, "--json")[1])["rules"]
    assert [rule["number"] for rule in rules] == list(range(1, 13))
