"""Public type names: each has one meaning, whoever declares it.

A name counts as public in Rust if its crate exports it (its modules are `pub`, or a `pub use` names
it), and in Python if a module declares it without an underscore. Where a name is declared in more
than one place, `REPEATS` says why; the words themselves are explained in
`docs/reference/glossary.md`.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from python_source import parsed
from rust_source import RustSource

_TYPE = re.compile(r"^\s*pub (?:struct|enum|trait|union) (\w+)", re.MULTILINE)
_PUBLIC_MODULE = re.compile(r"^\s*pub mod (\w+)\s*;", re.MULTILINE)
_PUBLIC_USE = re.compile(r"^\s*pub use ([^;]+);", re.MULTILINE)

BORDER = "python/iolab/protocol.py"
"""Module that `make docs` writes from the types of Rust."""
EXTENSION = "python/iolab/library/extension_types.py"
"""Answers of the extension, until the border declares them."""


def exported_types(sources: Mapping[str, RustSource]) -> Iterator[tuple[str, str, int]]:
    """Types that library crates export, as (name, path, line)."""
    exports = {name: _exports(sources, name) for name in sources if name.endswith("/src/lib.rs")}
    for path, source in sources.items():
        root = re.match(r"crates/[\w-]+/src/", path)
        if root is None or f"{root[0]}lib.rs" not in exports:
            continue
        modules, named = exports[f"{root[0]}lib.rs"]
        is_public = _module_of(path, root[0]) in modules
        for match in _TYPE.finditer(source.code):
            line = source.code.count("\n", 0, match.start(1)) + 1
            if line not in source.test_lines and (is_public or match[1] in named):
                yield match[1], path, line


def _module_of(path: str, root: str) -> tuple[str, ...]:
    parts = PurePosixPath(path.removeprefix(root)).with_suffix("").parts
    return tuple(part for part in parts if part not in ("lib", "mod"))


def _exports(
    sources: Mapping[str, RustSource], library: str
) -> tuple[set[tuple[str, ...]], set[str]]:
    """Modules that are public from the root on, and names that a `pub use` exports."""
    root = library.removesuffix("lib.rs")
    files = {_module_of(path, root): s for path, s in sources.items() if path.startswith(root)}
    modules, pending, named = set[tuple[str, ...]](), [tuple[str, ...]()], set[str]()
    while pending:
        module = pending.pop()
        if module in modules or module not in files:
            continue
        modules.add(module)
        code = files[module].code
        pending += [(*module, name) for name in _PUBLIC_MODULE.findall(code)]
        for use in _PUBLIC_USE.findall(code):
            named |= set(re.findall(r"\b[A-Z]\w*\b", use))
    return modules, named


def declared_classes(texts: Mapping[str, str]) -> Iterator[tuple[str, str, int]]:
    """Classes that modules of the package declare, as (name, path, line).

    Those of the border are Rust's own, written anew.
    """
    for path, text in texts.items():
        if path.startswith("python/iolab/") and path not in (BORDER, EXTENSION):
            for node in parsed(text).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name, path, node.lineno


_FAMILY = "each dialect, device or volume has its own, and code outside sees one of them at a time"
_BOTH = "declared in Rust; Python's is made from a study file, before there is anything to send"

REPEATS: Mapping[str, str] = {
    # The same meaning.
    "Dialect": _BOTH,
    "Event": _FAMILY,
    "Geometry": _FAMILY,
    "Parameters": _FAMILY,
    "PhaseResult": _FAMILY,
    "Nature": _BOTH,
    "Priority": _BOTH,
    "RowResult": _FAMILY,
    "Segment": _FAMILY,
    "Show": _FAMILY,
    "Study": "the public class holds the checked one, and is made of Python values",
    "Typed": _FAMILY,
    "WorkerResult": _FAMILY,
    # Two meanings: one of them is to be renamed, as the comment says.
    "Accepted": "ops of a batch; bytes that a device may be worn by (`AcceptedWrites`)",
    "Answer": "the first screen's columns (`AnswerColumns`); what a rule says",
    "Asked": "of a plan, as data; what adds that to a trial (`AskedAttendant`)",
    "Birth": "identity of a file in the engines; the same with an instant, in the store",
    "Book": "of the blocks of a file (`BlockBook`); a workbook's sheets",
    "Bounds": "with a meaning for tables (`closer`); of a location estimate",
    "Burst": "IOzone's option; the pace that it lowers to",
    "Cell": "one as judged, in a chart; a field of bonnie++'s CSV (`CsvField`)",
    "Command": "a disk's command in its queue; IOzone's options as a report prints them",
    "Course": "drawn (`DrawnCourse`); stored",
    "Device": "of a scheduler scenario (`ScenarioDevice`); as the agent found it",
    "Direction": "of data in a request; of a stream (`Mix`)",
    "Entry": "of a chart (`MapEntry`); a workload as a study file describes it",
    "Findings": "of a verifying lane (`Mismatches`); of a probe (`ProbeFindings`)",
    "Forecast": "of verdicts, as a text; of what is written (`WriteForecast`)",
    "Given": "an option on a command line; a parameter in a stack file (`GivenParameter`)",
    "Line": "of a CSV file; of a fit (`FittedLine`), in both languages",
    "Method": "statistical; of finding residency; of writing parity (`ParityMethod`)",
    "Observer": "of a timed region; of a run",
    "Operation": "of a trace event, of a bio (`BioKind`): of a workload in the glossary",
    "Origin": "of a table (`TableFile`); of a study",
    "Part": "a phase with what is known of its files (`PhasePart`); IOzone's side part",
    "Recorded": "a stream that a program repeats (`RecordedProgram`); IOzone's telemetry",
    "Place": "of anything in eight files: of a file set in the glossary",
    "Plan": "of a dialect's command line (`CommandPlan`); of a study",
    "Point": "of a fit; of a chart",
    "Reader": "of parameters (`ParameterReader`); of study tables",
    "Row": "of dialects, flash, recordings and tables: each inside its module",
    "Series": "over time; of a chart (`ChartSeries`)",
    "Size": "an option; of a row",
    "Source": "of random numbers; of a file's text; of a study's keys (`KeySource`)",
    "Standing": "of an option; of a level among winners",
    "Step": "of a worker, of flash collection, of a ladder: of a program in the glossary",
    "Stream": "of random numbers (`SeedStream`); of a mixed workload",
    "Table": "of a dialect's sizes; imported; of a chart (`ChartTable`)",
    "Transfer": "an op; sectors of one member of a volume (`MemberTransfer`)",
    "Unit": "of results; of a tunable",
    "Value": "of a report, of a profile, of an imported table: each inside its module",
    "WriteCache": "what a device promises; a disk's dirty data",
    "Action": "of a trace event: simulated; recorded",
    "Cache": "state of the page cache that a trial asks for; of a flash drive",
    "Check": "of the doctor; of a plausible result",
    "DeviceSpec": "what a device testbed is opened with; a simulated device",
    "Hello": "the request; what the front end keeps of its answer (`Greeted`)",
    "KnobChange": _BOTH,
    "Mark": "a knob that was changed; a file that was made (`FileMark`)",
    "Progress": "of a request of the agent; of a study, as it is shown",
    "Request": "of the agent; of the block layer",
    "Simulation": "what a record keeps of it; the simulation itself",
    "Stack": "of a trial; of a simulated device",
    "Alike": "declared in Rust, read in Python",
    "Amount": "of a step; of fio's options; of a trace; of a report's conditions",
    "Caveat": "of a study; of a trace that was read",
    "CellGroup": "shared state of workers; cells that agree",
    "Column": "of a table of events; of iostat; of a workbook's chart",
    "Cursor": "of a place in a file; in a line of text",
    "Disk": "a simulated drive; a line of fio's disk statistics",
    "Engine": "of the kernel; as fio calls it",
    "Error": "of each library",
    "Figures": "of a recording; of iostat",
    "Format": "of a trace file; of fio's output; of a line of blkparse",
    "Group": "of steps; of requests of a trace",
    "Host": "what a dialect knows of the machine: fio's, bonnie++'s",
    "Limit": "of a tenant; of a target",
    "Output": "of a conversion; of fio",
    "Pace": "of a program; of a campaign",
    "Places": "of records in a file; of fio's jobs",
    "Possible": "declared in Rust, read in Python",
    "Problem": "of a command line; of a place in a workload's description",
    "Program": "of a workload's steps; fio as it was called",
    "Ranges": "of a volume's members; of times of a trace",
    "Reading": "of an imported table; of disk counters",
    "Refusal": "declared in Rust, read in Python",
    "Side": "side files of IOzone; a direction of fio's results",
    "Stage": "of a phase's programs; of a request's way",
    "Takes": "what an option takes: of the table of options, of fio's",
    "Work": "of a flash die; of one of fio's jobs",
    "Writer": "of each format of traces",
    "Zone": "of a disk; of a distribution of places",
}
"""Names that are declared more than once, with the reason why that is so."""
