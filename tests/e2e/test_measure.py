"""The measuring child on its own: memory, cache labels, workers, failures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iolab.testbed.command import find_agent

_PEAK = (
    "import resource,subprocess,sys;"
    "subprocess.run(sys.argv[1:],stdin=sys.stdin,stdout=subprocess.DEVNULL,check=True);"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


def request(directory: Path, engine: str = "psync", **tenant: Any) -> dict[str, Any]:
    """A request with one phase of one tenant that reads 8 MiB sequentially."""
    phase = {
        "name": "phase",
        "keeps_files": False,
        "is_stonewalled": False,
        "tenants": [
            {
                "name": "main",
                "workers": 1,
                "file": "data",
                "file_bytes": 8 << 20,
                "io_size_bytes": 4096,
                "pattern": {"kind": "sequential"},
                "direction": {"kind": "read"},
                "opening": "laid_out",
                **tenant,
            }
        ],
    }
    workload = {"version": 1, "name": "w", "engine": engine, "seed": 7, "phases": [phase]}
    return {"trial": "t1", "directory": str(directory), "workload": workload}


def measure(wanted: dict[str, Any]) -> dict[str, Any]:
    """The answer of one measuring child."""
    done = subprocess.run(
        [str(find_agent()), "measure"],
        input=json.dumps(wanted) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])["result"]


def test_memory_does_not_grow_with_the_length_of_a_run(tmp_path: Path) -> None:
    peaks = []
    for ops in (100_000, 10_000_000):
        wanted = request(tmp_path, "memory", io_size_bytes=512, limit={"kind": "ops", "ops": ops})
        argv = [sys.executable, "-c", _PEAK, str(find_agent()), "measure"]
        text = json.dumps(wanted) + "\n"
        out = subprocess.run(argv, input=text, capture_output=True, text=True, check=True).stdout
        peaks.append(int(out))
    assert peaks[1] - peaks[0] < 1024, f"{peaks} KiB for 1e5 and 1e7 ops"


_QUEUEING = ("io_uring", "io_uring_fixed", "io_uring_sqpoll", "io_uring_fixed_sqpoll")


@pytest.mark.parametrize("workers_as", ["threads", "processes"])
@pytest.mark.parametrize(
    "engine",
    [
        *("sync", "psync", "vsync", "pvsync", "pvsync2", "stdio", "mmap", "libaio"),
        *(pytest.param(name, marks=pytest.mark.needs_io_uring) for name in _QUEUEING),
    ],
)
def test_workers_as_threads_and_processes(tmp_path: Path, engine: str, workers_as: str) -> None:
    wanted = request(tmp_path, engine, workers=3, depth=1)
    wanted["workload"]["workers_as"] = workers_as
    answer = measure(wanted)
    assert answer["status"] == "ok", answer["error"]
    workers = answer["phases"][0]["tenants"][0]["workers"]
    assert [w["bytes"] for w in workers] == [8 << 20] * 3
    assert answer["phases"][0]["tenants"][0]["service"]["read"]["count"] == 3 * 2048
    assert not list(tmp_path.iterdir()), "files are removed"


def test_a_rate_limit_shows_response_beside_service_time(tmp_path: Path) -> None:
    wanted = request(tmp_path, rate_ops_per_s=2000.0, limit={"kind": "ops", "ops": 200})
    phase = measure(wanted)["phases"][0]
    assert 0.09 < phase["elapsed_ns"] / 1e9 < 0.5
    tenant = phase["tenants"][0]
    assert tenant["response"]["read"]["count"] == tenant["service"]["read"]["count"] == 200
    assert tenant["response"]["read"]["sum"] >= tenant["service"]["read"]["sum"]


def test_cold_and_warm_are_verified(tmp_path: Path) -> None:
    for state, low, high in (("warm", 0.99, 1.0), ("cold", 0.0, 0.01)):
        wanted = {**request(tmp_path), "cache": state}
        phase = measure(wanted)["phases"][0]
        if state == "cold" and phase["cache"]["resident_before_share"] > high:
            assert "cache_not_cold" in {w["code"] for w in phase["warnings"]}, "tmpfs says so"
            continue
        assert low <= phase["cache"]["resident_before_share"] <= high, state
        assert phase["cache"]["method"] in ("cachestat", "mincore")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"opening": "existing"}, "No such file"),
        ({"io_size_bytes": 1000, "access": "direct"}, "multiple of 512"),
        ({"io_size_bytes": 16 << 20}, "larger than the file"),
        ({"file": "../escape"}, "plain name"),
    ],
)
def test_failures_are_named(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    answer = measure(request(tmp_path, **change))
    assert answer["status"] == "failed"
    assert expected in answer["error"], answer["error"]


def test_an_unknown_engine_names_the_known_ones(tmp_path: Path) -> None:
    error = measure(request(tmp_path, "libaoi"))["error"]
    assert all(name in error for name in ("sync", "psync", "io_uring", "null", "memory")), error


@pytest.mark.needs_loop  # not a loop device, but the same right: to mount
def test_a_full_file_system_is_reported_with_the_file(tmp_path: Path) -> None:
    script = "mount -t tmpfs -o size=4m none $0 && exec $1 measure"
    argv = ["unshare", "-m", "sh", "-c", script, str(tmp_path), str(find_agent())]
    done = subprocess.run(
        argv,
        input=json.dumps(request(tmp_path)) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    answer = json.loads(done.stdout.splitlines()[-1])["result"]
    assert answer["status"] == "failed"
    assert "No space left" in answer["error"]
    assert "data.0" in answer["error"]


def test_the_reserve_stops_a_phase(tmp_path: Path) -> None:
    wanted = request(
        tmp_path, direction={"kind": "write"}, limit={"kind": "time", "duration_ns": 10_000_000_000}
    )
    answer = measure({**wanted, "reserve_bytes": 1 << 60})
    assert answer["status"] == "failed"
    assert "reserve" in answer["error"], answer["error"]


def test_a_worker_process_that_cannot_begin_is_reported_not_waited_for(tmp_path: Path) -> None:
    wanted = request(tmp_path, workers=2, io_size_bytes=1 << 40, file_bytes=1 << 41)
    wanted["workload"]["workers_as"] = "processes"
    wanted["workload"]["phases"][0]["tenants"][0]["opening"] = "existing"
    answer = measure(wanted)
    assert answer["status"] == "failed"
    assert answer["error"]


@pytest.mark.parametrize(
    "options",
    [
        {"is_preallocated": True, "opening": "create"},
        {"lock": "record"},
        {"lock": "whole_file", "opening": "create"},
        {"engine": "pvsync", "vectors": 4},
        {"engine": "pvsync2", "flags": ["dsync"]},
        {"engine": "mmap", "fsync": {"kind": "every", "ops": 8}, "flush": "msync"},
        {"fsync": {"kind": "every", "ops": 8}, "flush": "sync_file_range"},
        {"fsync": {"kind": "every", "ops": 8}, "flush": "fdatasync", "is_preallocated": True},
    ],
    ids=str,
)
def test_calls_that_a_study_can_ask_for_are_made_and_calibrated(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    wanted = request(tmp_path, **{"direction": {"kind": "write"}, **options})
    wanted["workload"]["is_calibrated"] = True
    result = measure(wanted)
    assert result["status"] == "ok", result["error"]
    (phase,) = result["phases"]
    assert phase["tenants"][0]["workers"][0]["bytes"] == 8 << 20
    assert phase["harness_ns_per_op"] > 0


def test_a_mapped_file_does_not_pretend_to_be_durable(tmp_path: Path) -> None:
    wanted = request(tmp_path, "mmap", direction={"kind": "write"}, durability="sync")
    result = measure(wanted)
    assert result["status"] == "failed"
    assert "durable only after a flush; use fsync_every" in result["error"]
