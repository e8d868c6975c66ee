"""``iolab advise``: lines that tune a file system for an array, or for random I/O, and why."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.cli.console import Console
from iolab.cli.subjects import Subject, add_subjects, execute_subject
from iolab.errors import IolabError
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab.library.advising import Answer

NAME = "advise"
HELP = "print the lines that tune a file system for an array or for random I/O, and why"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subject; each has flags of its own."""
    add_subjects(parser, SUBJECTS)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Answer about one subject."""
    return execute_subject(NAME, SUBJECTS, arguments, (services, console))


def _declare_stripe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--raid",
        metavar="LEVEL",
        required=True,
        help="layout: 0, 1, 5, 6 or 10; of ZFS also raidz1, raidz2 or raidz3",
    )
    parser.add_argument(
        "--disks", metavar="N", required=True, help="all disks of the set, those of parity too"
    )
    parser.add_argument(
        "--unit",
        metavar="SIZE",
        help="bytes on one disk before the next (chunk, interlace, stripe unit): a power of two"
        " from 4k to 16m; ZFS has none",
    )
    parser.add_argument(
        "--fs", metavar="NAME", required=True, help="ufs, vxfs, qfs, ext4, xfs or zfs"
    )
    parser.add_argument(
        "--app-io", metavar="SIZE", help="size of the application's reads and writes, as in 8k"
    )
    parser.add_argument(
        "--memory", metavar="SIZE", help="memory of the machine, from 16m to 64g; for throttles"
    )
    parser.add_argument("--degraded", action="store_true", help="one disk of the set is lost")
    _declare_answer(parser)


def _declare_random(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fs", metavar="NAME", help="ufs, vxfs, qfs, ext4, xfs or zfs (each of them)"
    )
    parser.add_argument(
        "--app-io", metavar="SIZE", help="size of the application's reads and writes (8k)"
    )
    _declare_answer(parser)


def _declare_answer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--prove",
        action="store_true",
        help="compare the advice with the defaults in simulation, as studies with a verdict each,"
        " where the file system is simulated (ext4, xfs, ufs, vxfs, zfs)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="with --prove: directory below which the stack and the results go (iolab-out)",
    )


def _stripe(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    from iolab.library.advice_text import stripe_dict, stripe_text
    from iolab.library.advising import provable, stripe_answer

    answer = stripe_answer(
        arguments.fs,
        level=arguments.raid,
        disks=arguments.disks,
        unit=arguments.unit,
        app_io=arguments.app_io,
        memory=arguments.memory,
        is_degraded=arguments.degraded,
    )
    _refuse_out_alone(arguments)
    if arguments.prove:
        provable(answer)
    if arguments.json:
        proofs = _proved(answer, arguments, services, console)
        console.result(_as_json({**stripe_dict(answer), "proofs": proofs}))
        return 0
    console.result(stripe_text(answer, console.width))
    _proved(answer, arguments, services, console)
    return 0


def _random(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    from iolab.library.advice_text import random_dict, random_text
    from iolab.library.advising import provable, random_answers

    first, *others = answers = random_answers(arguments.fs, arguments.app_io)
    _refuse_out_alone(arguments)
    if arguments.prove and others:
        raise IolabError("--prove compares on one file system", "name it, as in --fs ext4")
    if arguments.prove:
        provable(first)
    if arguments.json:
        proofs = _proved(first, arguments, services, console)
        console.result(_as_json({**random_dict(answers), "proofs": proofs}))
        return 0
    console.result(random_text(answers, console.width))
    _proved(first, arguments, services, console)
    return 0


def _as_json(table: dict[str, object]) -> str:
    return json.dumps(table, indent=2, ensure_ascii=False)


def _refuse_out_alone(arguments: argparse.Namespace) -> None:
    if arguments.out is not None and not arguments.prove:
        raise IolabError(
            f"--out {arguments.out} is for the results of --prove, which is not given",
            "add --prove, or leave --out out",
        )


def _proved(
    answer: Answer, arguments: argparse.Namespace, services: Services, console: Console
) -> list[dict[str, object]] | None:
    """Run the proofs, if they are wanted; prints their verdicts unless the answer is JSON."""
    if not arguments.prove:
        return None
    from iolab.cli.defaults import results_root
    from iolab.cli.finish import show_answer
    from iolab.library.advising import proof_study, provable, write_stack
    from iolab.library.answer import AnswerForm, answer_of_run
    from iolab.library.conducted import RunOptions, conducted

    root = results_root() if arguments.out is None else Path(arguments.out)
    stack, found = write_stack(answer, root), list[dict[str, object]]()
    proofs = provable(answer)
    for number, proof in enumerate(proofs, 1):
        if not arguments.json:
            console.result(f"\n-- proof {number} of {len(proofs)}: {proof.about} --\n")
        study = proof_study(answer, proof, stack)
        done = conducted(study, RunOptions(root=root), services, console)
        assert done is not None, "this is no rehearsal"
        told = answer_of_run(done, AnswerForm(width=console.width), services, console.note)
        if told is not None and not arguments.json:
            show_answer(told, console, is_strict=False, is_full=False)
        if done.problem is not None:
            raise done.problem
        found.append(
            {
                "name": proof.name,
                "about": proof.about,
                "factor": proof.factor,
                "default": proof.default,
                "advised": proof.advised,
                "verdict": None if told is None else told.sentence,
                "results": str(done.database.parent),
            }
        )
    return found


SUBJECTS: Final[dict[str, Subject]] = {
    "stripe": (
        _declare_stripe,
        _stripe,
        "lines that tune a file system for a striped volume: clusters, alignment, transfers",
    ),
    "random": (
        _declare_random,
        _random,
        "lines for I/O at random places: block size, alignment, read-ahead, direct I/O",
    ),
}
