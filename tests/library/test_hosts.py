"""Hosts of a fleet: what goes wrong with one of them ends that one alone."""

from types import SimpleNamespace

import pytest

from iolab.errors import DEBUG_VARIABLE, TestbedError
from iolab.library import hosts
from iolab.run.hosts import RoundBarrier


@pytest.fixture
def host(monkeypatch, tmp_path):
    """Conducts a study on one of two hosts, whose answers make an error that nobody foresaw."""

    def broken(prepared, switch):
        raise OverflowError("too\nlarge")

    monkeypatch.setattr(hosts, "conduct", broken)
    told = []
    one = SimpleNamespace(
        options=SimpleNamespace(host=SimpleNamespace(name="h2")),
        out_dir=tmp_path,
        observer=SimpleNamespace(note=told.append),
    )
    return one, RoundBarrier(["h1", "h2"]), told


def test_answers_that_cannot_be_used_end_that_host(host):
    prepared, barrier, told = host
    end = hosts._conduct_one(prepared, barrier, None)
    assert isinstance(end.problem, TestbedError)
    assert "OverflowError: too\\u000alarge" in str(end.problem)
    assert DEBUG_VARIABLE in str(end.problem)
    assert told == [f"iolab: ended early: {end.problem.message}"]
    # The others go on without it.
    barrier.wait("h1", 3, SimpleNamespace(presses=0))


def test_who_looks_for_the_place_sees_the_error_itself(host, monkeypatch):
    prepared, barrier, _ = host
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    with pytest.raises(OverflowError):
        hosts._conduct_one(prepared, barrier, None)
