"""Statements of the published tables, and their limits."""

import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.errors import StudyError
from iolab.imported.mapping import Wishes
from iolab.imported.study import store_imported, understand
from iolab.stats.judge import judge
from iolab.stats.methods.student import t_quantile
from iolab.stats.rules import check_rules
from iolab.store.db import Store

PUBLISHED = Path(__file__).parents[1] / "golden" / "published"


def judged(tmp_path, name, **wishes):
    imported = understand(PUBLISHED / f"{name}.csv", Wishes(**wishes))
    database = tmp_path / "out" / "study.db"
    store_imported(imported, database, "test")
    with Store.open_reader(database) as store:
        data = store.load_data()
    return data, judge(data)


def caveats(verdict):
    return {c.kind: c.sentences for c in verdict.caveats}


def test_d2_cfq_is_slower_than_both(tmp_path):
    data, verdict = judged(tmp_path, "iozone_vmware_pc601", baseline="cfq")
    assert data.study.kind == "imported"
    assert verdict.sentence.startswith("Imported from iozone_vmware_pc601.csv. Compared with cfq")
    # Three runs a side: writes are settled in sign, reads (with cfq's idling) are not.
    found = {(c.kind, c.level): c.effect for c in verdict.headline}
    assert set(found) == {(k, v) for k in ("writes", "reads") for v in ("noop", "deadline")}
    assert all(effect.ratio > 1.1 for effect in found.values())
    # By hand for one cell: Welch on ln of three runs a side.
    ours = [math.log(v) for v in (20247.65, 19768.67, 20169.63)]
    theirs = [math.log(v) for v in (17192.64, 16423.27, 16247.53)]
    means = [sum(side) / 3 for side in (ours, theirs)]
    parts = [
        sum((v - m) ** 2 for v in side) / 2 / 3
        for side, m in zip((ours, theirs), means, strict=True)
    ]
    freedom = sum(parts) ** 2 / sum(p**2 / 2 for p in parts)
    half = math.sqrt(sum(parts)) * t_quantile(0.975, freedom)
    cell = next(
        c
        for c in verdict.cells
        if (c.level, c.operation, c.cell_levels) == ("noop", "Initial write", {"record_size": "4k"})
    )
    assert cell.effect.ratio == pytest.approx(math.exp(means[0] - means[1]))
    assert cell.effect.interval_95.low == pytest.approx(math.exp(means[0] - means[1] - half))
    assert cell.effect.interval_95.high == pytest.approx(math.exp(means[0] - means[1] + half))
    assert cell.effect.word == "better"
    assert cell.is_direct is None


def test_d2_deadline_is_as_good_as_noop(tmp_path):
    _, verdict = judged(tmp_path, "iozone_vmware_pc601")
    for kind in ("writes", "reads"):
        effects = {c.level: c.effect for c in verdict.headline if c.kind == kind}
        assert effects["cfq"].ratio < 0.9
        assert effects["deadline"].ratio == pytest.approx(1, abs=0.02)


def test_d2_word_for_cfq_does_not_depend_on_the_baseline(tmp_path):
    """Symptom: it was better than one baseline and undecided against the other, by what K was
    divided.
    """
    turned = {"better": "worse", "worse": "better"}
    words = {}
    for baseline in ("noop", "deadline", "cfq"):
        _, verdict = judged(tmp_path / baseline, "iozone_vmware_pc601", baseline=baseline)
        for c in verdict.headline:
            first, second = sorted((c.level, c.baseline))
            word = c.effect.word if c.level == first else turned.get(c.effect.word, c.effect.word)
            words.setdefault((c.kind, first, second), set()).add(word)
    assert len(words) == 6
    assert all(len(found) == 1 for found in words.values()), words


def test_d2_means_agree_and_derived_rows_are_no_runs(tmp_path):
    data, verdict = judged(tmp_path, "iozone_vmware_pc601")
    said = data.facts["source.printed_means"]
    assert said.startswith("33 of 34 agree with their runs, 1 cannot be checked")
    assert "printed_mean" not in caveats(verdict)
    assert "Line 106" in caveats(verdict)["derived_rows"]
    assert len(data.measurements) == 102


