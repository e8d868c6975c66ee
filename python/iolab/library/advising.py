"""Advice on tuning a file system, and its proof: the advised lines against the defaults, simulated.

The rules are those of `iolab.advise`. A proof is an ordinary study on a stack that is written
beside its results, so that it can be run and changed like any other. Left out: lines that the
simulator has no knob for; they are advised, not proved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeAlias

from iolab.advise import FILE_SYSTEMS
from iolab.advise.advice import Proof, TunedFileSystem, TuningAdvice
from iolab.advise.request import (
    APP_IO_BYTES,
    GIB,
    KIB,
    RandomRequest,
    StripeRequest,
    checked_app_io,
    stripe_request,
)
from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library.study import Study
from iolab.units import format_bytes
from iolab.wording import nearest

Request: TypeAlias = StripeRequest | RandomRequest

PROFILE: Final = "sata7200-4tb"
"""Disk of the simulated arrays: one that turns, where seeks and partial stripes cost most."""
ROUNDS: Final = 6
SEED: Final = 1
MEMORY_BYTES: Final = GIB
"""Memory of the simulated machine where none is named."""


@frozen
class Answer:
    """Advice about one file system, and the comparisons that would prove it."""

    file_system: TunedFileSystem
    request: Request
    advice: TuningAdvice
    proofs: tuple[Proof, ...] | None
    """None: the simulator does not have the file system; empty: it has no knob for the lines."""

    @property
    def stack_name(self) -> str:
        """Name of the stack that proofs run on, as in ``advice-raid5-8x128k``."""
        request = self.request
        if isinstance(request, RandomRequest):
            return "advice-disk"
        unit = f"x{format_bytes(request.unit_bytes)}" if request.unit_bytes else ""
        lost = "-degraded" if request.is_degraded else ""
        memory = "" if request.memory_bytes is None else f"-{format_bytes(request.memory_bytes)}"
        return f"advice-{request.level.layout}-{request.disks}{unit}{lost}{memory}"


def find_file_system(name: str) -> TunedFileSystem:
    """File system by its name.

    Raises
    ------
    IolabError : there are no rules for it; names the nearest.
    """
    known = {row.name: row for row in FILE_SYSTEMS}
    if name.strip().lower() not in known:
        raise IolabError(
            f"--fs {name}: there is no advice for such a file system{nearest(name, known)}",
            f"there is for {', '.join(known)}",
        )
    return known[name.strip().lower()]


def stripe_answer(  # noqa: PLR0913 - keyword arguments, each a flag
    name: str,
    *,
    level: str,
    disks: str,
    unit: str | None = None,
    app_io: str | None = None,
    memory: str | None = None,
    is_degraded: bool = False,
) -> Answer:
    """Advice for a file system on a striped volume; all words as typed.

    Raises
    ------
    IolabError : a word means nothing, or the file system cannot be tuned for it.
    """
    row = find_file_system(name)
    request = stripe_request(
        level,
        disks,
        unit,
        app_io=app_io,
        memory=memory,
        is_degraded=is_degraded,
        is_zfs=row.has_own_volumes,
    )
    proofs = None if row.stripe_proofs is None else row.stripe_proofs(request)
    return Answer(row, request, row.stripe(request), proofs)


def random_answers(name: str | None, app_io: str | None) -> tuple[Answer, ...]:
    """Advice for I/O at random places: for one file system, or for each of them.

    Raises
    ------
    IolabError : a word means nothing, or the file system cannot be tuned for it.
    """
    rows = FILE_SYSTEMS if name is None else (find_file_system(name),)
    request = RandomRequest(APP_IO_BYTES if app_io is None else checked_app_io(app_io))
    return tuple(
        Answer(
            row,
            request,
            row.random(request),
            None if row.random_proofs is None else row.random_proofs(request),
        )
        for row in rows
    )


def provable(answer: Answer) -> tuple[Proof, ...]:
    """Comparisons of an answer.

    Raises
    ------
    IolabError : there are none; says why.
    """
    name = answer.file_system.name
    if answer.proofs is None:
        simulated = ", ".join(row.name for row in FILE_SYSTEMS if row.stripe_proofs is not None)
        raise IolabError(
            f"--prove: there is no simulated proof of the advice for {name} yet",
            f"leave --prove out; there is one for {simulated}",
        )
    if not answer.proofs:
        raise IolabError(
            f"--prove: nothing differs from the defaults of {name} on this array",
            "leave --prove out",
        )
    return answer.proofs


def proof_study(answer: Answer, proof: Proof, stack: Path) -> Study:
    """Study of one proof: the default against what is advised.

    Parameters
    ----------
    answer : what was advised.
    proof : one of its proofs.
    stack : file of the stack.
    """
    return Study(
        name=f"{answer.stack_name}-{answer.file_system.name}-{proof.name}",
        testbed=f"sim:{stack}",
        workload={"name": proof.name, "kind": "iozone", "tests": list(proof.tests)},
        factors={proof.factor: [proof.default, proof.advised]},
        settings={"fs": answer.file_system.name, **proof.settings},
        rounds=ROUNDS,
        seed=SEED,
        compare=proof.factor,
        baseline=proof.default,
    )


def stack_text(answer: Answer) -> str:
    """Stack file of the machine on which an answer is proved."""
    request = answer.request
    memory, device = MEMORY_BYTES, f'device.profile = "{PROFILE}"\n'
    title = f"One disk ({PROFILE})"
    if isinstance(request, StripeRequest):
        memory = request.memory_bytes or MEMORY_BYTES
        unit = f", unit {format_bytes(request.unit_bytes)}" if request.unit_bytes else ""
        lost = ", one of them lost" if request.is_degraded else ""
        title = f"{request.level.title} of {request.disks} disks{unit}{lost}"
        device = _volume_text(request)
    transfer = answer.file_system.transfer_bytes
    queue = ""
    if transfer is not None and isinstance(request, StripeRequest):
        queue = f"\n[queue]\nmax_sectors_kb = {transfer(request.cluster_bytes) // KIB}\n"
    return (
        "# Written by `iolab advise --prove`.\n"
        f'name = "{answer.stack_name}"\n'
        f'title = "{title}"\n'
        f"{'' if isinstance(request, StripeRequest) else device}{queue}"
        f'\n[files]\nfs = "{answer.file_system.name}"\nmemory = "{format_bytes(memory)}"\n'
        f"{device if isinstance(request, StripeRequest) else ''}"
    )


def _volume_text(request: StripeRequest) -> str:
    options = [f'layout = "{request.level.layout}"']
    if request.level.is_striped and request.unit_bytes and not request.level.is_zfs:
        options.append(f"unit_bytes = {request.unit_bytes}")
    if request.is_degraded:
        options.append("lost_member = 0")
    return (
        f"\n[volume]\nmembers = {request.disks}\nparameters = {{ {', '.join(options)} }}\n"
        f'member.device.profile = "{PROFILE}"\n'
    )


def write_stack(answer: Answer, folder: Path) -> Path:
    """Write the stack file of an answer, unless it is there already.

    Parameters
    ----------
    answer : what is proved.
    folder : directory for results; made if it is missing.

    Raises
    ------
    IolabError : another file has its name.
    """
    path, text = folder / f"{answer.stack_name}-{answer.file_system.name}.toml", stack_text(answer)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
            raise IolabError(
                f"{path} is another stack than that of the proof", "remove or rename it"
            ) from None
    return path
