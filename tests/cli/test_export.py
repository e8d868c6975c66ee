"""`iolab export`: the same rows in every format, over nobody's file."""

import csv
import io
import json
import zipfile

import pytest

import iolab
from iolab.cli.console import Console
from iolab.cli.main import main


def run(*words):
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    code = main(["export", *map(str, words)], console=Console(out, err))
    out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()


@pytest.fixture
def study(request, tmp_path):
    path = request.config.rootpath / "tests/golden/stores/schema-3/iozone-sizes.iolab"
    with zipfile.ZipFile(path) as members:
        (tmp_path / "study.db").write_bytes(members.read("study.db"))
    return tmp_path


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_printed_values_are_those_of_the_library(study):
    code, text, _ = run(study)
    rows = rows_of(text)
    result = iolab.open(study)
    assert code == 0
    expected = {
        (row[0], row[4], name): value
        for row in result.to_rows()
        for name, value in zip(result.columns, row, strict=True)
        if "_" in name and isinstance(value, float)
    }
    found = {(r["trial"], r["operation"], r["metric"]): float(r["value"]) for r in rows}
    assert found
    assert {key: value for key, value in expected.items() if key in found} == found
    assert {r["record_size"] for r in rows} == {"4k", "8k", "16k"}


def test_json_is_one_array_with_the_same_values(study):
    rows = rows_of(run(study, "--csv")[1])
    objects = json.loads(run(study, "--json")[1])
    assert [list(o) for o in objects[:1]] == [list(rows[0])]
    same = [{name: "" if v is None else str(v) for name, v in o.items()} for o in objects]
    assert same == rows


def test_the_ending_of_a_file_says_the_format(study, tmp_path):
    code, told, _ = run(study, "--out", tmp_path / "v.json")
    n_rows = len(json.loads((tmp_path / "v.json").read_text()))
    assert code == 0
    assert f"{n_rows} values in 12 columns" in told
    code, _, err = run(study, "--out", tmp_path / "v.txt")
    assert code == 1
    assert "does not say by its ending" in err
    assert not (tmp_path / "v.txt").exists()


def test_a_file_does_not_hold_another_format_than_its_name_says(study, tmp_path):
    """`--out x.csv --json` wrote JSON into x.csv without a word."""
    code, out, err = run(study, "--out", tmp_path / "x.csv", "--json")
    assert (code, out) == (1, "")
    assert f"--json and the ending of {tmp_path / 'x.csv'} contradict each other" in err
    assert not (tmp_path / "x.csv").exists()
    assert run(study, "--out", tmp_path / "x.csv", "--csv")[0] == 0
    assert run(study, "--out", tmp_path / "values.txt", "--json")[0] == 0


