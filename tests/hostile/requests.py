"""Requests that the agent grants, to be changed in one place by each attack."""

from __future__ import annotations

from typing import Any

Request = tuple[str, Any]

MIB = 1 << 20


def hello(**changed: Any) -> Request:
    """The greeting."""
    usual = {"protocol": 1, "run": "hostile-1", "is_dry_run": False, "state_dir": None}
    return "hello", {**usual, **changed}


def loop(**changed: Any) -> Request:
    """A private loop device, class B: what the default policy allows."""
    usual = {
        "kind": "loop",
        "size_bytes": 64 * MIB,
        "image_dir": "/var/tmp",
        "device_count": 1,
        "logical_block_bytes": 512,
    }
    return "open_testbed", {**usual, **changed}


def directory(path: str, **changed: Any) -> Request:
    """Directory of a user, class A+."""
    usual = {"kind": "directory", "path": path, "allow_knobs_on": []}
    return "open_testbed", {**usual, **changed}


def device(path: str, **changed: Any) -> Request:
    """A whole device, class C."""
    usual = {
        "kind": "device",
        "path": path,
        "erase_serial": None,
        "study": None,
        "protected": [],
        "precondition": "none",
        "precondition_round_ns": 1_000_000_000,
    }
    return "open_testbed", {**usual, **changed}


def stack(**changed: Any) -> dict[str, Any]:
    """A plain ext4."""
    usual: dict[str, Any] = {
        "fs": "ext4",
        "mkfs_options": [],
        "mount_options": [],
        "has_external_journal": False,
    }
    return {**usual, **changed}


def trial(**changed: Any) -> Request:
    """A trial that writes a mebibyte."""
    usual = {
        "trial": "t0001",
        "stack": stack(),
        "is_fresh_fs": True,
        "knobs": {},
        "cache": "as_is",
        "memory_limit_bytes": None,
        "reserve_bytes": 0,
        "time_limit_ns": 20_000_000_000,
        "workload": workload(),
    }
    return "run_trial", {**usual, **changed}


def workload(phase: dict[str, Any] | None = None, **tenant: Any) -> dict[str, Any]:
    """A workload of one phase of one tenant."""
    return {
        "version": 1,
        "name": "hostile",
        "engine": "psync",
        "workers_as": "threads",
        "seed": 7,
        "content": "zero",
        "pin_cpus": [],
        "interval_ns": 100_000_000,
        "is_calibrated": False,
        "phases": [
            {
                "name": "write",
                "is_stonewalled": False,
                "keeps_files": True,
                "tenants": [_tenant(tenant)],
                **(phase or {}),
            }
        ],
    }


def _tenant(changed: dict[str, Any]) -> dict[str, Any]:
    usual = {
        "name": "main",
        "workers": 1,
        "is_file_shared": False,
        "file": "data",
        "file_bytes": MIB,
        "io_size_bytes": 4096,
        "pattern": {"kind": "sequential"},
        "direction": {"kind": "write"},
        "depth": 1,
        "access": "plain",
        "durability": "none",
        "fsync": {"kind": "none"},
        "opening": "create",
        "primes_first_record": False,
        "rate_ops_per_s": None,
        "think_ns": 0,
        "priority": None,
        "limit": {"kind": "once"},
    }
    return {**usual, **changed}


def writing(**tenant: Any) -> Request:
    """A trial whose only tenant differs from the usual one."""
    return trial(workload=workload(**tenant))


def logging(log: str, phase: str = "write") -> Request:
    """A trial whose operations are written to the directory `log`."""
    return trial(workload=workload(phase={"name": phase}, manner={"op_log": log}))


def replaying(file: str) -> Request:
    """A trial that does the operations of a recorded stream again."""
    content = {
        **{"ops": 1, "files": 1, "read_bytes": 512, "written_bytes": 0, "least_bytes": 512},
        **{"most_bytes": 512, "grain_bytes": 512, "end_bytes": 512, "duration_ns": 0},
        **{"does": ["read"], "digest": "0000000000000000"},
    }
    step = {
        "does": "read",
        "file": {"by": "existing", "set": "data"},
        "at": {},
        "size_bytes": 512,
    }
    recorded = {"file": file, "format": "iolab", "set": "data", "content": content}
    program = {"steps": [step], "recorded": recorded}
    replay = workload(program=program, opening="existing", file="program")
    replay["file_sets"] = [{"name": "data", "files": 1, "file_bytes": MIB}]
    return trial(workload=replay)


def mounted(*options: str, **changed: Any) -> Request:
    """A trial whose file system is mounted with `options`."""
    return trial(stack=stack(mount_options=list(options), **changed))


def made(*options: str, **changed: Any) -> Request:
    """A trial whose file system is made with `options`."""
    return trial(stack=stack(mkfs_options=list(options), **changed))
