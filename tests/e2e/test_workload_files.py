"""Workload files of the examples, performed by the real agent: their system calls are counted."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from iolab import _core
from iolab.errors import DialectError, StudyError
from iolab.testbed.command import find_agent

EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "workloads"
_CALL: Final = re.compile(r"^(?P<thread>\d+) +(?:<\.\.\. )?(?P<call>\w+)(?: resumed>|\()")


def request(name: str, directory: Path) -> dict[str, Any]:
    """Request of the measuring child for one example."""
    path = EXAMPLES / f"{name}.toml"
    workload = json.loads(_core.workload_file(str(path), path.read_text()))
    return {"trial": "t1", "directory": str(directory), "is_ours": True, "workload": workload}


def counted(trace: str) -> Counter[str]:
    """Calls of all threads but those that made the directories before the workers began."""
    calls: dict[str, Counter[str]] = {}
    for line in trace.splitlines():
        # Read of a thread by itself, before and after a phase: how long it waited for a CPU.
        if "/schedstat>" in line:
            continue
        # A call that was interrupted by another thread's line is counted where it begins.
        if " resumed>" not in line and (match := _CALL.match(line)):
            calls.setdefault(match["thread"], Counter())[match["call"]] += 1
    workers = [found for found in calls.values() if not found["mkdir"]]
    return sum(workers, Counter[str]())


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize(
    "name", ["fio-randrw", "varmail", "etcd", "weblog", "vm-images", "bonnie-complete"]
)
def test_the_calls_are_those_that_the_file_expects(name: str, tmp_path: Path) -> None:
    expected = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())["expect"]
    trace, folder = tmp_path / "trace", tmp_path / "files"
    folder.mkdir()
    traced = ",".join([*expected["calls"], "mkdir"])
    words = ["strace", "-f", "-y", "-o", str(trace), "-e", f"trace={traced}"]
    done = subprocess.run(
        [*words, str(find_agent()), "measure"],
        input=json.dumps(request(name, folder)) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout.splitlines()[-1])["result"]
    assert answer["status"] == "ok", answer["error"]
    calls, weights = counted(trace.read_text()), expected["calls"]
    total, weight = sum(calls[call] for call in weights), sum(weights.values())
    tolerance = expected.get("tolerance", 0.02)
    for call, share in weights.items():
        found = calls[call] / total
        assert abs(found - share / weight) <= tolerance, f"{call}: {calls}"
    assert list(folder.iterdir()) == [], "the sets of files are removed"


def test_a_record_tells_each_operation(tmp_path: Path) -> None:
    wanted = json.dumps(request("etcd", tmp_path)) + "\n"
    argv = [str(find_agent()), "measure"]
    out = subprocess.run(argv, input=wanted, capture_output=True, text=True, check=True).stdout
    answer = json.loads(out.splitlines()[-1])["result"]
    operations = {one["id"]: one for one in answer["phases"][0]["tenants"][0]["operations"]}
    assert set(operations) == {"entry", "append", "durable"}
    keys = {"id", "kind", "ops", "bytes", "io_size_bytes", "access", "latency", "response"}
    assert set(operations["append"]) == keys
    assert operations["append"]["kind"] == "write"
    assert operations["append"]["access"] == "append"
    assert operations["durable"]["kind"] == "sync"
    assert operations["entry"]["ops"] == operations["append"]["ops"] == 300


def test_a_problem_is_a_dialect_error_with_its_line() -> None:
    with pytest.raises(DialectError, match=r"mine.toml, line 2.*file_sets"):
        _core.workload_file("mine.toml", "\n[[file_set]]\nname = 'x'\n")


def test_processes_are_refused_by_name(tmp_path: Path) -> None:
    wanted = request("etcd", tmp_path)
    wanted["workload"]["workers_as"] = "processes"
    argv = [str(find_agent()), "measure"]
    text = json.dumps(wanted) + "\n"
    out = subprocess.run(argv, input=text, capture_output=True, text=True, check=True).stdout
    answer = json.loads(out.splitlines()[-1])["result"]
    assert answer["status"] == "failed"
    assert "workers_as" in answer["error"]
    assert "phases[0].tenants[0]" in answer["error"]


def simulated(name: str, profile: str) -> dict[str, Any]:
    """Record of an example on a simulated stack."""
    path = EXAMPLES / f"{name}.toml"
    workload = json.loads(_core.workload_file(str(path), path.read_text()))
    spec = {"trial": "t1", "stack": None, "knobs": {}, "workload": workload}
    text = _core.simulate_trial(_core.sim_profile_stack(profile), json.dumps(spec), None)
    return json.loads(text)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("fio-randrw", "fixed-100us"),
        ("flow", "fixed-100us"),
        ("vm-images", "nvme-pc601-256"),
        ("vm-images", "sata-860pro-256"),
    ],
)
def test_direct_examples_run_in_simulation_the_same_twice(name: str, profile: str) -> None:
    expected = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())["expect"]
    first, second = (simulated(name, profile) for _ in range(2))
    assert first["status"] == "ok"
    assert first["simulation"]["event_hash"] == second["simulation"]["event_hash"]
    counts = Counter[str]()
    for tenant in first["phases"][0]["tenants"]:
        assert [worker["first_error"] for worker in tenant["workers"]] == [None] * len(
            tenant["workers"]
        )
        counts.update({one["id"]: one["ops"] for one in tenant["operations"]})
    weights = expected["operations"]
    total, weight = sum(counts[key] for key in weights), sum(weights.values())
    for key, share in weights.items():
        assert abs(counts[key] / total - share / weight) <= expected["tolerance"], counts


@pytest.mark.parametrize(
    ("name", "missing"), [("varmail", "page cache"), ("ycsb-a", "get and put keys")]
)
def test_what_a_simulation_cannot_do_is_refused_by_name(name: str, missing: str) -> None:
    with pytest.raises(StudyError, match=missing):
        simulated(name, "fixed-100us")


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_a_simulated_tenant_begins_when_the_other_has_ended(order: tuple[str, str]) -> None:
    """The order of the description does not matter, and no time passes between the two."""
    tenant = """
