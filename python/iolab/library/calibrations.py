"""Folder of A/A results, and the one that belongs to a testbed on this machine.

One file per testbed, machine and design under ``iolab-out/aa``, named by a fingerprint of these:
another kernel, another host, another testbed or alternating slices have another noise. Simulated
testbeds are the same everywhere. A newer A/A study of the same replaces the file; the study itself
stays where it ran.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from iolab.errors import StudyError
from iolab.frozen import frozen
from iolab.run.options import OUTPUT_ROOT
from iolab.store.users_files import Allowed, refuse_foreign_results, write_results
from iolab.study.validity import PAIRS
from iolab.testbed.model import Testbed
from iolab.wording import counted

FOLDER: Final = OUTPUT_ROOT / "aa"
_MACHINE_ID: Final = Path("/etc/machine-id")


@frozen
class KnownNoise:
    """The part of a stored A/A result that plans use."""

    sd: float
    text: str
    """Source of the value, for people."""


def machine_facts(testbed: Testbed, design: str = "") -> dict[str, str]:
    """Facts that an A/A result depends on, as far as they are known before a trial.

    Parameters
    ----------
    design : of the study; only alternating slices have a noise of their own.
    """
    facts = {"testbed": testbed.text, "kind": testbed.record_kind}
    if design == PAIRS:
        facts["design"] = PAIRS
    if not testbed.is_simulated:
        name = os.uname()
        facts |= {
            "kernel.release": name.release,
            "machine": name.machine,
            "cpu.count": str(os.cpu_count()),
            "host": _host(),
        }
    return facts


def fingerprint(testbed: Testbed, design: str = "") -> str:
    """Name of a testbed on this machine, 16 hex digits."""
    text = json.dumps(machine_facts(testbed, design), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_of(testbed: Testbed, design: str = "") -> Path:
    """Path of a testbed's result."""
    return FOLDER / f"{fingerprint(testbed, design)}.json"


def check(testbed: Testbed, allowed: Allowed, design: str = "") -> None:
    """Refuse, before anything is measured, to replace a result that somebody has changed.

    Raises
    ------
    RefusedError : it is not what iolab wrote.
    """
    refuse_foreign_results(FOLDER, [file_of(testbed, design).name], allowed)


def save(
    what: tuple[Testbed, Allowed],
    result: Mapping[str, object],
    study: Path,
    *,
    now_ns: int,
    design: str = "",
) -> Path:
    """Keep a testbed's result for later plans; returns the file."""
    testbed, allowed = what
    path = file_of(testbed, design)
    document = {
        "schema_version": 1,
        "fingerprint": fingerprint(testbed, design),
        "machine": machine_facts(testbed, design),
        "made_at_unix_ns": now_ns,
        "study": str(study),
        "result": dict(result),
    }
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    write_results(FOLDER, {path.name: text.encode()}, allowed)
    return path


def find(testbed: Testbed, design: str = "") -> KnownNoise | None:
    """Noise of `testbed` on this machine; None if no A/A study of it is stored here.

    Parameters
    ----------
    design : of the study that is planned.

    Raises
    ------
    StudyError : the stored file is damaged.
    """
    path = FOLDER / f"{fingerprint(testbed, design)}.json"
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        result = document["result"]
        sd, rounds = float(result["sd_upper"]), int(result["n_rounds"])
        made = datetime.fromtimestamp(document["made_at_unix_ns"] / 1e9, tz=UTC)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(
            f"{path} cannot be read ({type(error).__name__}: {error})",
            "remove it, then run `iolab aa` again",
        ) from None
    return KnownNoise(sd, f"A/A of {counted(rounds, 'round')}, {made:%Y-%m-%d}, {path}")


def find_for(testbed: str, facts: Mapping[str, str]) -> dict[str, object] | None:
    """Newest stored result for a study's testbed on its kernel; None without one.

    A file that cannot be read is passed over: a report must not fail because of it, and a plan
    that needs it says what is wrong.
    """
    wanted = {"testbed": testbed} | {
        name: facts[name] for name in ("kernel.release", "cpu.count") if name in facts
    }
    found: list[tuple[int, dict[str, object]]] = []
    for path in FOLDER.glob("*.json") if FOLDER.is_dir() else ():
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            machine, made = document["machine"], int(document["made_at_unix_ns"])
            is_of_trials = "design" not in machine
            if is_of_trials and all(machine.get(n) == value for n, value in wanted.items()):
                found.append((made, {**document["result"], "made_at_unix_ns": made}))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return max(found, key=lambda item: item[0])[1] if found else None


def _host() -> str:
    """Hash of the machine's identity, which itself stays here."""
    try:
        identity = _MACHINE_ID.read_text(encoding="ascii").strip()
    except OSError:
        identity = os.uname().nodename
    return hashlib.sha256(f"iolab/{identity}".encode()).hexdigest()[:12]
