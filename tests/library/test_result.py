"""A stored study, opened: rows, frames, verdict, report."""

import csv
import io
import json
import sys
import types

import pytest

import iolab
from iolab.cli.main import main
from iolab.errors import RefusedError
from iolab.stats.metrics import METRIC_BY_NAME

FIXED = ("trial", "round", "position", "workload", "operation", "is_direct", "cache_share")


def test_rows_hold_one_operation_of_one_trial_each(result):
    assert result.columns[:8] == (*FIXED, "scheduler")
    assert set(result.columns[8:]) <= set(METRIC_BY_NAME)
    rows = [dict(zip(result.columns, row, strict=True)) for row in result.to_rows()]
    assert len(rows) == 12
    assert {row["operation"] for row in rows} == {"write", "random-read"}
    assert {row["scheduler"] for row in rows} == {"noop", "deadline"}
    assert {row["is_direct"] for row in rows} == {True}
    first = rows[0]
    assert (first["trial"], first["round"], first["position"]) == ("t0001", 1, 0)
    size = 4096
    assert first["throughput_bytes_per_s"] == pytest.approx(first["throughput_ops_per_s"] * size)
    assert first["latency_ns_p50"] <= first["latency_ns_max"]


def test_rows_are_what_csv_takes(result):
    text = io.StringIO()
    csv.writer(text).writerows([result.columns, *result.to_rows()])
    assert len(text.getvalue().splitlines()) == 13


def test_the_verdict_is_judged_once(result):
    assert result.verdict is result.verdict
    writes, reads = result.verdict.headline
    assert (writes.kind, reads.kind) == ("writes", "reads")
    comparison = writes
    assert (comparison.level, comparison.baseline) == ("deadline", "noop")
    assert comparison.word == comparison.effect.word == result.verdict.headline_word
    assert result.summary().splitlines()[0] == result.verdict.sentence
    assert result.text().splitlines()[0][:20] == result.verdict.sentence[:20]
    assert max(map(len, result.text(width=60).splitlines())) <= 60


def test_trials_and_caveats_are_there(result):
    assert [trial.ordinal for trial in result.trials] == [1, 2, 3, 4, 5, 6]
    assert "simulated" in {caveat.code for caveat in result.caveats}
    assert result.is_simulated
    assert repr(result) == "<iolab.Result 'small': 6 of 6 trials done>"


def test_another_metric_can_carry_the_verdict(result):
    other = result.judged_by("p90", of="random-read")
    assert other.verdict.headline[0].metric == "latency_ns_p90"
    assert result.verdict.headline[0].metric == "throughput_bytes_per_s"
    for metric, part, message in (("p98", None, "metric: 'p98'"), ("p99", "reed", "of: 'reed'")):
        with pytest.raises(iolab.StudyError) as caught:
            result.judged_by(metric, of=part)
        assert message in caught.value.message
        assert caught.value.hint


