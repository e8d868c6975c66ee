"""Every rule of `tools/tidy.py` can fail; `make tidy` holds the repository to them."""

from pathlib import Path

import pytest

import registries
import tidy
import type_names
from rust_source import RustSource

ROOT = Path(__file__).parents[1]


LONG_RUST = "fn long() {\n" + "    let _ = 1;\n" * 69 + "}\n"
LONG_PYTHON = "def long():\n" + "    pass\n" * 70
DOCUMENTED_PYTHON = 'def long():\n    """Say.\n' + "\n" * 80 + '    """\n'
SIX = "a: u8, b: u8, c: u8, d: u8, e: u8, f: u8"
REAL = "crates/iolab-real/src/"
SIM = "crates/iolab-sim/src/"
DRIVE = "crates/iolab-drive/src/"
MEASURE = "crates/iolab-agent/src/measure/"
TIMED = "fn f() {\n    let begin = monotonic();\n    fs::remove_file(path);\n}\n"
COUNTED = "use crate::Recorder;\nfn f() { fs::remove_file(path); }\n"
MARK = "TO" + "DO"
HOME = "/ho" + "me/alice/data"

TWICE_RUST = "pub struct Shape;\npub enum Shape {}\n"
TWICE_PYTHON = "class Shape: ...\n\n\nclass Shape: ...\n"
RIDDLE = 'class A:\n    def f(self):\n        """Say what it is about."""\n'

