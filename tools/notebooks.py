"""Runs the notebooks under `docs/` and keeps their outputs: `make docs`, also a test.

Code cells run in order in one namespace, in an empty directory. What a cell prints and the value of
its last expression become its outputs, as a notebook server would store them. Everything that the
notebooks do is simulated and has a seed, so that outputs are the same every time. Two tags of a
cell say otherwise: `varies` (only the kinds of its outputs are compared) and `pandas` (left out
where pandas is not installed).
"""

import argparse
import ast
import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
NOTEBOOKS: Final = ("docs/tutorial/notebook.ipynb",)
Cell = dict[str, Any]
_RICH: Final = (("text/html", "_repr_html_"),)
"""Kinds of output beside plain text, and the methods that give them."""


def code_cells(notebook: dict[str, Any]) -> list[Cell]:
    """Cells to run; those that need what is not installed are left out."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    has_pandas = importlib.util.find_spec("pandas") is not None
    return [cell for cell in cells if has_pandas or "pandas" not in tags(cell)]


def tags(cell: Cell) -> list[str]:
    """Tags of a cell."""
    return list(cell.get("metadata", {}).get("tags", []))


def executed(notebook: dict[str, Any]) -> Iterator[tuple[Cell, list[Cell]]]:
    """Each code cell with its outputs; runs them in the working directory."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook), start=1):
        source = "".join(cell["source"])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            value = run_cell(source, f"cell {number}", namespace)
        outputs = list[Cell]()
        if printed.getvalue():
            outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue()})
        if value is not None:
            outputs.append(
                {
                    "data": shown(value),
                    "execution_count": number,
                    "metadata": {},
                    "output_type": "execute_result",
                }
            )
        yield cell, outputs


def run_cell(source: str, name: str, namespace: dict[str, Any]) -> Any:
    """Value of the last expression of a cell, None if it ends with a statement."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), name, "eval"), namespace)


def shown(value: Any) -> dict[str, str]:
    """A value in every kind that it can be shown in."""
    data = {"text/plain": repr(value)}
    for kind, method in _RICH:
        if hasattr(value, method):
            data[kind] = getattr(value, method)()
    return data


def differences(notebook: dict[str, Any]) -> Iterator[str]:
    """Cells whose outputs are not the stored ones, with what they are now."""
    yield from compared(executed(notebook))


def compared(found: Iterable[tuple[Cell, list[Cell]]]) -> Iterator[str]:
    """Those of the executed cells whose outputs are not the stored ones."""
    for number, (cell, outputs) in enumerate(found, start=1):
        stored, now = kinds(cell["outputs"]), kinds(outputs)
        if "varies" not in tags(cell):
            stored, now = texts(cell["outputs"]), texts(outputs)
        if stored != now:
            yield f"code cell {number}: stored {stored}, now {now}"


def kinds(outputs: list[Cell]) -> list[Any]:
    """Kinds of output that occur."""
    return [sorted(output.get("data", {"text": ""})) for output in outputs]


def texts(outputs: list[Cell]) -> list[str]:
    """Plain texts of the outputs."""
    found = [output.get("data", {}).get("text/plain", output.get("text", "")) for output in outputs]
    return ["".join(text) for text in found]


def write(path: Path) -> None:
    """Run a notebook and store its outputs."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for number, (cell, outputs) in enumerate(executed(notebook), start=1):
        cell["outputs"] = [_as_lines(output) for output in outputs]
        cell["execution_count"] = number
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def _as_lines(output: Cell) -> Cell:
    """The same output, with texts as lists of lines: a change is a change of few lines."""
    if "text" in output:
        return {**output, "text": output["text"].splitlines(keepends=True)}
    data = {kind: text.splitlines(keepends=True) for kind, text in output["data"].items()}
    return {**output, "data": data}


def main() -> int:
    """Write or check; 1 if an output differs."""
    parser = argparse.ArgumentParser(description="run the notebooks")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    is_check = parser.parse_args().check
    found = list[str]()
    for name in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            if is_check:
                notebook = json.loads((ROOT / name).read_text(encoding="utf-8"))
                found += [f"{name}: {text}" for text in differences(notebook)]
            else:
                write(ROOT / name)
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "80")
    sys.exit(main())