def test_a_wrong_mean_is_listed_with_its_line(tmp_path):
    text = (PUBLISHED / "iozone_vmware_pc601.csv").read_text().replace("20061.98", "20601.98")
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    imported = understand(path, Wishes())
    message = next(c.message for c in imported.caveats if c.code == "printed_mean")
    assert "1 printed mean does not agree" in message
    assert "line 5, Initial write · noop · 4k: printed 20601.98 KB/s, its runs give 20061.98" in (
        message
    )


def test_d2_throughput_grows_by_latency_per_request(tmp_path):
    """Doubling the record doubles throughput: not a block of the SSD, a time per request."""
    _, verdict = judged(tmp_path, "iozone_vmware_pc601")
    fits = {(f.operation, f.level): f for f in verdict.request_times}
    fit = fits["Rewrite", "deadline"]
    assert 180e3 < fit.request_ns_interval.low < fit.request_ns < 195e3
    assert fit.byte_ns * 32768 < 0.2 * fit.request_ns
    assert "does not depend on its size" in fit.sentence
    assert fit.misfit is None
    from iolab.stats.request_time import request_time_sentence

    assert "says nothing about a block size of the device" in request_time_sentence(verdict)
    # Where most treatments bend no line speaks for all of them.
    bent = [replace(fit, misfit=0.5) for fit in verdict.request_times]
    n = len(bent)
    straight = verdict.request_times[: n // 3]
    mixed = replace(verdict, request_times=[*straight, *bent[n // 3 :]])
    said = request_time_sentence(mixed)
    assert said.startswith(f"A line describes the time per request in {n // 3} of {n} ")


@pytest.mark.parametrize("compare", ["", "record_size"])
def test_d1_averages_are_refused_with_reasons(tmp_path, compare):
    _, verdict = judged(tmp_path, "iozone_ubuntu1604_averages", compare=compare)
    assert verdict.headline_word == "undecided"
    assert verdict.pooled == []
    assert verdict.cells == []
    assert "each value is one run" in verdict.sentence
    assert "measured with one scheduler only" not in verdict.sentence
    assert "fwrite, makes up about 90 % of the average" in verdict.sentence
    if not compare:
        assert "It does not say which scheduler is best: only noop is in it" in verdict.sentence


def test_d1_remark_is_only_for_its_document(tmp_path):
    text = (PUBLISHED / "iozone_ubuntu1604_averages.csv").read_text().replace("D1,", "D9,")
    path = tmp_path / "other.csv"
    path.write_text(text)
    message = next(c.message for c in understand(path, Wishes()).caveats if "average" in c.code)
    assert "90 %" not in message


def test_d3_littles_law_is_seven_percent_off_for_ufs_only(tmp_path):
    _, verdict = judged(tmp_path, "solaris_iostat")
    found = [c for c in verdict.caveats if c.kind == "littles_law"]
    assert len(found) == 1
    assert "actv is 39.5 (line 7), but 39.8 requests/s x 924.0 ms are 36.8" in found[0].says
    assert "7 % apart" in found[0].says
    assert verdict.headline_word == "undecided"
    assert "each testbed was measured with one option only" in verdict.sentence


@pytest.mark.parametrize("name", ["solaris_cpu", "solaris_mkfile", "bonnie_zfs_t510"])
def test_single_intervals_import_and_stay_undecided(tmp_path, name):
    _, verdict = judged(tmp_path, name)
    assert verdict.headline_word == "undecided"
    assert {"imported", "order_unknown", "environment_unknown", "single_runs"} <= set(
        caveats(verdict)
    )


def test_single_runs_say_how_many_would_decide(tmp_path):
    path = tmp_path / "single.csv"
    path.write_text("fs,operation,value,unit\next4,read,100,MiB/s\nxfs,read,130,MiB/s\n")
    database = tmp_path / "out" / "study.db"
    store_imported(understand(path, Wishes()), database, "test")
    with Store.open_reader(database) as store:
        verdict = judge(store.load_data())
    (only,) = verdict.headline
    assert only.effect.word == "undecided"
    assert only.effect.interval_95 is None
    assert only.effect.further_rounds == 2
    assert "supposes that runs vary by 5.0 % (standard deviation, assumed" in verdict.sentence


def test_a_unit_that_is_not_known_is_named_and_no_level_is_missing(tmp_path):
    """An unknown unit was told as "only ext4 is in it", of a table with two."""
    path = tmp_path / "unit.csv"
    path.write_text("fs,operation,value,unit\next4,read,100,furlongs\nxfs,read,130,furlongs\n")
    database = tmp_path / "out" / "study.db"
    store_imported(understand(path, Wishes()), database, "test")
    with Store.open_reader(database) as store:
        verdict = judge(store.load_data())
    assert "is in it" not in verdict.sentence
    assert "no value is of a unit and a statistic that iolab judges" in verdict.sentence
    assert "Known units are B/s, KB/s" in caveats(verdict)["not_judged"]
    path.write_text("fs,operation,value\next4,read,100\nxfs,read,130\n")
    with pytest.raises(StudyError, match=r"--unit MBs: iolab does not know this unit.*known are"):
        understand(path, Wishes(unit="MBs"))


def test_a_page_names_one_number_of_runs_that_would_decide(tmp_path):
    """The answer said 2 more runs, a caveat of the same page at least 5."""
    path = tmp_path / "single.csv"
    path.write_text("fs,operation,value,unit\next4,read,100,MiB/s\nxfs,read,130,MiB/s\n")
    database = tmp_path / "out" / "study.db"
    store_imported(understand(path, Wishes()), database, "test")
    with Store.open_reader(database) as store:
        data = store.load_data()
    verdict = judge(data)
    assert "About 2 further runs would decide" in verdict.sentence
    assert not re.search(r"\d", caveats(verdict)["single_runs"])
    from iolab.report import write_all

    page = write_all(data, verdict, tmp_path / "report").html.read_text()
    assert "2 further runs" in page
    assert "more rounds" not in page
    assert "1 run a side" in page
    assert "paired t intervals" not in page


def test_provenance_is_kept_to_the_line(tmp_path):
    judged(tmp_path, "iozone_vmware_pc601")
    with Store.open_reader(tmp_path / "out" / "study.db") as store:
        record = store.record("t0001")
        (session,) = store.contents.sessions()
    assert record["rows"][0] == {
        "line": 2,
        "operation": "Initial write",
        "value": "20247.65",
        "unit": "KB/s",
        "notes": "",
    }
    assert len(record["source"]["sha256"]) == 64
    assert session["testbed"]["factors"] == {
        "option": "scheduler",
        "record_size_bytes": "record_size",
    }


def test_reports_never_claim_an_order(tmp_path):
    from iolab.report import terminal, write_all

    data, verdict = judged(tmp_path, "iozone_vmware_pc601")
    paths = write_all(data, verdict, tmp_path / "report")
    page = paths.html.read_text()
    for claim in (
        "random in each round",
        "fresh random order",
        "paired by round inside",
        "buffered",
    ):
        assert claim not in page, claim
        assert claim not in terminal.render(data, verdict)
    assert page.count("mported from iozone_vmware_pc601.csv") >= 3
    document = json.loads(paths.verdict_json.read_text())
    assert document["study"]["kind"] == "imported"
    assert document["is_paired"] is False
    assert len(document["request_times"]) == 13
    assert "sha256" in page


def test_normality_of_more_runs_than_the_test_knows_is_asked_of_the_first(tmp_path):
    """A warning of scipy's stood among the answers of `iolab import`."""
    rng = random.Random(5)
    rows = [f"a,{n},read,{100 + rng.random()},MB/s" for n in range(1, 5002)]
    path = tmp_path / "many.csv"
    path.write_text("fs,run,operation,value,unit\n" + "\n".join(rows) + "\n")
    store_imported(understand(path, Wishes()), tmp_path / "out" / "study.db", "test")
    with Store.open_reader(tmp_path / "out" / "study.db") as store:
        data = store.load_data()
    said = [answer.evidence for answer in check_rules(data, judge(data))]
    assert len([text for text in said if "Shapiro-Wilk on 1 samples" in text]) == 1
