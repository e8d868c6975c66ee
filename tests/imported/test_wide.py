"""Wide tables: units in the heads of columns tell what is measured."""

import pytest

from iolab.imported.mapping import Wishes
from iolab.imported.study import understand
from iolab.imported.table import TableError
from iolab.imported.wide import in_long_form


def understood(tmp_path, text, **wishes):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return understand(path, Wishes(**wishes))


def values(imported):
    return [
        (v.operation, dict(v.levels), v.unit, float(v.printed)) for v in imported.reading.values
    ]


def test_measured_columns_become_operations(tmp_path):
    text = "scheduler,run,read MB/s,write (MB/s),p99_us\nnone,1,10,20,30\nbfq,1,11,21,31\n"
    assert values(understood(tmp_path, text)) == [
        ("read", {"scheduler": "none"}, "MB/s", 10.0),
        ("write", {"scheduler": "none"}, "MB/s", 20.0),
        ("p99", {"scheduler": "none"}, "us", 30.0),
        ("read", {"scheduler": "bfq"}, "MB/s", 11.0),
        ("write", {"scheduler": "bfq"}, "MB/s", 21.0),
        ("p99", {"scheduler": "bfq"}, "us", 31.0),
    ]


@pytest.mark.parametrize("head", ["throughput (MB/s)", "MB/s", "Throughput_MB/s", "speed [MB/s]"])
def test_a_unit_in_the_head_of_the_only_value_is_enough(tmp_path, head):
    text = f"fs,test,{head}\next4,read,10\nxfs,read,11\n"
    found = values(understood(tmp_path, text))
    assert found == [("read", {"fs": "ext4"}, "MB/s", 10.0), ("read", {"fs": "xfs"}, "MB/s", 11.0)]


@pytest.mark.parametrize("head", ["value", "bw", "result"])
def test_a_table_with_a_column_of_values_stays_as_it_is(tmp_path, head):
    text = f"fs,{head},unit,delay_us\next4,10,MB/s,5\nxfs,11,MB/s,6\n"
    imported = understood(tmp_path, text)
    assert [v.unit for v in imported.reading.values] == ["MB/s", "MB/s"]


def test_words_that_only_end_like_a_unit_are_no_measurement(tmp_path):
    text = "disks,tests,value,unit\n1,a,10,MB/s\n2,a,11,MB/s\n"
    assert len(values(understood(tmp_path, text))) == 2
    path = tmp_path / "t.csv"
    path.write_text("disks,threads,numbers\n1,2,3\n2,2,4\n", encoding="utf-8")
    with pytest.raises(TableError) as caught:
        understand(path, Wishes())
    assert "as in --map value=numbers --unit MB/s" in str(caught.value)


def test_columns_of_runs_are_runs_of_levels_and_printed_means(tmp_path):
    text = "test;noop 1;noop 2;noop mean;cfq 1;cfq 2;cfq mean\nread;10;12;11;8;9;9.5\n"
    imported = understood(tmp_path, text, unit="MB/s")
    assert [(v.kind, v.run, *dict(v.levels).values()) for v in imported.reading.values] == [
        ("run", 1, "noop"),
        ("run", 2, "noop"),
        ("mean", 0, "noop"),
        ("run", 1, "cfq"),
        ("run", 2, "cfq"),
        ("mean", 0, "cfq"),
    ]
    assert dict(imported.reading.values[0].levels) == {"scheduler": "noop"}
    assert [v.operation for v in imported.reading.runs] == ["read"] * 4


@pytest.mark.parametrize("heads", ["run 1,run 2", "1,2", "Run_1,Run_2,Average"])
def test_columns_of_runs_alone_are_those_of_the_row(tmp_path, heads):
    cells = ["10,12,11", "14,14,14"] if "Average" in heads else ["10,12", "14,14"]
    text = f"fs,test,{heads}\next4,read,{cells[0]}\nxfs,read,{cells[1]}\n"
    imported = understood(tmp_path, text, unit="MB/s")
    assert [(dict(v.levels), v.run, float(v.printed)) for v in imported.reading.runs] == [
        ({"fs": "ext4"}, 1, 10.0),
        ({"fs": "ext4"}, 2, 12.0),
        ({"fs": "xfs"}, 1, 14.0),
        ({"fs": "xfs"}, 2, 14.0),
    ]


@pytest.mark.parametrize("heads", ["depth 1,depth 2", "host 1,host 3", "disk 1,speed 1", "a,b"])
def test_columns_that_are_no_runs_are_not_taken_for_some(tmp_path, heads):
    path = tmp_path / "t.csv"
    path.write_text(f"test,{heads}\nread,10,12\n", encoding="utf-8")
    with pytest.raises(TableError, match="no column holds the values"):
        understand(path, Wishes(unit="MB/s"))


@pytest.mark.parametrize("head", ["bw_mbs", "bw_mb_s", "read MBS"])
def test_units_are_known_as_heads_spell_them(tmp_path, head):
    found = values(understood(tmp_path, f"fs,{head}\next4,10\nxfs,11\n"))
    assert {unit for _, _, unit, _ in found} == {"MB/s"}


def test_an_empty_cell_is_a_missing_value(tmp_path):
    text = "fs,run,read MB/s,write MB/s\next4,1,10,\nxfs,1,11,12\n"
    imported = understood(tmp_path, text)
    assert len(imported.reading.values) == 3
    assert imported.reading.missing == (2,)
    assert in_long_form(imported.reading.table, Wishes()) is imported.reading.table
