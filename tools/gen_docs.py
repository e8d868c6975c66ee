"""Writes what is made from code, the reference pages above all, and checks links: `make docs`.

With ``--check`` nothing is written; a page that differs from its source, the index included, or a
broken link is a failure. Python's own tables are imported; the lists of the Rust crates
are read from their source, whose comments are the documentation. Pages written by hand are only
checked. What may be typed for engines and knobs comes from the agent; the pages use what is
installed, so that `make docs` calls this with ``--names`` first and installs the result.
"""

import argparse
import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import library_page
import man_pages
import protocol_types
from registries import AGENT_KNOBS, ENGINES, Registry, rows
from tidy import Tree

ROOT = Path(__file__).resolve().parents[1]
INDEX = "docs/README.md"
HONESTY = "docs/explanation/honesty.md"
MARK = "<!-- All pages; what follows is written by `make docs`. -->"
FINDINGS_BEGIN = "<!-- Findings; written by `make docs` from python/iolab/stats/findings. -->"
FINDINGS_END = "<!-- End of findings. -->"
OPTIONS_MARK = "<!-- All options; what follows is written by `make docs`. -->"
FOLDERS = ("tutorial", "how-to", "reference", "reproduced", "explanation", "design")
NOTE = "<!-- Written by `make docs` from {source}; edit that instead. -->"


def page(title: str, source: str, *blocks: str) -> str:
    """Put a page together."""
    return "\n\n".join([f"# {title}", NOTE.format(source=source), *blocks]) + "\n"


def table(heads: list[str], body: list[list[str]]) -> str:
    """Write a Markdown table."""
    lines = [heads, ["---"] * len(heads), *body]
    return "\n".join(
        "| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines
    )


def names_text() -> str:
    """Names that may be typed for engines and knobs, as the agent prints them."""
    command: Any = importlib.import_module("iolab.testbed.command")
    agent = [str(command.find_agent()), "names"]
    return subprocess.run(agent, capture_output=True, text=True, check=True).stdout


def schemas() -> Any:
    """Types that cross the border, as the agent prints them."""
    command: Any = importlib.import_module("iolab.testbed.command")
    agent = [str(command.find_agent()), "schema"]
    return json.loads(subprocess.run(agent, capture_output=True, text=True, check=True).stdout)


def all_schemas() -> Any:
    """Types that cross the border: those of the agent, and those of the extension."""
    core: Any = importlib.import_module("iolab._core")
    return protocol_types.merged(schemas(), json.loads(core.extension_schema()))


def protocol_page() -> str:
    """The agent's protocol: what is written by hand, then every method and type."""
    by_hand = (ROOT / PROTOCOL_PAGE).read_text(encoding="utf-8")
    return protocol_types.page_text(by_hand, schemas())


def simulated_text() -> str:
    """Properties of a simulated queue, as the simulator's own lists say."""
    core: Any = importlib.import_module("iolab._core")
    titles = {
        name: json.loads(core.sim_profile(name))["title"] for name in core.sim_profile_names()
    }
    tables = {
        "schedulers": json.loads(core.sim_schedulers()),
        "knobs": core.sim_knob_names(),
        "profiles": [{"name": name, "title": title} for name, title in titles.items()],
        **json.loads(core.sim_limits()),
    }
    return json.dumps(tables, indent=2, ensure_ascii=False) + "\n"


def options_page() -> str:
    """Every option of mkfs and mount that a testbed takes."""
    tables: Any = json.loads((ROOT / "python/iolab/study/names.json").read_text(encoding="utf-8"))
    blocks = list[str]()
    for program, title in (("mount", "Mount options"), ("mkfs", "Options for mkfs")):
        blocks.append(f"## {title}")
        body = [
            [
                " or ".join(f"`{name}`" for name in (row["name"], row["alias"]) if name),
                ", ".join(row["fs"]),
                row["values"],
            ]
            for row in tables["options"]
            if row["program"] == program
        ]
        blocks.append(table(["option", "file systems", "value"], body))
    return page(
        "Options for mkfs and mount",
        "crates/iolab-agent/src/testbed/options",
        "What `--mkfs-options` and `--mount-options` take. Everything else is refused by name"
        " (exit code 2): these programs run as root, and no option may name a file, another device"
        " or a subvolume, or stop the machine (`errors=panic`). Whether a value fits the device,"
        " mkfs and the kernel say; older and newer kernels know fewer and more of these.",
        *blocks,
    )