# Rule, path, contents, and the message that is expected (None: nothing).
CASES = [
    (tidy.function_size, SIM + "a.rs", LONG_RUST, "`long` has 71 lines"),
    (tidy.function_size, SIM + "a.rs", LONG_RUST.replace("let _", "//{", 30), "`long` has 71"),
    (tidy.function_size, "python/a.py", LONG_PYTHON, "`long` has 71 lines"),
    (tidy.function_size, "python/a.py", DOCUMENTED_PYTHON, None),
    (tidy.function_size, SIM + "a.rs", f"fn f({SIX}) {{}}", "`f` takes 6 parameters"),
    (tidy.function_size, SIM + "a.rs", "fn f(&self, a: M<u8, u8>, b: (u8, u8, u8)) {}", None),
    (tidy.function_size, "python/a.py", "def f(a, b, c, d, e, f): ...", "`f` takes 6"),
    (tidy.function_size, "python/a.py", "def f(self, a, b, c, d, e, *, f): ...", None),
    (tidy.line_length, SIM + "a.rs", "x" * 101, "101 columns"),
    (tidy.line_length, "python/a.py", "é" * 100, None),
    (tidy.file_size, SIM + "a.rs", "//\n" * 801, "801 lines without tests"),
    (tidy.file_size, SIM + "a.rs", "#[cfg(test)]\nmod tests {\n" + "\n" * 801 + "}\n", None),
    (tidy.file_size, "crates/iolab-sim/tests/a.rs", "//\n" * 801, None),
    (tidy.file_size, "tests/data.txt", "x" * 200_001, "larger than 200000 bytes"),
    (
        tidy.lists_only,
        SIM + "fs/mod.rs",
        "//! Doc.\nmod a;\npub use a::{A, B};\nx::l! { A, }",
        None,
    ),
    (tidy.lists_only, SIM + "fs/mod.rs", "mod a;\n\npub struct B;\n", "not a list: pub struct B;"),
    (tidy.lists_only, "python/iolab/__init__.py", '"""D."""\nimport a\nX = [1]\n', None),
    (tidy.lists_only, "python/iolab/__init__.py", "def f(): ...\n", "not a list or an import"),
    (tidy.open_ends, SIM + "a.rs", f"// {MARK}: later", "left open without an issue"),
    (tidy.open_ends, SIM + "a.rs", f"// {MARK} #12: later", None),
    (tidy.banned_calls, SIM + "a.rs", "fn f() { dbg!(1); }", "`dbg!`"),
    (tidy.banned_calls, SIM + "a.rs", 'fn f() { println!("x"); }', "`println!` in a library"),
    (tidy.banned_calls, SIM + "a.rs", '/// println!("x")\nfn f() { g("println!"); }', None),
    (tidy.banned_calls, "crates/iolab-agent/src/main.rs", 'fn f() { println!("x"); }', None),
    (tidy.banned_calls, "crates/iolab-agent/src/a.rs", "fn f() { todo!() }", "`todo!`"),
    (tidy.banned_calls, "python/iolab/run/a.py", "print(1)", "`print` outside cli/"),
    (tidy.banned_calls, "python/iolab/cli/a.py", "print(1)", None),
    (tidy.timed_files, DRIVE + "a.rs", "fn f() { std::fs::read(p); }", "in a timed region"),
    (tidy.timed_files, DRIVE + "op_log.rs", "fn f() { std::fs::read(p); }", None),
    (tidy.timed_files, DRIVE + "a.rs", '/// std::fs::read\nfn f() { g("fs::read"); }', None),
    (tidy.timed_files, MEASURE + "a.rs", TIMED, "in a timed region"),
    (tidy.timed_files, MEASURE + "a.rs", TIMED.replace("monotonic()", "0"), None),
    (tidy.timed_files, MEASURE + "a.rs", COUNTED, "in a timed region"),
    (tidy.timed_files, MEASURE + "a/tests.rs", COUNTED, None),
    (tidy.timed_files, "crates/iolab-agent/src/a.rs", TIMED, None),
    (tidy.unsafe_code, SIM + "a.rs", "fn f() { unsafe { g() } }", "`unsafe` outside"),
    (tidy.unsafe_code, SIM + "a.rs", '// unsafe\n#![deny(unsafe_code)]\nlet a = "unsafe";', None),
    (tidy.unsafe_code, REAL + "a.rs", "fn f() {\n    unsafe { g() }\n}", "without `// SAFETY:`"),
    (tidy.unsafe_code, REAL + "a.rs", "// SAFETY: x\n// y\n// z\n// a\nunsafe { g() }", None),
    (tidy.unsafe_code, REAL + "a.rs", "// SAFETY: x\na\nb\nc\nd\nunsafe { g() }", "without"),
    (tidy.root_files, "o", "", "no file of the project"),
    (tidy.root_files, "docs/o", "", None),
    (tidy.root_files, "Makefile", "all:\n", None),
    (tidy.machine_paths, "docs/a.md", f"see {HOME}", "a path of one machine"),
    (tidy.machine_paths, "docs/a.md", "see ~/scratch and /var/tmp and $HOME/home/x", None),
    (tidy.cited_pages, SIM + "a.rs", "//! Source: kernel.md 2.", "kernel.md is not in the repo"),
    (tidy.cited_pages, SIM + "a.rs", "//! Source: Documentation/block/bfq-iosched.rst.", None),
    (tidy.untyped_signatures, "python/iolab/x.py", "def f(a: list[Any]): ...", "1 signatures"),
    (tidy.untyped_signatures, "python/iolab/x.py", "J = dict[str, Any]\ndef f() -> J: ...", "1 si"),
    (tidy.untyped_signatures, "python/iolab/x.py", "def f(a: object) -> None:\n    b: Any", None),
    (tidy.untyped_signatures, "python/iolab/protocol.py", "def f(a: Any): ...", None),
    (tidy.untyped_signatures, SIM + "a.rs", "use serde_json::Value;\nfn f(a: &Value) {}", "1 sig"),
    (tidy.untyped_signatures, SIM + "a.rs", "use x::Value;\nfn f(a: &Value) {}", None),
    (tidy.repeated_names, SIM + "lib.rs", TWICE_RUST, "`Shape` is the name of crates/iolab-sim"),
    (tidy.repeated_names, SIM + "lib.rs", TWICE_RUST.replace("pub enum", "enum"), None),
    (tidy.repeated_names, "python/iolab/a.py", TWICE_PYTHON, "is the name of python/iolab/a.py:1"),
    (tidy.repeated_names, "python/iolab/a.py", TWICE_PYTHON.replace("Shape", "_Shape"), None),
    (tidy.repeated_names, "python/iolab/a.py", TWICE_PYTHON.replace("Shape", "Study"), None),
    (tidy.repeated_names, "tests/a.py", TWICE_PYTHON, None),
    (
        tidy.plain_docstrings,
        "python/iolab/a.py",
        '"""Whom to become."""\n',
        "'Whom' in a docstring",
    ),
    (tidy.plain_docstrings, "python/iolab/a.py", '"""Who runs it."""\n', "'Who' in a docstring"),
    (tidy.plain_docstrings, "python/iolab/a.py", RIDDLE, "'what it is about'"),
    (tidy.plain_docstrings, "python/iolab/a.py", RIDDLE.replace("def f", "def _f"), None),
    (tidy.plain_docstrings, "python/iolab/a.py", '"""User that opens the files."""\n', None),
    (tidy.plain_docstrings, "tests/a.py", RIDDLE, None),
    (tidy.first_words_of_comments, SIM + "a.rs", "/// Whom to ask.\nfn f() {}\n", "with 'Whom'"),
    (tidy.first_words_of_comments, SIM + "a.rs", "//! What it is.\n", "begins with 'What'"),
    (
        tidy.first_words_of_comments,
        SIM + "tests/a.rs",
        "    /// `Who` only looks.\n    #[test]\n    fn f() {}\n",
        "begins with 'Who'",
    ),
    (
        tidy.first_words_of_comments,
        SIM + "a.rs",
        "/// Path.\n/// Where it lies matters.\n// What else.\n//// Who.\n",
        None,
    ),
    (tidy.first_words_of_comments, "tests/a.py", '"""Where it lies."""\n', "with 'Where'"),
    (
        tidy.first_words_of_comments,
        "tools/a.py",
        'def _f():\n    """\n    How?\n    """\n',
        "'How'",
    ),
    (tidy.first_words_of_comments, "tools/a.py", 'a = 1\n"""Nobody knows."""\n', "'Nobody'"),
    (tidy.first_words_of_comments, "tools/a.py", 'a = "Who"\n"""Path. Where it lies."""\n', None),
    (tidy.final_newline, "python/a.py", "a = 1", "not exactly one newline"),
    (tidy.final_newline, "python/a.py", "a = 1 \n", "blanks at the end"),
]