def test_a_file_of_the_user_stays_and_our_own_is_replaced(study, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("mine")
    code, _, err = run(study, "--out", mine)
    assert (code, mine.read_text()) == (2, "mine")
    assert "was not made by iolab" in err
    assert run(study, "--out", mine, "--overwrite", mine)[0] == 0
    assert mine.read_text() == run(study)[1]
    assert run(study, "--csv", "--out", mine)[0] == 0  # It is ours by now.
    mine.write_text("mine again")
    assert run(study, "--out", mine)[0] == 2
    link = tmp_path / "link.csv"
    link.symlink_to(mine)
    assert run(study, "--out", link)[0] == 2
    assert mine.read_text() == "mine again"


def test_parquet_needs_its_extra_and_a_file(study, tmp_path):
    pytest.importorskip("pandas")
    code, _, err = run(study, "--parquet")
    assert code == 1
    assert "Parquet needs a file" in err
    out = tmp_path / "v.parquet"
    code, _, err = run(study, "--out", out)
    try:
        import pyarrow.parquet
    except ImportError:
        assert code == 1
        assert "pip install 'iolab[parquet]'" in err
        assert not out.exists()
        return
    table = pyarrow.parquet.read_table(out).to_pylist()
    assert table == json.loads(run(study, "--json")[1])


def test_two_lines_load_the_values_in_pandas(study, tmp_path):
    pandas = pytest.importorskip("pandas")
    for kind in ("csv", "json"):
        run(study, "--out", tmp_path / f"values.{kind}")
    rows = rows_of(run(study)[1])
    as_csv = pandas.read_csv(tmp_path / "values.csv", keep_default_na=False, na_values=[""])
    as_json = pandas.read_json(tmp_path / "values.json")
    for frame in (as_csv, as_json):
        assert list(frame.columns) == list(rows[0])
        assert frame["value"].tolist() == [float(row["value"]) for row in rows]
    means = as_csv[as_csv["metric"] == "throughput_bytes_per_s"].groupby("record_size")["value"]
    assert set(means.mean().index) == {"4k", "8k", "16k"}


def test_two_lines_load_the_values_in_polars(study, tmp_path):
    polars = pytest.importorskip("polars")
    for kind in ("csv", "json"):
        run(study, "--out", tmp_path / f"values.{kind}")
    rows = rows_of(run(study)[1])
    as_csv = polars.read_csv(tmp_path / "values.csv", infer_schema_length=None)
    as_json = polars.read_json(tmp_path / "values.json", infer_schema_length=None)
    for frame in (as_csv, as_json):
        assert frame.columns == list(rows[0])
        assert frame["value"].to_list() == [float(row["value"]) for row in rows]
        assert frame["record_size"].to_list() == [row["record_size"] for row in rows]


def test_two_lines_load_the_values_in_duckdb(study, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    for kind in ("csv", "json"):
        run(study, "--out", tmp_path / f"values.{kind}")
    rows = rows_of(run(study)[1])
    for kind in ("csv", "json"):
        table = duckdb.sql(f"SELECT * FROM '{tmp_path}/values.{kind}'")
        assert table.columns == list(rows[0])
        found = table.project("value, record_size").fetchall()
        assert found == [(float(row["value"]), row["record_size"]) for row in rows]


def test_an_archive_is_exported_and_nothing_is_written_beside_it(request, tmp_path):
    path = request.config.rootpath / "tests/golden/stores/schema-3/streams.iolab"
    before = sorted(path.parent.iterdir())
    code, text, err = run(path)
    assert (code, sorted(path.parent.iterdir())) == (0, before)
    assert "archived by iolab" in err
    assert any(row["operation"].endswith("/all") for row in rows_of(text))


def test_a_level_is_never_a_formula(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text(
        "=host,value\n" + "".join(f"=1+{i % 2},{100 + i}\n" for i in range(12)), encoding="utf-8"
    )
    out = tmp_path / "imported"
    words = ["import", str(table), "--unit", "MB/s", "--out", str(out)]
    assert main(words, console=Console(io.StringIO(), io.StringIO())) == 0
    text = run(out)[1]
    assert "'=host" in text.splitlines()[0]
    assert all(not cell.startswith("=") for row in csv.reader(io.StringIO(text)) for cell in row)
    assert json.loads(run(out, "--json")[1])[0]["=host"] in ("=1+0", "=1+1")


def test_the_library_writes_the_same_file(study, tmp_path):
    path = iolab.open(study).export(tmp_path / "by-library.csv")
    assert path.read_text() == run(study)[1]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "4k",
        "a b",
        "a,b",
        'a"b',
        "=1+1",
        "-x",
        "@a",
        "\x1b[2J",
        "line\nline",
        "µs",
        None,
        1,
        0.1,
        1e22,
        -5,
        "0",
        "١",
    ],
)
def test_a_cell_is_written_as_in_a_whole_line(value):
    from iolab.library import exported_values

    line = exported_values._csv_line(["before", value, "behind"])
    assert f"before,{exported_values._csv_cell(value)},behind" == line


@pytest.mark.parametrize("make", ["_csv_cell", "_json"])
def test_kept_cells_are_the_same_also_when_no_more_are_kept(make, monkeypatch):
    from iolab.library import exported_values

    monkeypatch.setattr(exported_values, "_CELLS_MAX", 1)
    make = getattr(exported_values, make)
    cells = exported_values._Cells(make)
    for text in ("a b", "=1", "", "a b", "=1"):
        assert cells[text] == make(text)
    assert list(cells) == ["a b"]