def factors_page() -> str:
    """Everything that can be varied or held."""
    factors: Any = importlib.import_module("iolab.study.factors")
    definitions = [definition for definition in factors.FACTORS if "." not in definition.name]
    dotted = [d for d in factors.FACTORS if "." in d.name and not d.is_of_model]
    heads = ["factor", "levels", "default", "root", "what it is", "also understood"]
    return page(
        "Factors",
        "python/iolab/study/factors.py",
        "What a study can vary (`[factors]`, lists) or hold constant (`[settings]`, single values)."
        " On the command line each is a flag: `record_size` is `--record-size`. A factor marked"
        " *hard* needs a new file system; its levels are randomised as whole plots. Where the"
        " default is empty the machine's own setting stays.",
        table(heads, [_factor_row(definition) for definition in definitions]),
        "## Sysctls and the schedulers' own tunables",
        "Written `SCHEDULER.TUNABLE`; a tunable applies only while its scheduler is active.",
        table(heads[:1] + heads[4:5], [[f"`{d.name}`", d.help] for d in dotted]),
        *_simulated_factors(),
    )


def _simulated_factors() -> list[str]:
    """Factors that a simulated queue has beside or instead of the knobs above."""
    simulated: Any = importlib.import_module("iolab.study.simulated")
    knobs = ", ".join(f"`{name}`" for name in simulated.KNOBS)
    levels = ", ".join(f"`{scheduler.name}`" for scheduler in simulated.SCHEDULERS)
    body = [
        [f"`{s.name}.{t.name}`", t.unit, f"{t.default}", f"{t.min} to {t.max}", t.about]
        for s in simulated.SCHEDULERS
        for t in s.tunables
    ]
    return [
        "## In simulation",
        f"On a `sim` testbed the knobs are {knobs} and the tunables below; none needs root. Levels"
        f" of `scheduler` are {levels}. Defaults are those of a rotational device at 1000 clock"
        " ticks per second.",
        table(["tunable", "unit", "default", "range", "what it is"], body),
    ]


def _factor_row(definition: Any) -> list[str]:
    levels = ", ".join(f"`{choice}`" for choice in definition.choices) or definition.kind.value
    return [
        f"`{definition.name}`" + (" *hard*" if definition.is_hard_to_change else ""),
        levels,
        f"`{definition.default}`" if definition.default else "",
        "yes" if definition.needs_root else "",
        definition.help,
        ", ".join(f"`{alias}`" for alias in definition.aliases),
    ]


def validity_page() -> str:
    """Page about comparisons in alternating slices."""
    validity: Any = importlib.import_module("iolab.study.validity")
    results: Any = importlib.import_module("iolab.study.validity_results")
    body = [
        [
            f"`{row.factor}`" + (f" ({', '.join(row.levels)} only)" if row.levels else ""),
            ", ".join(row.programs),
            ", ".join(row.testbeds),
            ", ".join(f"`{metric}`" for metric in row.metrics),
            row.slices,
            "-" if row.slices == "trials" else row.devices,
            _earned_text(row, results.validity_results()),
            row.why,
        ]
        for row in validity.VALIDITY
    ]
    heads = [
        *("factor", "workload", "testbed", "metric", "compared in", "devices"),
        *("equivalence", "why"),
    ]
    return page(
        "Where alternating slices are valid",
        "python/iolab/study/validity.py",
        "The first row that fits decides; what is in no row gets whole trials. `tests` are IOzone's"
        " tests on an existing file, `streams` are single streams for a fixed time, `contention` is"
        " several streams at once; all with direct I/O, or reading a file whose pages are dropped"
        " before each slice, and with one worker where slices are short. *short*"
        " is 12 to 65 ms (130 ms where a knob is written before each slice); *long* is 0.5 to 2 s,"
        " at least four times the longest time constant of the"
        " schedulers. Devices: *one* for all levels, one that is *switched* before each slice, or"
        " *twins*, a loop device for each set of knobs, exchanged from block to block, or"
        " *images*, one for each file system, made anew for each round. *adjacent* is"
        " for whole trials next to each other (`--design adjacent`). *shown*"
        " means that slices and at least 30 rounds of trials"
        " agreed within the margin by an equivalence test; only such a row is compared in slices"
        " unless `--design pairs` asks for it, and only for the program and testbed it was shown"
        " for. Buffered writes alternate only with an fsync in each slice (`--fsync timed`), and"
        " are never the usual design.",
        table(heads, body),
        "## Tests of equivalence",
        "`make bench-aa VALIDITY=1` (as root) compares slices with whole trials, keeps what it"
        " found in `python/iolab/study/validity_results.json`, and `make docs` writes it here. The"
        " interval is that of the ratio of both ratios: a test is passed where it lies inside the"
        " margin.",
        _results_table(results.validity_results()),
    )


