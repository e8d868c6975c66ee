"""The reference page of the library, from the docstrings of `iolab.__all__`: part of `make docs`.

Docstrings are in numpy's form: a summary, paragraphs, and sections such as *Parameters* whose
entries read ``name : text``. Every public object, and every public member of a public class, has
one; what has none is an error.
"""

import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final

INTRO: Final = """\
`import iolab` offers the names below; everything else is internal. It loads nothing but the
exceptions until a name is used. All functions can be called from any thread and sent to worker
processes; none of them prints or asks. Sizes are in bytes, times in nanoseconds, unless a name or a
unit says otherwise. [The notebook](../tutorial/notebook.ipynb) uses all of it."""
ORDER: Final = (
    "Study",
    "run",
    "ProgressBar",
    "open",
    "Result",
    "Chart",
    "simulate",
    "SimulatedTrial",
    "Progress",
)
"""Names in the order of use; the others follow."""
CONSTRUCTED: Final = ("Study", "ProgressBar", "StopSwitch")
"""Classes whose objects a program makes; those of others come from functions."""
INTERNAL: Final = ("StopSwitch.wake", "StopSwitch.fileno", "StopSwitch.drain")
"""Members that the runner calls."""
_SECTION: Final = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ROLE: Final = re.compile(r":(?:func|class|meth|attr):`(?:~[\w.]+\.)?([\w.]+)`")
_PAGE: Final = re.compile(r"`docs/reference/([\w-]+)\.md`")
_ENDING: Final = ".md"
_LITERAL: Final = re.compile(r"``(.+?)``")


def blocks() -> list[str]:
    """Introduction, then one chapter per public name."""
    package: Any = importlib.import_module("iolab")
    names = [*ORDER, *(name for name in package.__all__ if name not in ORDER)]
    objects = {name: getattr(package, name) for name in names}
    errors = [name for name in names if _is_error(objects[name])]
    chapters = [_chapter(name, objects[name]) for name in names if name not in errors]
    tree = "\n".join(f"- `{name}`: {_summary(objects[name])}" for name in errors)
    about = "All have a `message` (what failed, on what) and a `hint` (what to do)."
    return [INTRO, *chapters, f"## Errors\n\n{about}\n\n{tree}"]


def _is_error(it: Any) -> bool:
    return isinstance(it, type) and issubclass(it, Exception)


def _summary(it: Any) -> str:
    return markdown(documentation(it).partition("\n\n")[0])


def _chapter(name: str, it: Any) -> str:
    kind = "class" if isinstance(it, type) else "function"
    shown = signature(it) if kind == "function" or name in CONSTRUCTED else ""
    parts = [f"## `{name}`", f"*{kind}* `iolab.{name}{shown}`", sections(it)]
    if isinstance(it, type):
        parts += [f"### `{name}.{member}`\n\n{text}" for member, text in members(it)]
    return "\n\n".join(parts)


def members(cls: type) -> Iterator[tuple[str, str]]:
    """Public members of a class in the order of its source, each with its text."""
    for name, it in vars(cls).items():
        if name.startswith("_") or f"{cls.__name__}.{name}" in INTERNAL:
            continue
        if isinstance(it, property | cached_property):
            function: Any = it.fget if isinstance(it, property) else it.func
            kind = f"*property*: `{annotation(inspect.signature(function).return_annotation)}`"
        elif isinstance(it, classmethod):
            function = it.__func__
            kind = f"*class method* `{cls.__name__}.{name}{signature(function)}`"
        elif inspect.isfunction(it):
            function = it
            kind = f"*method* `{name}{signature(function)}`"
        else:
            continue
        yield name, f"{kind}\n\n{sections(function)}"


def signature(it: Callable[..., Any]) -> str:
    """Parameters and result as they are written, without `self`."""
    found = inspect.signature(it)
    given = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    shown = inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in given])
    result = found.return_annotation
    is_silent = isinstance(it, type) or result is inspect.Signature.empty
    return str(shown) + ("" if is_silent else f" -> {annotation(result)}")


def annotation(it: Any) -> str:
    """A type as it is written in the source."""
    return it if isinstance(it, str) else getattr(it, "__name__", str(it))


def documentation(it: Any) -> str:
    """Docstring of a public object.

    Raises
    ------
    ValueError : it has none.
    """
    text = inspect.getdoc(it)
    if not text:
        raise ValueError(f"{getattr(it, '__qualname__', it)} has no docstring")
    return text


def sections(it: Any) -> str:
    """A docstring as Markdown; entries of its sections become lists."""
    text = documentation(it)
    lead, *rest = _SECTION.split(text)
    parts = [markdown(lead.strip())]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        parts.append(f"**{title}**\n\n{entries(body)}")
    return "\n\n".join(part for part in parts if part)


def entries(body: str) -> str:
    """``name : text`` with indented further lines, as a list."""
    lines = list[str]()
    for line in textwrap.dedent(body).strip("\n").splitlines():
        name, colon, text = line.partition(" : ")
        if line.startswith(" "):
            lines.append("  " + markdown(line.strip()))
        elif colon:
            lines.append(f"- `{name}`: {markdown(text)}")
        else:
            lines.append(f"- {markdown(line)}")
    return "\n".join(lines)


def markdown(text: str) -> str:
    """Text of a docstring as Markdown."""
    text = _PAGE.sub(lambda page: f"[{page[1]}]({page[1]}{_ENDING})", text)
    return _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", text))
