"""One verdict over hosts: what stands apart is named, and studies that are not one are refused."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from types import ModuleType

import pytest

from iolab.errors import AnalysisError
from iolab.report.fleet_text import fleet_text
from iolab.stats.fleet import FleetVerdict, NamedHost, judge_fleet
from iolab.store.rows import StudyData


def host(base: StudyData, name: str, factor: float, speed: float = 1.0) -> NamedHost:
    """The same study on a host where every level but the baseline is faster by a factor."""
    rng = random.Random(name)
    baseline, compared = base.study.baseline, base.study.compared_factor
    measurements = [
        replace(
            m,
            value=m.value
            * (1 if m.levels[compared] == baseline else factor)
            * speed
            * math.exp(rng.gauss(0, 0.01)),
        )
        if m.metric.startswith("throughput")
        else m
        for m in base.measurements
    ]
    study = replace(base.study, study_id=name)
    return NamedHost(name, replace(base, study=study, measurements=measurements))


def fleet(base: StudyData, factors: list[float]) -> FleetVerdict:
    """Hosts of very different speed."""
    hosts = [host(base, f"h{n}", factor, 1.0 + n) for n, factor in enumerate(factors)]
    return judge_fleet(hosts)


def test_the_interval_is_over_hosts_and_speeds_do_not_meet(canned: ModuleType) -> None:
    found = fleet(canned.demo(), [1.0] * 6)
    one = judge_fleet([host(canned.demo(), f"h{n}", 1.0) for n in range(6)])
    for ours, theirs in zip(found.comparisons, one.comparisons, strict=True):
        assert ours.comparison.rounds_used == 6
        assert ours.comparison.effect.ratio == pytest.approx(theirs.comparison.effect.ratio)
        assert not any(effect.is_apart for effect in ours.hosts)
        assert ours.next_host is not None
        interval = ours.comparison.effect.interval_95
        assert interval is not None
        assert ours.next_host.low < interval.low < interval.high < ours.next_host.high
    assert "6 hosts" in found.verdict.sentence
    assert "round" not in found.verdict.sentence


def test_a_host_that_differs_is_named_and_stays_in_the_mean(canned: ModuleType) -> None:
    found = fleet(canned.demo(), [1.0] * 6 + [0.5])
    alike = fleet(canned.demo(), [1.0] * 6)
    for row, without in zip(found.comparisons, alike.comparisons, strict=True):
        assert [effect.host for effect in row.hosts if effect.is_apart] == ["h6"]
        (apart,) = (effect for effect in row.hosts if effect.is_apart)
        assert apart.others_ratio == pytest.approx(without.comparison.effect.ratio, rel=0.01)
        mean = math.fsum(math.log(effect.ratio or 1) for effect in row.hosts) / 7
        assert row.comparison.effect.ratio == pytest.approx(math.exp(mean), rel=0.01)
    text = " ".join(fleet_text(found, 200).split())
    assert "Not on every host, for" in text
    assert "h6 is" in text
    assert "stands apart" in text


def test_two_of_four_are_no_exception(canned: ModuleType) -> None:
    for row in fleet(canned.demo(), [1.0, 1.0, 0.5, 0.5]).comparisons:
        assert sum(effect.is_apart for effect in row.hosts) <= 2


def test_hosts_that_nothing_tells_apart_are_told(canned: ModuleType) -> None:
    base = canned.demo()
    hosts = [host(base, name, 1.0) for name in ("a", "b")]
    assert "if they are one machine" in " ".join(fleet_text(judge_fleet(hosts)).split())
    data = replace(hosts[1].data, facts={**base.facts, "cpu.model": "Another"})
    other = judge_fleet([hosts[0], NamedHost("b", data)])
    assert "if they are one machine" not in " ".join(fleet_text(other).split())


def test_a_host_without_a_round_is_named(canned: ModuleType) -> None:
    """Symptom: a line with "0 rounds" and no word, of a host whose rates had no time to count."""
    base = canned.demo()
    hosts = [host(base, name, 1.0) for name in ("a", "b", "c")]
    zero = [
        replace(m, value=0.0) if m.metric.startswith("throughput") else m
        for m in hosts[2].data.measurements
    ]
    silent = NamedHost("c", replace(hosts[2].data, measurements=zero))
    text = " ".join(fleet_text(judge_fleet([*hosts[:2], silent])).split())
    assert "0 rounds" in text
    assert "Without a complete round in a line above: c." in text
    assert "Without a complete round" not in " ".join(fleet_text(judge_fleet(hosts)).split())


def test_studies_that_are_not_one_are_refused(canned: ModuleType) -> None:
    base = canned.demo()
    first = host(base, "a", 1.0)

    def changed(**fields: object) -> NamedHost:
        study = replace(base.study, study_id="b", **fields)
        return NamedHost("b", replace(base, study=study))

    for one, message in (
        (changed(kind="simulated"), "not one study: kind"),
        (changed(baseline="other"), "not one study: baseline"),
        (changed(workloads=["else"]), "not one study: workloads"),
        (changed(kind="imported"), "imported table"),
        (NamedHost("again", first.data), "again is the same study as a"),
    ):
        with pytest.raises(AnalysisError, match=message):
            judge_fleet([first, one])
    with pytest.raises(AnalysisError, match="no fleet"):
        judge_fleet([first])