def _earned_text(row: Any, results: Any) -> str:
    """Shown part of a row; a result holds for one program, testbed and metric."""
    own = [
        f"{one.program} on {one.testbed}"
        for one in results
        if one.is_passed
        and one.factor == row.factor
        and one.program in row.programs
        and one.testbed in row.testbeds
        and one.metric in row.metrics
        and one.is_buffered == row.is_of_buffered
    ]
    if row.is_shown:
        return "shown"
    return f"shown: {', '.join(own)}" if own else "not shown"


def _results_table(results: Any) -> str:
    """Tests of equivalence that were made, passed or not."""
    if not results:
        return "None was made with 30 rounds of trials yet."
    heads = [
        *("factor", "workload", "testbed", "metric", "I/O", "slices", "trials"),
        *("slices / trials, 90 % interval", "margin", "p", "rounds", "less variance", "result"),
    ]
    body = [
        [
            f"`{one.factor}` ({one.levels})",
            one.program,
            one.testbed,
            f"`{one.metric}`",
            "buffered" if one.is_buffered else "direct",
            f"{one.ratio_slices:.4f}",
            f"{one.ratio_trials:.4f}",
            f"{one.low:.4f} to {one.high:.4f}",
            f"{one.margin:.0%}",
            "-" if one.p_equivalent is None else f"{one.p_equivalent:.2g}",
            str(one.rounds),
            f"{one.variance_ratio:.3g} times",
            f"{one.word} ({one.date}, Linux {one.kernel})",
        ]
        for one in results
    ]
    return table(heads, body)


def requirements_page() -> str:
    """Requirements that somebody published, and what was left out."""
    requirements: Any = importlib.import_module("iolab.study.requirements")
    texts: Any = importlib.import_module("iolab.library.check_text")
    blocks = list[str]()
    for one in requirements.REQUIREMENTS:
        blocks += [f"## `{one.name}`", f"`iolab check --for {one.name}`: {one.about}."]
        body = [
            [texts.required_text(criterion), criterion.what, f"`{criterion.operation}`"]
            for criterion in one.criteria
        ]
        blocks.append(table(["required", "measured", "phase"], body))
        blocks.append(f"Job: `fio {one.job}`, where `{{runtime}}` is a share of `--time`.")
        found = [[f"<{s.url}>", s.says, s.noted_on] for s in one.sources]
        blocks.append(table(["source", "what it says", "noted on"], found))
        blocks.append(f"Differs from the source: {one.differs}.")
    return page(
        "Requirements",
        "python/iolab/study/requirements",
        "What [`iolab check`](../how-to/check-a-directory.md) knows: one file and one row per"
        " requirement. Each limit is that of a public document, which is cited.",
        *blocks,
        "## Left out",
        "Documents that give a number of operations per second, but neither their size, their"
        " depth nor whether they are flushed (Consul, Vault); thresholds of a warning in a log"
        " (ZooKeeper: 1 s); limits behind a login (SAP HANA); figures per processor"
        " (CockroachDB).",
    )


def metrics_page() -> str:
    """The quantities that are judged and shown."""
    metrics: Any = importlib.import_module("iolab.stats.metrics")
    body = [
        [
            f"`{metric.name}`",
            metric.unit,
            "higher" if metric.is_higher_better else "lower",
            metric.role,
            metric.about,
        ]
        for metric in metrics.METRICS
    ]
    heads = ["metric", "stored in", "better is", "role", "what it is"]
    return page(
        "Metrics",
        "python/iolab/stats/metrics",
        "The first *primary* metric that a workload has carries its verdict; *secondary* ones are"
        " judged beside it for trade-offs; the others are shown only.",
        table(heads, body),
    )