@pytest.mark.parametrize(
    ("rule", "path", "text", "message"), CASES, ids=lambda value: getattr(value, "__name__", None)
)
def test_rule(tmp_path, rule, path, text, message):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    found = [finding.message for finding in rule(tidy.Tree(tmp_path))]
    if message is None:
        assert found == []
    else:
        assert len(found) == 1
        assert message in found[0]


def test_every_rule_has_a_case_that_fails():
    failing = {rule for rule, _, _, message in CASES if message is not None}
    assert set(tidy.RULES) - failing == {tidy.list_rows}


def test_a_type_is_public_if_its_modules_are(tmp_path):
    files = {
        "lib.rs": "pub mod open;\nmod closed;\npub use closed::Named;\n",
        "open.rs": "pub struct Seen;\nstruct Own;\n",
        "closed.rs": "pub struct Named;\npub struct Hidden;\n",
        "open/deeper.rs": "pub struct Deep;\n",
    }
    for name, text in files.items():
        path = tmp_path / SIM / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = {name for name, _, _ in type_names.exported_types(tidy.Tree(tmp_path).rust)}
    assert found == {"Seen", "Named"}


def test_every_repeat_has_a_reason_and_is_one():
    warnings = [f for f in tidy.repeated_names(tidy.Tree(ROOT)) if f.is_warning]
    assert all(type_names.REPEATS.values())
    assert len(warnings) < 10, "names that are declared once: remove their rows"


REGISTRY = registries.Registry(
    name="knob",
    file="src/mod.rs",
    begin=r"knobs!\s*\{",
    row=r"^\s*([A-Z]\w*),",
    companions=("docs/knobs.md::`{name}`", "tests/{row}*.rs"),
)


@pytest.mark.parametrize(
    ("files", "messages"),
    [
        ({"docs/knobs.md": "`ReadAhead`", "tests/read_ahead_kb.rs": ""}, []),
        ({"docs/knobs.md": "`ReadAhead`"}, ["knob `ReadAhead` lacks tests/read_ahead*.rs"]),
        (
            {"docs/knobs.md": "", "tests/read_ahead.rs": ""},
            ["knob `ReadAhead` lacks docs/knobs.md::`ReadAhead`"],
        ),
    ],
)
def test_rows_need_their_companions(tmp_path, files, messages):
    files = {"src/mod.rs": "mod a;\nknobs! {\n    ReadAhead,\n}\n", **files}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = list(registries.missing_companions(tmp_path, sorted(files), (REGISTRY,)))
    assert [message for _, _, message in found] == messages


@pytest.mark.parametrize("text", [None, "mod a;\n", "knobs! {}\n"])
def test_a_list_that_moved_is_noticed(tmp_path, text):
    if text is not None:
        (tmp_path / "src").mkdir()
        (tmp_path / "src/mod.rs").write_text(text, encoding="utf-8")
    (found,) = registries.missing_companions(tmp_path, [], (REGISTRY,))
    assert found[2] == "the list of knob is not here or has no rows"


def test_literals_and_comments_are_blanked():
    text = """let a = "fn x() {"; // fn y() {
let b = r#"a " fn z() {"#; /* outer /* fn v() { */ { */ let c = '{'; let d: &'static str = b"{";
"""
    code = RustSource(text).code
    assert "{" not in code
    assert "'static" in code
    assert [len(line) for line in code.splitlines()] == [len(line) for line in text.splitlines()]


def test_a_function_is_found_through_generics_and_arrays():
    signature = "fn f<F: Fn(u8) -> u8>(self, g: F, a: [u8; 4]) -> [u8; 4]"
    text = f"impl X {{\n    {signature} {{\n        a\n    }}\n}}"
    (function,) = RustSource(text).functions
    assert (function.name, function.line_count, function.parameter_count) == ("f", 3, 2)


def test_only_the_root_has_folders_that_are_built(tmp_path):
    for name in ("target/a.rs", "crates/x/src/target/a.rs", "crates/x/__pycache__/a.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert list(tidy.Tree(tmp_path).files) == ["crates/x/src/target/a.rs"]
