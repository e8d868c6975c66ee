"""Python's types of the border are made of the schema, and pyright can trust them.

Issue 15, point 3: records were read by string keys that nothing checked, and the document of the
protocol named 13 of 21 keys.
"""

import json
from typing import Literal

import pytest

import gen_docs
import protocol_types
from iolab import protocol

SCHEMAS = {
    "methods": [{"name": "go", "params": "Way", "answer": "Mark", "about": "Goes."}],
    "types": {
        "Way": {
            "description": "Where to.",
            "oneOf": [
                {"type": "string", "const": "home", "description": "Back."},
                {
                    "type": "object",
                    "description": "To a `place`.",
                    "properties": {"kind": {"type": "string", "const": "far_off"}},
                    "required": ["kind"],
                    "$ref": "#/$defs/Place",
                },
            ],
        },
        "Place": {
            "type": "object",
            "description": "A place.",
            "properties": {
                "far_ns": {"type": ["integer", "null"], "description": "How far | off."},
                "name": {"type": "string", "description": "See [`crate::x::Y`]."},
            },
            "required": ["far_ns"],
        },
        "Mark": {
            "type": "object",
            "properties": {"from": {"type": "array", "items": {"$ref": "#/$defs/Way"}}},
            "required": ["from"],
        },
    },
}


@pytest.fixture(scope="module")
def made():
    """The module that is made of `SCHEMAS`, executed."""
    found = {}
    exec(protocol_types.module_text(SCHEMAS), found)
    return found


def test_a_key_that_may_be_left_out_is_not_required(made):
    assert made["Place"].__required_keys__ == {"far_ns"}
    assert made["Place"].__optional_keys__ == {"name"}


def test_a_variant_has_its_tag_and_the_keys_of_its_type(made):
    assert made["WayFarOff"].__required_keys__ == {"far_ns", "kind"}
    assert made["Way"].__args__ == (made["WayFarOff"], Literal["home"])
    assert made["Method"].__args__ == ("go",)


def test_a_key_may_be_a_word_of_python(made):
    assert made["Mark"].__required_keys__ == {"from"}


def test_the_page_has_every_key_with_type_unit_and_meaning():
    page = protocol_types.page_text(f"# By hand\n\n{protocol_types.MARK}\nold", SCHEMAS)
    assert page.startswith("# By hand\n")
    assert "old" not in page
    assert "| `go` | [Way](#way) | [Mark](#mark) | Goes. |" in page
    assert "| `far_ns` | whole number or null | ns | How far \\| off. |" in page
    assert "| `name` (may be left out) | text |  | See `Y`. |" in page
    assert "- `far_off`: To a `place`.; also the keys of [Place](#place)" in page


def test_python_and_the_page_are_those_of_the_agent_that_is_installed():
    names = ("python/iolab/protocol.py", "docs/reference/agent-protocol.md")
    pages = {name: gen_docs.PAGES[name] for name in names}
    assert list(gen_docs.drifted_pages(gen_docs.ROOT, pages, is_check=True)) == []


def test_every_key_of_the_protocol_is_on_the_page():
    page = (gen_docs.ROOT / gen_docs.PROTOCOL_PAGE).read_text(encoding="utf-8")
    schemas = gen_docs.schemas()
    assert len(schemas["types"]) > 100
    for name, schema in schemas["types"].items():
        section = page.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
        for key in schema.get("properties", {}):
            assert f"| `{key}`" in section, f"{name}.{key}"


def test_an_answer_of_the_agent_has_the_keys_of_its_type():
    schemas = gen_docs.schemas()
    request = {"id": 1, "method": "doctor", "params": {"paths": ["/tmp"]}}
    command = [str(gen_docs.importlib.import_module("iolab.testbed.command").find_agent())]
    done = gen_docs.subprocess.run(
        command, input=json.dumps(request) + "\n", capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)["result"]
    names = {method["name"]: method["answer"] for method in schemas["methods"]}
    assert answer.keys() == getattr(protocol, names["doctor"]).__required_keys__
    assert all(check.keys() == protocol.Check.__required_keys__ for check in answer["checks"])
