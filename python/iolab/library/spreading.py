"""Flags that spread simulated trials over processes, executors and jobs, understood."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from iolab.errors import IolabError
from iolab.run.shard import Shard, parse_shard
from iolab.testbed.executors import (
    TrialExecutor,
    dask_workers,
    given_workers,
    local_dask_workers,
    local_workers,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["Shard", "TrialExecutor", "parse_shard", "spread_of", "spread_on"]

PROCESSES_MAX: Final = 1024
EXECUTORS: Final = ("dask:tcp://HOST:PORT", "dask:local:N")
"""Forms of ``--executor``."""
_ADDRESS: Final = re.compile(r"dask:((?:tcp|tls|ucx|ws|wss)://\S+:[0-9]{1,5})", re.ASCII)
_LOCAL: Final = re.compile(r"dask:local:(\S*)", re.ASCII)


def spread_of(jobs: str | None, executor: str | None) -> TrialExecutor | None:
    """The executor that ``--jobs`` or ``--executor`` names; None is this process alone.

    Raises
    ------
    IolabError : a value has no meaning, or both are given.
    """
    if jobs is not None and executor is not None:
        raise IolabError(f"--jobs {jobs} and --executor {executor} exclude each other", "leave one")
    if jobs is not None:
        n_processes = _count(f"--jobs {jobs}", jobs, "as in --jobs 4")
        asked = TrialExecutor(f"--jobs {n_processes}", partial(local_workers, n_processes))
        return asked if n_processes > 1 else None
    if executor is None:
        return None
    asked = f"--executor {executor}"
    if found := _LOCAL.fullmatch(executor):
        n_workers = _count(asked, found[1], "as in --executor dask:local:4")
        return TrialExecutor(asked, partial(local_dask_workers, n_workers))
    if found := _ADDRESS.fullmatch(executor):
        return TrialExecutor(asked, partial(dask_workers, found[1]))
    raise IolabError(f"{asked}: there is no such executor", f"use {' or '.join(EXECUTORS)}")


def spread_on(executor: Executor) -> TrialExecutor:
    """The caller's own executor."""
    return TrialExecutor("executor=...", partial(given_workers, executor))


def _count(asked: str, text: str, example: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(PROCESSES_MAX))
    number = int(text) if is_number else 0
    if not 1 <= number <= PROCESSES_MAX:
        raise IolabError(f"{asked}: not a number of processes, 1 to {PROCESSES_MAX}", example)
    return number