def methods_page() -> str:
    """The statistical procedures."""
    methods: Any = importlib.import_module("iolab.stats.methods")
    body = [
        [f"`{method.name}`", method.does, method.used_for, method.source]
        for method in methods.METHODS
    ]
    return page(
        "Statistical methods",
        "python/iolab/stats/methods",
        "Methods of the *verdict* decide the words; those of the *closer look* stand beside them in"
        " the report and never change one; those for *planning* serve `iolab plan`, `iolab aa` and"
        " studies that look before their end.",
        table(["method", "what it does here", "used for", "source"], body),
        "## How often these are wrong",
        "`make bench-verdicts` (`python benches/verdicts.py`) simulates whole studies with known"
        " truth and prints the table: false positives of A/A studies under drift, autocorrelation"
        " and outliers beside those of the naive order AAAAABBBBB; coverage; power at the planned"
        " number of rounds; and how often `same` is wrong. It fails if a bound is missed. A quick"
        " form runs with the tests (`tests/stats/test_bench.py`). What the columns mean and what"
        " came out is in"
        " [how often verdicts are wrong](../explanation/how-often-verdicts-are-wrong.md).",
    )


def findings_page() -> str:
    """Every kind of finding: how severe it is, what it is about, where it is shown."""
    finding: Any = importlib.import_module("iolab.stats.finding")
    findings: Any = importlib.import_module("iolab.stats.findings")
    body = [
        [
            f"[`{kind.name}`](../explanation/honesty.md#{kind.anchor})",
            kind.severity,
            finding.WEIGHTS[kind.rank] if kind.is_listed else "",
            kind.scope,
            "list" if kind.is_listed else f'block "{kind.title}"',
            "judging" if kind.find or kind.derive else "recorded",
        ]
        for kind in findings.FINDINGS
    ]
    shown = [
        [severity, *("yes" if where in places else "" for where in finding.FORMATS)]
        for severity, places in finding.SHOWN.items()
    ]
    return page(
        "Findings",
        "python/iolab/stats/findings",
        "What a study says beside its verdict. *Severity* decides where a finding is shown."
        " *Weight* decides the place of a caveat in every list. First come those by which the"
        " verdict is about something else than was asked (`meaning`), then those by which levels"
        " were not measured alike, or too seldom (`comparison`), then doubts about single `values`,"
        " then mere `information`. The short answer of the terminal names all caveats of the first"
        " two weights, and may count others. A finding that is *recorded* comes from the plan, the"
        " agent, the simulator, the store or an imported table. The others come from judging. When"
        " each is seen, and what to do, is in [honesty](../explanation/honesty.md).",
        table(["severity", *finding.FORMATS], shown),
        table(["finding", "severity", "weight", "about a", "shown as", "comes from"], body),
    )


def honesty_page() -> str:
    """The explanation of doubts: written by hand but for the table of each section."""
    findings: Any = importlib.import_module("iolab.stats.findings")
    text = (ROOT / HONESTY).read_text(encoding="utf-8")
    for section in findings.SECTIONS:
        begin = text.index(FINDINGS_BEGIN, text.index(f"\n## {section}\n"))
        end = text.index(FINDINGS_END, begin)
        body = [
            [f"`{kind.name}`", kind.seen, kind.advice]
            for kind in findings.FINDINGS
            if kind.section == section
        ]
        rows = table(["code", "seen when", "what to do"], body)
        text = f"{text[:begin]}{FINDINGS_BEGIN}\n{rows}\n{text[end:]}"
    return text


def charts_page() -> str:
    """The pictures of a report."""
    charts: Any = importlib.import_module("iolab.report.charts")
    blocks = []
    for chart in charts.CHARTS:
        where = (
            f"HTML and the sheet `{chart.sheet}` of the workbook" if chart.sheet else "HTML only"
        )
        text = _docstring(f"iolab.report.charts.{chart.name}")
        blocks.append(f"## `{chart.name}`\n\n{text}\n\nDrawn in: {where}.")
    return page("Charts", "python/iolab/report/charts", *blocks)


def _docstring(module: str) -> str:
    text = inspect.getdoc(importlib.import_module(module)) or ""
    return " ".join(text.split("\n\n")[0].split())


def rust_list_page(title: str, registry: Registry, intro: str) -> Callable[[], str]:
    """Page of one list of a Rust crate: its modules' headers, or else its rows' comments."""

    def generate() -> str:
        text = (ROOT / registry.file).read_text(encoding="utf-8")
        blocks = [_rust_section(registry, text, row) for row, _ in rows(registry, text) or []]
        return page(title, registry.file, intro, *blocks)

    return generate