[[tenants]]
name = "{name}"
workers = 2
[tenants.program]
limit = {{ time = "{time}" }}
{more}
steps = [{{ does = "burn", duration = "3ms" }}]
"""
    parts = {
        "first": tenant.format(name="first", time="10ms", more=""),
        "second": tenant.format(name="second", time="5ms", more='begins_after = "first"'),
    }
    text = "".join(parts[name] for name in order)
    workload = json.loads(_core.workload_file("turns.toml", text))
    spec = {"trial": "t1", "stack": None, "knobs": {}, "workload": workload}
    stack = _core.sim_profile_stack("fixed-100us")
    record = json.loads(_core.simulate_trial(stack, json.dumps(spec), None))
    assert record["status"] == "ok", record
    tenants = {one["name"]: one for one in record["phases"][0]["tenants"]}
    ends = [w["started_ns"] + w["elapsed_ns"] for w in tenants["first"]["workers"]]
    begins = [w["started_ns"] for w in tenants["second"]["workers"]]
    assert set(begins) == {max(ends)}
    assert tenants["second"]["began_ns"] >= 10_000_000


def meeting(steps: str, *, begins_at: str = 'begins_at = "warm"') -> str:
    """Workload file in which a slow tenant comes to a barrier, and another one begins there."""
    direct = 'path = "direct", size = "4k", at = {}'
    return f"""
[[file_sets]]
name = "s"
files = 2
file_size = "1m"

[[tenants]]
name = "slow"
workers = 2
[tenants.program]
steps = [
  {{ id = "first", does = "write", file = {{ by = "own", set = "s" }}, {direct} }},
  {{ does = "think", duration = "50ms" }},
  {steps}
  {{ id = "second", does = "write", file = {{ by = "own", set = "s" }}, {direct} }},
]

[[tenants]]
name = "readers"
workers = 3
[tenants.program]
{begins_at}
limit = {{ passes = 5 }}
steps = [{{ id = "read", does = "read", file = {{ by = "existing", set = "s" }}, {direct} }}]
"""


COMES = '{ does = "barrier", barrier = "warm" },'


def begins(record: dict[str, Any]) -> dict[str, list[int]]:
    """Nanoseconds from the first worker's beginning to that of each, by tenant."""
    tenants = record["phases"][0]["tenants"]
    starts = {one["name"]: [w["started_ns"] for w in one["workers"]] for one in tenants}
    first = min(min(all_of) for all_of in starts.values())
    return {name: [at - first for at in all_of] for name, all_of in starts.items()}


def of_text(text: str, profile: str = "fixed-100us") -> dict[str, Any]:
    """Record of a workload file's text on a simulated stack."""
    workload = json.loads(_core.workload_file("meeting.toml", text))
    spec = {"trial": "t1", "stack": None, "knobs": {}, "workload": workload}
    return json.loads(
        _core.simulate_trial(_core.sim_profile_stack(profile), json.dumps(spec), None)
    )


def test_a_simulated_tenant_begins_at_a_barrier() -> None:
    record = of_text(meeting(COMES))
    assert record["status"] == "ok", record["error"]
    found = begins(record)
    assert found["slow"] == [0, 0]
    assert len(set(found["readers"])) == 1, "they begin together"
    assert 50_000_000 <= found["readers"][0] < 60_000_000


def test_workers_begin_at_a_barrier(tmp_path: Path) -> None:
    text = meeting(COMES).replace('path = "direct", ', "")
    workload = json.loads(_core.workload_file("meeting.toml", text))
    wanted = {"trial": "t1", "directory": str(tmp_path), "is_ours": True, "workload": workload}
    argv = [str(find_agent()), "measure"]
    line = json.dumps(wanted) + "\n"
    out = subprocess.run(argv, input=line, capture_output=True, text=True, check=True).stdout
    answer = json.loads(out.splitlines()[-1])["result"]
    assert answer["status"] == "ok", answer["error"]
    assert min(begins(answer)["readers"]) >= 50_000_000


def test_who_ends_before_a_barrier_is_not_waited_for() -> None:
    """The two writers end by their limit before they come: the readers begin then, and end."""
    text = meeting(COMES).replace("steps = [", "limit = { ops = 1 }\nsteps = [", 1)
    record = of_text(text)
    assert record["status"] == "ok", record["error"]
    operations = record["phases"][0]["tenants"][1]["operations"]
    assert [one["ops"] for one in operations] == [15]


@pytest.mark.parametrize(
    ("steps", "begins_at", "part"),
    [
        ("", 'begins_at = "warm"', "no other tenant of this phase comes to the barrier warm"),
        (COMES, 'begins_at = "warm"\nbegins_after = "slow"', "leave one of them out"),
        ('{ does = "barrier" },', "", "lacks `barrier`"),
        ('{ does = "think", duration = 1, barrier = "warm" },', "", "means nothing"),
        (COMES, f"after = [{COMES}]", "a barrier after the timed region: nobody is waited for"),
    ],
)
def test_barriers_that_cannot_be_are_refused(steps: str, begins_at: str, part: str) -> None:
    with pytest.raises(DialectError, match=part):
        _core.workload_file("meeting.toml", meeting(steps, begins_at=begins_at))
