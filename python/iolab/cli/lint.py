"""``iolab lint``: which of Hoefler and Belli's twelve rules a study or a table breaks."""

from __future__ import annotations

import argparse
import json
import textwrap

from iolab.cli.console import Console
from iolab.cli.import_ import add_table_flags, table_words
from iolab.library.services import Services

NAME = "lint"
HELP = "say which rules of sound benchmarking a study or table breaks: exit 5 if any"
EXIT_BROKEN = 5
_INDENT = " " * 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("study", metavar="STUDY", help="results directory, archive or CSV file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_table_flags(parser)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Print the answer of every rule."""
    from iolab.library.comparing import rules_of

    name, findings = rules_of(arguments.study, table_words(arguments), services, console.note)
    broken = [finding.number for finding in findings if finding.status == "broken"]
    code = EXIT_BROKEN if broken else 0
    if arguments.json:
        document = {"study": name, "rules": [f.to_dict() for f in findings]}
        console.result(json.dumps(document, indent=2, ensure_ascii=False))
        return code
    console.result(f"{name}: Hoefler and Belli's twelve rules (SC'15)")
    for finding in findings:
        status = {"not applicable": "n/a"}.get(finding.status, finding.status)
        text = f"{finding.title}: {finding.evidence.rstrip('.')}."
        if finding.advice and finding.status != "kept":
            text += f" {finding.advice}"
        folded = textwrap.fill(text, console.width - len(_INDENT)).splitlines()
        console.result(f"{finding.number:>3}  {status:9}  " + f"\n{_INDENT}".join(folded))
    numbers = ", ".join(map(str, broken))
    console.result(f"{len(broken)} of 12 broken" + (f": {numbers}" if broken else ""))
    return code