def _rust_section(registry: Registry, text: str, row: str) -> str:
    header = re.search(rf"((?:^\s*///.*\n)*)^\s*\w+\s*=\s*\"{re.escape(row)}\"", text, re.MULTILINE)
    comment = re.sub(r"^\s*/// ?", "", header[1], flags=re.MULTILINE).strip() if header else ""
    module = (ROOT / registry.file).with_name(registry.module_of(row) + ".rs")
    about = ""
    if module.is_file():
        lines = re.findall(r"^//! ?(.*)$", module.read_text(encoding="utf-8"), re.MULTILINE)
        about = re.sub(r"\[(`[^`\]]+`)\](\([^)]*\))?", r"\1", "\n".join(lines)).strip()
    return f"## `{row}`\n\n{about or comment}{_example(row)}"


def _example(row: str) -> str:
    """Command line that compares two values of a knob, or nothing."""
    names: Any = importlib.import_module("iolab.study.names")
    factors: Any = importlib.import_module("iolab.study.factors")
    for knob in names.KNOBS:
        if knob.name == row:
            definition, levels = factors.find_factor(row), ",".join(knob.example)
            flag = f"{definition.flag} " if definition.has_own_flag else f"--knob {row}="
            return f"\n\nFor example: `{flag}{levels}`."
    return ""


def cli_page() -> str:
    """Every subcommand's flags, from the parsers themselves."""
    main: Any = importlib.import_module("iolab.cli.main")
    parsers: Any = importlib.import_module("iolab.cli.all_parsers")
    commands = [[f"[`{name}`](#iolab-{name})", text] for name, _, text in main.COMMANDS]
    blocks = [f"```text\n{main.EXAMPLES}\n```", table(["command", "what it does"], commands)]
    for _, module, _ in main.COMMANDS:
        blocks.append(_parser_section(parsers.command_parser(module)))
        blocks += [_parser_section(one, "###") for one in parsers.subject_parsers(module).values()]
    return page("Command line", "python/iolab/cli", *blocks)


def _parser_section(parser: argparse.ArgumentParser, mark: str = "##") -> str:
    """One table per group: unlike the text of `--help` the same under every Python."""
    blocks = [f"{mark} `{parser.prog}`", f"{(parser.description or '').rstrip(' .')}."]
    for title, options in man_pages.groups(parser):
        body = [[_option_text(a), _option_help(parser, a)] for a in options]
        blocks += [f"**{title}**", table(["option", "meaning"], body)]
    return "\n\n".join(blocks)


