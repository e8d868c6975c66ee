"""Wide tables: units in the heads of columns tell what is measured."""

import pytest

from iolab.imported.mapping import Wishes
from iolab.imported.study import store_imported, understand
from iolab.imported.table import TableError
from iolab.imported.wide import in_long_form
from iolab.stats.judge import judge
from iolab.store.db import Store


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


SIMPSON = (
    "scheduler,slice_idle_ms,read MB/s\n"
    "cfq,0,200\ncfq,0,201\ncfq,0,202\ncfq,8,150\ncfq,8,151\n"
    "bfq,0,200\nbfq,0,201\nbfq,8,150\nbfq,8,151\nbfq,8,152\n"
)


def test_a_knob_with_its_unit_is_a_factor_and_nothing_measured(tmp_path):
    """Symptom: an operation of its own, and configurations pooled as if they were runs of one."""
    imported = understood(tmp_path, SIMPSON)
    assert {v.operation for v in imported.reading.values} == {"read"}
    assert {dict(v.levels)["slice_idle_ms"] for v in imported.reading.values} == {"0", "8"}
    assert imported.plan.study.compared_factor == "scheduler"
    assert imported.reading.table.notes == ("column slice_idle_ms is a setting, as its name says",)


@pytest.mark.parametrize(
    "head", ["read_expire_ms", "bfq_slice_idle_us", "target_latency ms", "slice_sync (ms)"]
)
def test_tunables_of_schedulers_are_known_as_tables_call_them(tmp_path, head):
    imported = understood(tmp_path, f"{head},read MB/s\n1,100\n1,101\n8,90\n8,91\n")
    assert {v.operation for v in imported.reading.values} == {"read"}
    assert imported.plan.study.compared_factor == head


@pytest.mark.parametrize("head", ["think us", "delay_ms", "limit IOPS"])
def test_a_time_or_count_that_repeats_beside_a_rate_is_a_setting(tmp_path, head):
    imported = understood(tmp_path, f"fs,{head},read MB/s\na,1,9\na,5,8\nb,1,7\nb,5,6\n")
    assert {v.operation for v in imported.reading.values} == {"read"}
    (note,) = imported.reading.table.notes
    assert note.startswith(f"column {head} is taken for a setting, since its values repeat; if it")


@pytest.mark.parametrize(
    "head",
    ["p99 us", "latency ms", "elapsed s", "time_s", "read ms", "IOPS", "read IOPS", "max us"],
)
def test_what_a_head_says_was_measured_is_so_whatever_repeats(tmp_path, head):
    imported = understood(tmp_path, f"fs,{head},read MB/s\na,1,9\na,5,8\nb,1,7\nb,5,6\n")
    assert len(imported.reading.values) == 8
    (note,) = imported.reading.table.notes
    assert note == f"measured are the columns {head}, read MB/s"


def test_an_answer_about_unequal_counts_does_not_say_that_nothing_was_measured(tmp_path):
    """The table has both schedulers in each cell, but was told to have them in none."""
    cells = (("cfq", 0, 8), ("cfq", 8, 2), ("bfq", 0, 2), ("bfq", 8, 8))
    rows = [f"{s},{idle},{200 - 5 * idle + n / 10}" for s, idle, runs in cells for n in range(runs)]
    imported = understood(tmp_path, "scheduler,slice_idle_ms,read MB/s\n" + "\n".join(rows))
    store_imported(imported, tmp_path / "out" / "study.db", "test")
    with Store.open_reader(tmp_path / "out" / "study.db") as store:
        verdict = judge(store.load_data())
    assert verdict.headline_word == "undecided"
    assert "one of them has fewer than half of the runs of the fullest cell" in verdict.sentence


@pytest.mark.parametrize("heads", ["read MB/s,read KB/s", "MB/s,throughput KiB/s"])
def test_two_columns_of_one_quantity_are_refused(tmp_path, heads):
    """Runs of both units were counted as runs of one thing."""
    with pytest.raises(TableError, match="hold the same quantity of the same thing"):
        understood(tmp_path, f"fs,{heads}\na,100,1\nb,100,2\n")


def test_a_number_after_a_decimal_point_is_no_run(tmp_path):
    """`kernel 5.1`, `kernel 5.2` were runs 1 and 2 of "kernel 5"."""
    text = "operation,unit,kernel 5.1,kernel 5.2\nread,MB/s,100,200\n"
    with pytest.raises(TableError, match=r"no column holds the values.*as in 'noop 1'"):
        understood(tmp_path, text)
    imported = understood(tmp_path, text.replace("5.1,", "5.1 1,").replace("5.2\n", "5.1 2\n"))
    assert [(v.run, *dict(v.levels).values()) for v in imported.reading.runs] == [
        (1, "kernel 5.1"),
        (2, "kernel 5.1"),
    ]


def test_runs_may_be_numbered_with_zeros_before(tmp_path):
    imported = understood(tmp_path, "fs,run 01,run 02\na,1,2\nb,3,4\n", unit="MB/s")
    assert [v.run for v in imported.reading.runs] == [1, 2, 1, 2]
