"""Units of bits are divided by eight, and what may be either is refused with both spellings.

Symptom: `Mb/s` was read as `MB/s`, so that 800 Mb/s were told to be 8 times as fast as 100 MB/s.
Cause: units were compared without their capitals.
"""

import pytest

from iolab.errors import StudyError
from iolab.imported.mapping import Wishes
from iolab.imported.quantities import quantity_of
from iolab.imported.study import store_imported, understand
from iolab.imported.table import TableError
from iolab.stats.judge import judge
from iolab.store.db import Store

MEGABIT = 125_000.0


def understood(tmp_path, text, **wishes):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return understand(path, Wishes(**wishes))


@pytest.mark.parametrize(
    ("unit", "bytes_per_s"),
    [
        ("Mb/s", MEGABIT),
        ("Mbit/s", MEGABIT),
        ("mbit/s", MEGABIT),
        ("Mbps", MEGABIT),
        ("Gb/s", 1000 * MEGABIT),
        ("Gbit/s", 1000 * MEGABIT),
        ("Kbit/s", 125.0),
        ("Kib/s", 128.0),
        ("Mib/s", float(1 << 17)),
        ("bit/s", 0.125),
        ("MB/s", 1e6),
        ("MBps", 1e6),
        ("mb/s", 1e6),
        ("kB/s", 1024.0),
        ("kb/s", 1024.0),
        ("KB/S", 1024.0),
        ("mib/s", float(1 << 20)),
        ("B/s", 1.0),
    ],
)
def test_capitals_of_a_unit_say_whether_it_is_of_bits(unit, bytes_per_s):
    found = quantity_of(unit, "read")
    assert (found.metric, found.scale) == ("throughput_bytes_per_s", bytes_per_s)


def test_a_speed_in_bits_is_the_same_speed_in_bytes(tmp_path):
    rows = [f"noop,{run},read,{100 + run},MB/s" for run in range(1, 5)]
    rows += [f"bfq,{run},read,{8 * (100 + run)},Mb/s" for run in range(1, 5)]
    imported = understood(tmp_path, "scheduler,run,operation,value,unit\n" + "\n".join(rows))
    store_imported(imported, tmp_path / "out" / "study.db", "test")
    with Store.open_reader(tmp_path / "out" / "study.db") as store:
        verdict = judge(store.load_data())
    (headline,) = verdict.headline
    assert headline.effect.ratio == pytest.approx(1)
    assert headline.effect.word == "same"


@pytest.mark.parametrize(
    ("unit", "spellings"),
    [
        ("b/s", "B/s for bytes or bit/s for bits"),
        ("Kb/s", "KB/s for bytes or Kbit/s for bits"),
        ("mbps", "MB/s for bytes or Mbit/s for bits"),
        ("gbps", "GB/s for bytes or Gbit/s for bits"),
    ],
)
def test_a_unit_that_may_be_either_is_refused_with_both_spellings(tmp_path, unit, spellings):
    text = f"fs,operation,value,unit\next4,read,1,{unit}\nxfs,read,2,{unit}\n"
    with pytest.raises(TableError, match=f"line 2, column 'unit': '{unit}' is .*{spellings}"):
        understood(tmp_path, text)
    with pytest.raises(TableError, match=spellings):
        understood(tmp_path, f"fs,read {unit}\next4,1\nxfs,2\n")
    with pytest.raises(StudyError, match=f"--unit {unit}.*{spellings}"):
        understood(tmp_path, "fs,operation,value\next4,read,1\nxfs,read,2\n", unit=unit)


@pytest.mark.parametrize(
    ("head", "scale"),
    [
        ("read Mb/s", MEGABIT),
        ("read (Mbit/s)", MEGABIT),
        ("bw_Mbps", MEGABIT),
        ("bw_Mb_s", MEGABIT),
        ("read MB/s", 1e6),
        ("read mb/s", 1e6),
        ("bw_mbs", 1e6),
        ("read MBS", 1e6),
        ("bw_kb_s", 1024.0),
    ],
)
def test_heads_of_wide_tables_keep_their_capitals(tmp_path, head, scale):
    imported = understood(tmp_path, f"fs,{head}\next4,8\nxfs,9\n")
    assert {value.quantity.scale for value in imported.reading.values} == {scale}
