"""Python's types and the reference page of what crosses the border, from the agent's schema.

`iolab-agent schema` prints the methods of the agent and a JSON schema for each type that Rust
declares. A type with keys becomes a ``TypedDict``: records are large and stay the dictionaries that
`json` makes of them, and pyright still finds a misspelled key. A choice among names becomes a
``Literal``, one among types a union.
"""

import builtins
import json
import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

WIDTH: Final = 100
MARK: Final = "<!-- All methods and types; what follows is written by `make docs`. -->"
HEAD: Final = '''"""Types that cross between Rust and Python: requests, answers and records.

Written by `make docs` from the schema of `crates/iolab-protocol`; edit that instead. A key that is
`NotRequired` is left out where it says nothing.
"""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict
'''
UNITS: Final = (
    ("_ops_per_s", "ops/s"),
    ("_bytes_per_s", "bytes/s"),
    ("_unix_ns", "ns since 1970"),
    ("_percent", "%"),
    ("_bytes", "bytes"),
    ("_share", "0 to 1"),
    ("share", "0 to 1"),
    ("_ns_max", "ns"),
    ("_ns_per_op", "ns"),
    ("_ns", "ns"),
)
"""Ending of a key and the unit of its number, the longest endings first."""
SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
Schema = Mapping[str, Any]


def module_text(schemas: Schema) -> str:
    """Return the Python module with a type for each type of the schema."""
    types: Schema = schemas["types"]
    blocks, later = dict[str, str](), set(types)
    for name in _ordered(types):
        blocks[name] = _later("\n".join(_declaration(name, types[name])), later)
        later.discard(name)
    text = "\n\n\n".join(block.strip() for block in blocks.values())
    names = [f'    "{method["name"]}",' for method in schemas["methods"]]
    method_type = "\n".join(["Method: TypeAlias = Literal[", *names, "]"])
    return f"{HEAD}\n{method_type}\n\n\n{text}\n"


def merged(agent: Schema, extension: Schema) -> Schema:
    """Return the schema of the agent with the types of the extension.

    Raises
    ------
    ValueError : a name stands for two types.
    """
    types = dict[str, Any](agent["types"])
    for name, schema in extension["types"].items():
        if types.setdefault(name, schema) != schema:
            raise ValueError(f"{name} is one type of the agent and another of the extension")
    return {**agent, "types": types}


def _ordered(types: Schema) -> Iterator[str]:
    """Names of types, each behind those that it consists of, unless these consist of it."""
    seen = set[str]()

    def visit(name: str) -> Iterator[str]:
        if name not in seen:
            seen.add(name)
            for other in re.findall(r'"#/\$defs/(\w+)"', json.dumps(types[name])):
                yield from visit(other)
            yield name

    for name in sorted(types):
        yield from visit(name)


def _declaration(name: str, schema: Schema) -> Iterator[str]:
    if "properties" in schema or _is_empty_object(schema):
        yield from _class(name, schema, "TypedDict")
        return
    alternatives = schema.get("oneOf")
    if alternatives is None:
        yield from _alias(name, _type(schema), schema)
        return
    parts = list[str]()
    for variant in alternatives:
        if "properties" in variant:
            inner = name + _camel(_tag(variant))
            base = _target(variant) if "$ref" in variant else "TypedDict"
            yield from _class(inner, variant, base)
            yield ""
            yield ""
            parts.append(inner)
        else:
            parts.append(_type(variant))
    yield from _alias(name, _union(parts), schema)


def _later(block: str, later: set[str]) -> str:
    """Return a declaration in which types that are not there yet are quoted."""
    for name in later:
        block = re.sub(rf"(?<=\[){name}(?=\])", f'"{name}"', block)
        block = re.sub(rf"^(    \w+: ){name}$", rf'\1"{name}"', block, flags=re.MULTILINE)
    return block


def _is_empty_object(schema: Schema) -> bool:
    return schema.get("type") == "object" and schema.get("additionalProperties") in (None, False)


def _tag(variant: Schema) -> str:
    """Return the word that tells a variant from the others: its tag, or its only key."""
    properties: Schema = variant["properties"]
    for value in properties.values():
        if "const" in value:
            return str(value["const"])
    return next(iter(properties))