def test_a_frame_needs_pandas_and_says_so(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(iolab.IolabError, match="needs pandas") as caught:
        result.to_frame()
    assert "iolab[notebook]" in caught.value.hint
    assert "to_rows()" in caught.value.hint


def test_a_frame_is_made_of_the_rows(result, monkeypatch):
    """Rows that are handed to pandas, on machines without it as well."""
    made = {}

    class DataFrame:
        @classmethod
        def from_records(cls, rows, columns):
            made.update(rows=rows, columns=columns)
            return cls()

    stand_in = types.ModuleType("pandas")
    stand_in.DataFrame = DataFrame
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    assert isinstance(result.to_frame(), DataFrame)
    assert made == {"rows": result.to_rows(), "columns": list(result.columns)}


def test_a_real_frame(result):
    pandas = pytest.importorskip("pandas", reason="needs pandas (iolab[notebook])")
    frame = result.to_frame()
    assert list(frame.columns) == list(result.columns)
    assert len(frame) == 12
    assert pandas.api.types.is_float_dtype(frame["latency_ns_p99"])
    means = frame.groupby(["operation", "scheduler"])["throughput_bytes_per_s"].mean()
    assert len(means) == 4


def test_an_archive_and_a_database_are_opened_like_a_directory(result, by_command, tmp_path):
    archive = tmp_path / "small.iolab"
    assert main(["archive", str(by_command), "--out", str(archive)]) == 0
    for place in (archive, by_command / "study.db", str(by_command)):
        assert iolab.open(place).to_rows() == result.to_rows()
    with pytest.raises(RefusedError, match="an archive, in which no report"):
        iolab.open(archive).report()


def test_each_kind_of_report_is_written(result, tmp_path):
    for ending, begin in ((".html", b"<!doctype html>"), (".xlsx", b"pk"), (".md", b"")):
        (path,) = result.report(tmp_path / f"r{ending}")
        assert path.read_bytes()[:15].lower().startswith(begin)
    (path,) = result.report(str(tmp_path / "r.json"))
    assert json.loads(path.read_text())["sentence"] == result.verdict.sentence
    files = result.report(tmp_path / "all")
    assert [file.name for file in files] == ["report.html", "report.xlsx", "verdict.json"]
    assert all(file.stat().st_size for file in files)


def test_the_report_is_that_of_the_command_line(result, by_command, tmp_path):
    (path,) = result.report(tmp_path / "verdict.json")
    assert json.loads(path.read_text()) == json.loads((by_command / "verdict.json").read_text())
    (page,) = result.report(tmp_path / "report.html")
    assert page.read_text() == (by_command / "report.html").read_text()


def test_a_file_of_the_users_own_is_not_replaced(result, tmp_path):
    mine = tmp_path / "mine.html"
    mine.write_text("mine")
    with pytest.raises(RefusedError) as caught:
        result.report(mine)
    assert "overwrite=True" in caught.value.hint
    assert mine.read_text() == "mine"
    result.report(mine, overwrite=True)
    result.report(mine)
    assert mine.read_text() != "mine"
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(RefusedError):
        result.report(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.html", "report.html"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("r.pdf", "'.pdf' is not a kind of report"), ("no/such/r.html", "cannot be written")],
)
def test_a_report_that_cannot_be_written_says_why(result, tmp_path, name, message):
    with pytest.raises(iolab.IolabError, match=message) as caught:
        result.report(tmp_path / name)
    assert caught.value.hint


def test_nothing_to_open_is_an_error(tmp_path):
    for path, kind in ((tmp_path / "no", iolab.IolabError), (tmp_path, iolab.StoreError)):
        with pytest.raises(kind) as caught:
            iolab.open(path)
        assert caught.value.hint


def test_a_study_without_trials_is_undecided(tmp_path, study):
    stop = iolab.StopSwitch()
    stop.press()
    with pytest.raises(iolab.IolabError):
        iolab.run(study, out=tmp_path / "out", stop=stop)
    stop.close()
    result = iolab.open(tmp_path / "out")
    assert result.to_rows() == []
    assert result.verdict.headline_word == "undecided"
    assert "no trial has finished" in result.summary()


def test_a_chart_is_shown_and_saved(result, tmp_path):
    assert "Without values: random-read." in result.chart("p99", "scheduler").caption
    chart = result.chart("median", "scheduler", by="operation")
    assert chart.title == "Median latency by scheduler and operation"
    assert chart._repr_svg_().startswith("<?xml")
    assert "geometric mean (µs)" in chart.columns
    assert len(chart.to_rows()) == 4
    assert "iolab report" in chart.html()
    saved = chart.save(tmp_path / "a.svg")
    assert saved.read_text(encoding="utf-8") == chart.svg()
    (tmp_path / "mine.html").write_text("mine", encoding="utf-8")
    with pytest.raises(RefusedError, match="overwrite=True"):
        chart.save(tmp_path / "mine.html")
    with pytest.raises(iolab.IolabError, match=r"no chart is written as '.pdf'"):
        chart.save(tmp_path / "a.pdf")
    with pytest.raises(iolab.StudyError, match="no factor 'shed'"):
        result.chart("p99", "shed")


def test_the_command_draws_the_same_chart(by_command, result, tmp_path, capsys):
    out = tmp_path / "a.svg"
    words = ["report", str(by_command), "--chart", "p99:scheduler:operation", "--out", str(out)]
    assert main(words) == 0
    assert out.read_text(encoding="utf-8") == result.chart("p99", "scheduler", by="operation").svg()
    shown = capsys.readouterr().out
    assert shown.startswith("P99 latency by scheduler and operation. Marks are geometric means")
    assert shown.endswith(f"chart:    {out}\n")
    assert main(["report", str(by_command), "--chart", "p99:scheduler"]) == 0
    assert (by_command / "chart-latency-ns-p99-scheduler.html").is_file()
    both = ["--chart", "p99:scheduler", "--chart", "iops:operation"]
    assert main(["report", str(by_command), *both]) == 0
    assert (by_command / "charts.html").read_text(encoding="utf-8").count("<figure") == 2
    capsys.readouterr()
    for words, told in (
        (["--chart", "p99:scheduler", "--strict"], "--strict means nothing: leave it out"),
        ([*both, "--out", str(out)], "a drawing holds one chart, and 2 are asked for"),
        (["--chart", "p99:scheduler", "--out", "a.pdf"], "end the name in .html, .svg or .png"),
    ):
        assert main(["report", str(by_command), *words]) == 1
        assert told in capsys.readouterr().err
