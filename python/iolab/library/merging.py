"""The study of all its shards: their records, stored in the order of the plan.

A merge is a run of the whole study on an executor that looks the records up instead of simulating.
So it decides at the same rounds as a run of the whole, and stores what that would.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Final, ParamSpec, TypeVar, cast

from iolab.errors import StudyError
from iolab.frozen import frozen, replace
from iolab.library.conducted import Conducted, conducted
from iolab.library.services import Services
from iolab.library.stored import opened, stored_study
from iolab.library.study import public_study
from iolab.run.observer import Observer
from iolab.run.options import RunOptions
from iolab.run.shard import Shard, parse_shard, shard_plan
from iolab.store.db import Store
from iolab.study.plan import Plan, make_plan
from iolab.study.source import FlagSource
from iolab.testbed.executors import IN_FLIGHT_MIN, TrialExecutor, Workers
from iolab.wording import counted

P = ParamSpec("P")
T = TypeVar("T")

_NAMED: Final = 5
"""Shards that a message lists."""


@frozen
class _Part:
    """A shard that is open."""

    path: Path
    store: Store
    shard: Shard

    @property
    def text(self) -> str:
        """Name in messages."""
        return f"{self.path} (shard {self.shard.text})"


class _Stored(Executor):
    """An executor that has the records already."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = {part.shard.number % part.shard.count: part for part in parts}

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Look up the record of the trial of a spec."""
        del fn, kwargs
        trial = str(json.loads(str(args[1]))["trial"])
        part = self._parts[int(trial[1:]) % len(self._parts)]
        future = Future[str]()
        future.set_result(json.dumps(part.store.record(trial)))
        return cast("Future[T]", future)

    def opened(self) -> AbstractContextManager[Workers]:
        """The executor for a run."""
        return nullcontext(Workers(self, lambda: IN_FLIGHT_MIN))


def merged(
    results: Sequence[Path],
    out: Path,
    overwrite: tuple[str, ...],
    services: Services,
    observer: Observer,
) -> Conducted:
    """Store the study of all its shards in a directory of its own.

    Parameters
    ----------
    results : directories of the shards, in any order, or archives of them.
    out : new directory.
    overwrite : files of the user's own that its report may replace.
    services : the compiled half and the statistics.
    observer : hears of it.

    Raises
    ------
    StudyError : these are not all shards of one study, finished and once each; names which.
    StoreError : one cannot be read.
    """
    with ExitStack() as stack:
        parts = [_opened(path, stack, observer) for path in results]
        _check_alike(parts)
        _check_complete(parts)
        asked = [stored_study(part.path, {}, FlagSource({})) for part in parts]
        rounds = max(study.rounds or 0 for study in asked)
        whole = replace(asked[0], rounds=rounds)
        _check_finished(parts, make_plan(whole), [study.rounds == rounds for study in asked])
        study = public_study(whole, is_testbed_from_file=True)
        spread = TrialExecutor("iolab merge", _Stored(parts).opened)
        options = RunOptions(out=out, overwrite=overwrite, spread=spread)
        done = conducted(study, options, services, observer)
    if done is None:
        raise AssertionError("this is no rehearsal")
    return done


def _opened(path: Path, stack: ExitStack, observer: Observer) -> _Part:
    database = stack.enter_context(opened(path, observer.note))
    store = stack.enter_context(Store.open_reader(database))
    texts = set(store.shard_texts())
    if len(texts) != 1 or "" in texts:
        raise StudyError(
            f"{path} holds {'a whole study' if texts else 'a study that never began'}, not a shard",
            "name the directories that `iolab run STUDY --shard I/N --out DIR` made",
        )
    return _Part(path, store, parse_shard(texts.pop()))


def _check_alike(parts: Sequence[_Part]) -> None:
    """Refuse shards of different studies, divisions or versions."""
    first = parts[0]
    ours = first.store.study
    for other in parts[1:]:
        theirs = other.store.study
        if theirs.plan_digest != ours.plan_digest:
            raise StudyError(
                f"{first.path} and {other.path} are of different studies: '{ours.name}' with seed "
                f"{ours.seed}, '{theirs.name}' with seed {theirs.seed}",
                "merge the shards of one study, run with the same file and flags",
            )
        if theirs.spec_toml != ours.spec_toml:
            raise StudyError(
                f"{first.path} and {other.path} were run with other rounds, margin or metric",
                "run one of them again, with the file and flags of the other",
            )
        if theirs.iolab_version != ours.iolab_version:
            raise StudyError(
                f"{first.path} was simulated by iolab {ours.iolab_version}, {other.path} by "
                f"{theirs.iolab_version}, and their numbers may differ",
                "run one of them again, with the version of the other",
            )
        if other.shard.count != first.shard.count:
            raise StudyError(
                f"{first.text} and {other.text} are of different divisions",
                "merge shards I/N of one N",
            )


def _check_complete(parts: Sequence[_Part]) -> None:
    """Refuse shards that are there twice or not at all."""
    found = dict[int, _Part]()
    for part in parts:
        if part.shard.number in found:
            raise StudyError(
                f"{found[part.shard.number].path} and {part.path} are both shard {part.shard.text}",
                "name each shard once",
            )
        found[part.shard.number] = part
    count = parts[0].shard.count
    missing = [f"{number}/{count}" for number in range(1, count + 1) if number not in found]
    if missing:
        named = ", ".join(missing[:_NAMED]) + (" ..." if len(missing) > _NAMED else "")
        raise StudyError(
            f"of {counted(count, 'shard')} these are missing: {named}",
            f"name all directories, or run what is missing, as in --shard {missing[0]}",
        )


def _check_finished(parts: Sequence[_Part], plan: Plan, are_whole: Sequence[bool]) -> None:
    """Refuse shards in which trials are missing; `are_whole` tells which have all rounds."""
    for part, is_whole in zip(parts, are_whole, strict=True):
        n_wanted = shard_plan(plan, part.shard).n_trials(plan.rounds or 0)
        statuses = part.store.finished_trials()
        n_done = sum(status in ("ok", "failed") for status in statuses.values())
        if n_done < n_wanted:
            place = shlex.quote(str(part.path))
            more = "" if is_whole else f" --rounds {plan.rounds}"
            raise StudyError(
                f"{part.text} is not finished: {counted(n_wanted - n_done, 'trial')} of {n_wanted} "
                "to go",
                f"continue it with `iolab run {place} --resume{more}`",
            )