def _option_text(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return f"`{metavar}`"
    value = "" if action.nargs == 0 else f" {metavar}"
    return ", ".join(f"`{flag}{value}`" for flag in action.option_strings)


def _option_help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return " ".join((action.help or "").split()) % {**vars(action), "prog": parser.prog}


def version() -> str:
    """Version of iolab, as in Cargo.toml."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    return str(manifest["workspace"]["package"]["version"])


def index_page(root: Path = ROOT) -> str:
    """The index: what is written by hand, then every page by its title."""
    index = root / INDEX
    by_hand = index.read_text(encoding="utf-8").partition(MARK)[0].rstrip()
    blocks = [by_hand, MARK]
    for folder in FOLDERS:
        found = (index.parent / folder).glob("*")
        pages = sorted(path for path in found if path.suffix in (".md", ".ipynb"))
        lines = [f"- [{_title(path)}]({folder}/{path.name})" for path in pages]
        if lines:
            blocks += [f"## {folder.capitalize()}", "\n".join(lines)]
        for inner in sorted(path for path in (index.parent / folder).glob("*") if path.is_dir()):
            place = inner.relative_to(index.parent).as_posix()
            names = sorted(path.name for path in inner.glob("*.md"))
            links = [f"[{name.removesuffix('.md')}]({place}/{name})" for name in names]
            title = "Command lines of" if inner.name == "dialects" else f"Simulated {inner.name}:"
            blocks.append(f"{title} {', '.join(links)}.")
    return "\n\n".join(blocks) + "\n"


def dialect_page(name: str, stem: str = "") -> str:
    """A dialect's page: what is written by hand, then every option by its row."""
    core: Any = importlib.import_module("iolab._core")
    path = ROOT / f"docs/reference/dialects/{stem or name}.md"
    by_hand = path.read_text(encoding="utf-8").partition(OPTIONS_MARK)[0].rstrip()
    options = core.dialect_reference(name).strip()
    return f"{by_hand}\n\n{OPTIONS_MARK}\n\n{options}\n"


def _title(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    text = notebook_text(text) if path.suffix == ".ipynb" else text
    return text.partition("\n")[0].removeprefix("# ")


NAMES: dict[str, Callable[[], str]] = {
    "python/iolab/study/names.json": names_text,
    "python/iolab/study/simulated.json": simulated_text,
    "python/iolab/protocol.py": lambda: protocol_types.module_text(all_schemas()),
}
PROTOCOL_PAGE = "docs/reference/agent-protocol.md"
SCHEMA = "python/iolab/report/verdict.schema.json"


def reproduced_page(key: str) -> str:
    """A published document's numbers beside the simulated ones; simulates them."""
    reproducing: Any = importlib.import_module("iolab.library.reproducing")
    return reproducing.page_of(key)


PAGES: dict[str, Callable[[], str]] = {
    **NAMES,
    "docs/reference/verdict.schema.json": lambda: (ROOT / SCHEMA).read_text(encoding="utf-8"),
    PROTOCOL_PAGE: protocol_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/factors.md": factors_page,
    "docs/reference/mkfs-and-mount-options.md": options_page,
    "docs/reference/metrics.md": metrics_page,
    "docs/reference/requirements.md": requirements_page,
    "docs/reference/validity.md": validity_page,
    "docs/reference/methods.md": methods_page,
    "docs/reference/charts.md": charts_page,
    "docs/reference/findings.md": findings_page,
    HONESTY: honesty_page,
    "docs/reference/library.md": lambda: page("Library", "python/iolab", *library_page.blocks()),
    "docs/reference/engines.md": rust_list_page(
        "Engines",
        ENGINES,
        "How operations are submitted to the running kernel: `--engine NAME`.",
    ),
    "docs/reference/knobs.md": rust_list_page(
        "Knobs",
        AGENT_KNOBS,
        "The settings of the machine that the agent may change, each recorded before, verified"
        " after, and put back. Nothing outside this list is ever written.",
    ),
    "docs/reference/dialects/iozone.md": lambda: dialect_page("iozone"),
    "docs/reference/dialects/bonnie.md": lambda: dialect_page("bonnie++", "bonnie"),
    "docs/reference/dialects/mkfile.md": lambda: dialect_page("mkfile"),
    "docs/reference/dialects/filebench.md": lambda: dialect_page("filebench"),
    "docs/reference/dialects/fio.md": lambda: dialect_page("fio"),
    "docs/reference/dialects/ycsb.md": lambda: dialect_page("ycsb"),
    **man_pages.man_pages(version()),
    **{f"docs/reproduced/d{n}.md": partial(reproduced_page, f"d{n}") for n in range(1, 6)},
    INDEX: index_page,
}

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def broken_links(root: Path) -> Iterator[str]:
    """Relative links of all Markdown files that lead nowhere, headings included."""
    tree = Tree(root)
    cells = {name: notebook_text(text) for name, text in tree.texts({".ipynb"}).items()}
    for name, text in {**tree.texts({".md"}), **cells}.items():
        for target in _LINK.findall(_FENCE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (root / name).parent / path if path else root / name
            if not file.exists():
                yield f"{name}: broken link {target}"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                yield f"{name}: no heading for {target}"


def notebook_text(text: str) -> str:
    """The Markdown of a notebook, without its code."""
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


def anchors(file: Path) -> set[str]:
    """Anchors that headings of a Markdown file get."""
    text = _FENCE.sub("", file.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+\s+(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


def drifted_pages(root: Path, pages: dict[str, Callable[[], str]], is_check: bool) -> Iterator[str]:
    """Pages that differ from their source; unless checking, they are written."""
    for name, generate in pages.items():
        path, text = root / name, generate()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if is_check:
            yield f"{name}: differs from its source; run `make docs`"
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"docs: wrote {name}")


def main() -> int:
    """Write or check; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description="reference pages from code, and links")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on drift")
    parser.add_argument("--names", action="store_true", help="only the names of engines and knobs")
    arguments = parser.parse_args()
    if arguments.names:
        return len(list(drifted_pages(ROOT, NAMES, arguments.check)))
    problems = [
        *drifted_pages(ROOT, PAGES, arguments.check),
        *broken_links(ROOT),
    ]
    for problem in problems:
        print(problem)
    print(f"docs: {len(PAGES)} generated pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