def _camel(text: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[^A-Za-z0-9]+", text))


def _class(name: str, schema: Schema, base: str) -> Iterator[str]:
    properties: Schema = schema.get("properties", {})
    required = set(schema.get("required", ()))
    types = {
        key: _type(value) if key in required else f"NotRequired[{_type(value)}]"
        for key, value in properties.items()
    }
    text = _sentence(schema.get("description", "")) or f"{name}."
    if any(keyword.iskeyword(key) for key in types):
        yield f"{name} = TypedDict("
        yield f'    "{name}",'
        yield "    {"
        for key, annotation in types.items():
            yield f'        "{key}": {annotation},'
        yield "    },"
        yield ")"
        yield from _docstring(text, "")
        return
    yield f"class {name}({base}):" + ("  # noqa: A001" if hasattr(builtins, name) else "")
    yield from _docstring(text, "    ")
    if types:
        yield ""
    for key, annotation in types.items():
        yield f"    {key}: {annotation}"


def _docstring(text: str, indent: str) -> Iterator[str]:
    words, lines = text.replace("\\", "\\\\").replace('"', "'").split(), [""]
    for word in words:
        width = WIDTH - len(indent) - (6 if len(lines) == 1 else 3)
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    yield indent + '"""' + f"\n{indent}".join(lines) + ('"""' if len(lines) == 1 else "")
    if len(lines) > 1:
        yield f'{indent}"""'


def _sentence(text: str) -> str:
    """Return a description in one line, without links into Rust's documentation."""
    text = re.sub(r"\[(`[^`]*`)\](\([^)]*\))?", r"\1", " ".join(text.split()))
    return re.sub(r"`(?:crate|iolab_\w+)::[\w:]*?(\w+)`", r"`\1`", text)


def _alias(name: str, annotation: str, schema: Schema) -> Iterator[str]:
    line = f"{name}: TypeAlias = {annotation}"
    if len(line) <= WIDTH:
        yield line
    elif annotation.startswith("Literal["):
        yield f"{name}: TypeAlias = Literal["
        yield from (f"    {part}," for part in annotation[8:-1].split(", "))
        yield "]"
    else:
        yield f"{name}: TypeAlias = ("
        first, *parts = annotation.split(" | ")
        if len(annotation) <= WIDTH - 4:
            first, parts = annotation, []
        yield f"    {first}"
        yield from (f"    | {part}" for part in parts)
        yield ")"
    about = _sentence(schema.get("description", ""))
    if about:
        yield from _docstring(about, "")


def _union(parts: list[str]) -> str:
    """Return the union of annotations; names of all literals stand together."""
    literals = [part[8:-1] for part in parts if part.startswith("Literal[")]
    others = [part for part in parts if not part.startswith("Literal[")]
    if literals:
        others.append(f"Literal[{', '.join(literals)}]")
    unique = list(dict.fromkeys(others))
    return " | ".join([p for p in unique if p != "None"] + [p for p in unique if p == "None"])


def _target(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _type(schema: Schema | bool) -> str:
    """Return the annotation of a value of this schema."""
    if isinstance(schema, bool):
        return "Any"
    if "$ref" in schema:
        return _target(schema)
    if "const" in schema:
        return f'Literal["{schema["const"]}"]'
    if "enum" in schema:
        names = [f'"{value}"' for value in schema["enum"] if value is not None]
        text = f"Literal[{', '.join(names)}]"
        return _union([text, "None"]) if None in schema["enum"] else text
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return _union([_type(part) for part in schema[word]])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union([_type({**schema, "type": one}) for one in kind])
    if kind == "null":
        return "None"
    if kind == "array":
        return f"list[{_items(schema)}]"
    if kind == "object":
        return f"dict[str, {_type(schema.get('additionalProperties', True))}]"
    return SCALARS.get(str(kind), "Any")


def _items(schema: Schema) -> str:
    if "prefixItems" in schema:
        return _union([_type(item) for item in schema["prefixItems"]])
    return _type(schema.get("items", True))


def page_text(by_hand: str, schemas: Schema) -> str:
    """Return the reference page: what is written by hand, then every method and type."""
    types: Schema = schemas["types"]
    rows = [
        f"| `{m['name']}` | {_link(m['params'], types)} | {_link(m['answer'], types)} | "
        f"{m['about']} |"
        for m in schemas["methods"]
    ]
    head = "| method | parameters | answer | what it does |"
    methods = "\n".join([head, "| --- | --- | --- | --- |", *rows])
    blocks = [by_hand.partition(MARK)[0].rstrip(), MARK, "## Methods", methods, "## Types"]
    for name in sorted(types):
        blocks += _section(name, types[name], types)
    return "\n\n".join(blocks) + "\n"


def _section(name: str, schema: Schema, types: Schema) -> Iterator[str]:
    yield f"### `{name}`"
    if "description" in schema:
        yield _sentence(schema["description"])
    if "properties" in schema:
        yield _keys(schema, types)
    elif "oneOf" in schema:
        yield "One of these:"
        for variant in schema["oneOf"]:
            yield from _variant(variant, types)
    elif not _is_empty_object(schema):
        yield f"Type: {_shown(_type(schema), types)}."


def _variant(variant: Schema, types: Schema) -> Iterator[str]:
    about = _sentence(variant.get("description", ""))
    if "properties" not in variant:
        yield f"- {_shown(_type(variant), types)}" + (f": {about}" if about else "")
        return
    tag = _tag(variant)
    more = f"; also the keys of {_link(_target(variant), types)}" if "$ref" in variant else ""
    yield f"- `{tag}`" + (f": {about}" if about else "") + more
    yield _keys(variant, types)


def _keys(schema: Schema, types: Schema) -> str:
    required = set(schema.get("required", ()))
    lines = ["| key | type | unit | meaning |", "| --- | --- | --- | --- |"]
    for key, value in schema["properties"].items():
        about = _sentence(value.get("description", "")).replace("|", "\\|")
        shown = _shown(_type(value), types)
        optional = "" if key in required else " (may be left out)"
        lines.append(f"| `{key}`{optional} | {shown} | {_unit(key, value)} | {about} |")
    return "\n".join(lines)


def _unit(key: str, schema: Schema) -> str:
    if not re.search(r"\b(int|float|Ns|Bytes)\b", _type(schema)):
        return ""
    return next((unit for ending, unit in UNITS if key.endswith(ending)), "")


def _shown(annotation: str, types: Schema) -> str:
    """Return an annotation in the words of JSON, types of the page as links."""
    text = re.sub(r"Literal\[([^\]]*)\]", lambda m: m[1].replace(", ", " or "), annotation)
    text = text.replace(" | None", " or null").replace(" | ", " or ")
    text = re.sub(r"list\[(.*)\]", r"list of \1", text)
    text = re.sub(r"dict\[str, (.*)\]", r"\1 by name", text)
    names = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}
    text = re.sub(r"\b(str|int|float|bool)\b", lambda m: names[m[1]], text)
    text = re.sub(r'"([^"]*)"', r"`\1`", text).replace("Any", "anything")
    return re.sub(r"\b[A-Z]\w+\b", lambda m: _link(m[0], types), text)


def _link(name: str, types: Schema) -> str:
    return f"[{name}](#{name.lower()})" if name in types else name
