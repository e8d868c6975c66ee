"""The dependency picture as data, and what in the code departs from it.

A new edge needs a visible decision: a line here, with its reason in docs/design. An edge is
allowed if the picture leads from one to the other along its arrows, so that `cli` may use `study`.
"""

import ast
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from python_source import parsed

Picture = Mapping[str, frozenset[str]]

CRATES: Final[Picture] = {
    "iolab-model": frozenset(),
    "iolab-workload": frozenset({"iolab-model"}),
    "iolab-dialect": frozenset({"iolab-workload"}),
    "iolab-drive": frozenset({"iolab-workload", "iolab-lsm"}),
    "iolab-protocol": frozenset({"iolab-drive"}),
    "iolab-real": frozenset({"iolab-model"}),
    "iolab-files": frozenset({"iolab-model"}),
    "iolab-sim": frozenset({"iolab-files"}),
    "iolab-trace": frozenset({"iolab-model"}),
    "iolab-kv": frozenset({"iolab-model"}),
    "iolab-lsm": frozenset({"iolab-model"}),
    "iolab-pattern": frozenset({"iolab-model", "iolab-trace"}),
    "iolab-agent": frozenset({"iolab-protocol", "iolab-real", "iolab-kv", "iolab-trace"}),
    "iolab-py": frozenset(
        {"iolab-dialect", "iolab-pattern", "iolab-protocol", "iolab-sim", "iolab-trace"}
    ),
}
"""Crate to the crates it points at."""

CRATES_FOR_TESTS: Final[Picture] = {
    "iolab-sim": frozenset({"iolab-trace"}),  # Laws of traces are tried on simulated ones.
    "iolab-dialect": frozenset({"iolab-drive"}),  # Workload files are run to count their mix.
}
"""Edges that only tests and benches of a crate have (dev-dependencies)."""

PACKAGES: Final[Picture] = {
    "cli": frozenset({"library"}),
    "library": frozenset(
        {
            *("advise", "reproduced", "kernel_checks"),
            *("report", "run", "export", "archive", "imported"),
        }
    ),
    "advise": frozenset(),
    "reproduced": frozenset(),
    "kernel_checks": frozenset(),
    "report": frozenset({"explain"}),
    "explain": frozenset({"stats"}),
    "stats": frozenset({"store"}),
    "store": frozenset({"study"}),
    "archive": frozenset({"store"}),
    "imported": frozenset({"stats"}),
    "export": frozenset({"run", "store"}),
    "run": frozenset({"testbed", "store"}),
    "testbed": frozenset(),
    "study": frozenset(),
}
"""Sub-package of iolab to those it points at; the `SHARED_MODULES` are for everybody."""

ENTRANCES: Final = ("__init__.py", "__main__.py")
"""Modules outside the sub-packages through which one comes in; they may import any."""

SHARED_MODULES: Final = frozenset(
    {
        *("errors", "frozen", "json_text", "protocol", "regular_file"),
        *("deferred_import", "units", "version", "visible", "wording"),
    }
)
CORE_USERS: Final = (
    *("run/", "testbed/", "stats/metrics/"),
    *("study/read_dialect.py", "study/operations.py"),
)
"""Modules that may import the compiled extension."""

PUBLIC_TO_CLI: Final = SHARED_MODULES | {"library"}
"""Modules that `cli` is made of: the library, and the modules for everybody."""
ARGPARSE_USERS: Final = ("cli/",)
"""Modules that read flags; what runs, judges and draws takes typed options."""

AGENT_NAME: Final = "iolab-agent"
AGENT_CLIENTS: Final = ("testbed/agent.py", "testbed/command.py", "testbed/installed.py")
"""The modules that know the privileged program: that talk to it, start it, install it."""


def reachable(picture: Picture, start: str) -> frozenset[str]:
    """Everything that the arrows lead to from `start`."""
    seen: set[str] = set()
    pending = list(picture.get(start, ()))
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend(picture.get(node, ()))
    return frozenset(seen)


def cargo_metadata(root: Path) -> dict[str, Any]:
    """Description of the workspace by cargo; needs no network."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def crate_violations(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Edges between workspace crates that the picture lacks."""
    members = {package["name"] for package in metadata["packages"]}
    for name in sorted(members - set(CRATES)):
        yield f"crate {name} is not in the picture"
    for package in metadata["packages"]:
        name = package["name"]
        allowed = reachable(CRATES, name)
        for dependency in package["dependencies"]:
            used = dependency["name"]
            is_for_tests = dependency["kind"] == "dev"
            is_extra = is_for_tests and used in CRATES_FOR_TESTS.get(name, ())
            if used in members and used not in allowed and not is_extra:
                yield f"{name} ─► {used}" + (" (for tests)" if is_for_tests else "")


def package_violations(package: Path) -> Iterator[str]:
    """Departures of the Python package (the folder `iolab`) from the picture."""
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        tree = parsed(path.read_text(encoding="utf-8"))
        yield from _import_violations(name, tree)
        if name not in AGENT_CLIENTS and _names_agent(tree):
            yield f"{name} names {AGENT_NAME}; only {', '.join(AGENT_CLIENTS)} may"


def cli_violations(package: Path) -> Iterator[str]:
    """Internal modules that `cli` imports, and modules outside it that read flags."""
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        for module in sorted(set(_modules(package, parsed(path.read_text(encoding="utf-8"))))):
            if module == "argparse" and not name.startswith(ARGPARSE_USERS):
                yield f"{name} imports argparse; only {', '.join(ARGPARSE_USERS)} may"
            elif module != "argparse" and name.startswith("cli/"):
                yield f"{name} imports iolab.{module}: use iolab.library, or put it there"


def _modules(package: Path, tree: ast.Module) -> Iterator[str]:
    """`argparse`, and modules below `iolab` other than those that `cli` is made of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [one if _is_module(package, one) else node.module for one in whole]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if name == "argparse":
                yield name
            elif top == "iolab" and rest and rest.partition(".")[0] not in {*PUBLIC_TO_CLI, "cli"}:
                yield rest


def _is_module(package: Path, name: str) -> bool:
    top, *rest = name.split(".")
    place = package.joinpath(*rest)
    return top == "iolab" and (place.with_suffix(".py").exists() or place.is_dir())


def _import_violations(name: str, tree: ast.Module) -> Iterator[str]:
    owner = name.split("/")[0] if "/" in name else ""
    if owner and owner not in PACKAGES:
        yield f"{name}: sub-package {owner} is not in the picture"
        return
    allowed = reachable(PACKAGES, owner) | SHARED_MODULES | {owner}
    for used in sorted(set(_imported(name, tree))):
        if used == "_core":
            if not name.startswith(CORE_USERS):
                yield f"{name} imports iolab._core; only {', '.join(CORE_USERS)} may"
        elif used in PACKAGES and not owner and name not in ENTRANCES:
            yield f"{name} is for everybody and must not import {used}"
        elif used in PACKAGES and owner and used not in allowed:
            yield f"{name}: {owner} ─► {used}"


def _imported(name: str, tree: ast.Module) -> Iterator[str]:
    """First component below `iolab` of everything imported, anywhere in the module."""
    folder = ["iolab", *name.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            modules = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for module in modules:
            parts = module.split(".")
            if parts[0] == "iolab" and len(parts) > 1:
                yield parts[1]


def _names_agent(tree: ast.Module) -> bool:
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and AGENT_NAME in node.value
        and id(node) not in documentation
        for node in ast.walk(tree)
    )
