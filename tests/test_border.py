"""Errors and types of the extension cross in one form (issue 15, point 3).

Before, an error was a text, and code took it apart by its lines; what functions take and give was
known from their documentation alone.
"""

import json

import pytest

import protocol_types
from iolab import _core, protocol
from iolab.cli.main import EXIT_BUG
from iolab.errors import DialectError, InternalError, IolabError, StudyError, TraceError

ERRORS = {
    "a command line": (
        lambda: _core.dialect_parse("iozone", ["-i", "0", "-s", "64x"]),
        *(DialectError, "syntax", "-s takes a size, not '64x'"),
        "write a whole number of kB, or with k, m or g: -s 64m",
    ),
    "a name": (
        lambda: _core.sim_profile("sata-209"),
        *(StudyError, "unknown_name"),
        "unknown profile `sata-209` (did you mean `sata-2009`?)",
        f"known: {', '.join(_core.sim_profile_names())}",
    ),
    "a contradiction": (
        lambda: _core.mixed_workload(
            json.dumps({"duration_ns": 1, "engine": "sync", "seed": 1, "streams": []})
        ),
        *(StudyError, "contradiction"),
        "workload: no phase, or a phase without tenants",
        "name at least one",
    ),
    "a file": (
        lambda: _core.workload_file("w.toml", "\n a = 'b"),
        *(DialectError, "syntax"),
        "w.toml, line 2: invalid literal string, expected `'`",
        "",
    ),
    "a text of another type": (
        lambda: _core.workload_operations("{}"),
        *(StudyError, "border", "missing field `version` at line 1 column 2", ""),
    ),
    "a trace": (
        lambda: _core.trace_stages(([("/dev/null", None)], []), "person", "stages"),
        *(TraceError, "unknown_name", "unknown group `person`"),
        "known: device, process, direction, size",
    ),
}


@pytest.mark.parametrize(("call", "branch", "code", "message", "hint"), ERRORS.values(), ids=ERRORS)
def test_an_error_has_code_message_and_hint(call, branch, code, message, hint):
    with pytest.raises(branch) as caught:
        call()
    error = caught.value
    assert (error.code, error.message, error.hint) == (code, message, hint)
    assert str(error).startswith(message)
    assert str(error).endswith(hint)


def test_the_place_of_an_error_is_the_wrong_word():
    with pytest.raises(DialectError) as caught:
        _core.dialect_parse("iozone", ["-i", "0", "-s", "64x"])
    place = caught.value.place
    assert place is not None
    assert place["line"][place["begin"] : place["end"]] == "64x"
    marked = str(caught.value).splitlines()[2]
    assert marked.strip() == "^^^"
    assert marked.index("^") == 2 + place["begin"]


def test_a_fault_of_the_simulator_is_told_as_one_of_iolab():
    told = {
        "branch": "study",
        "code": "internal",
        "message": "every worker waits and nothing will happen",
        "between": "; ",
        "hint": "report this: a worker or a model lost an event",
        "values": {},
        "place": None,
    }
    error = IolabError.of_extension(json.dumps(told))
    assert type(error) is InternalError
    assert error.exit_code == EXIT_BUG
    assert str(error) == f"{told['message']}; {told['hint']}"


def test_values_of_an_error_cross_with_it():
    with pytest.raises(StudyError) as caught:
        _core.sim_profile("nowhere")
    assert caught.value.values == {"kind": "profile", "name": "nowhere"}


def test_a_hint_that_is_changed_is_shown():
    with pytest.raises(DialectError) as caught:
        _core.dialect_parse("iozone", ["-s", "64x"])
    caught.value.hint = "ask somebody"
    assert str(caught.value).endswith("^^^\n  ask somebody")


def test_a_study_tells_reason_and_hint_without_the_command():
    from iolab.study.load import parse_study

    text = (
        'name = "one"\ntestbed = "sim:fixed-100us"\nrounds = 1\n[[workloads]]\n'
        'dialect = "iozone"\ncommand = "-s 64x"\n'
    )
    with pytest.raises(StudyError) as caught:
        parse_study(text)
    assert caught.value.message == (
        "study.toml, line 6, workloads[1].command: iozone: -s takes a size, not '64x'"
    )
    assert caught.value.hint == "write a whole number of kB, or with k, m or g: -s 64m"


def test_python_has_every_type_of_the_extension():
    types = json.loads(_core.extension_schema())["types"]
    assert len(types) > 150
    assert [name for name in types if not hasattr(protocol, name)] == []


OF_OTHERS = {"IozoneRequest", "MixedRequest", "StreamRequest", "BonnieLine"}
"""Keys are those of the workload description, or of the line that bonnie++ prints."""


def test_every_key_of_a_type_is_described():
    types = json.loads(_core.extension_schema())["types"]
    bare = [
        f"{name}.{key}"
        for name, schema in types.items()
        if name not in OF_OTHERS
        for key, value in schema.get("properties", {}).items()
        if "description" not in value and "const" not in value
    ]
    assert bare == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (_core.dialect_parse("iozone", ["-s", "1m", "-i", "0"]), "CommandPlanShownByIozone"),
        (_core.dialect_parse("bonnie++", ["-u", "0"]), "CommandPlanShownByBonnie"),
        (_core.dialect_parse("fio", ["--name=a", "--size=1m"]), "CommandPlanShownByFio"),
        (_core.dialect_parse("mkfile", ["1m", "a"]), "CommandPlanShownByMkfile"),
        (_core.sim_limits(), "SimulatedLimits"),
        (_core.sim_profile("sata-2009"), "Profile"),
        (_core.sim_describe(_core.sim_profile_stack("sata-2009")), "SimulatedStack"),
    ],
)
def test_an_answer_has_the_keys_of_its_type(text, name):
    told = getattr(protocol, name)
    keys = json.loads(text).keys()
    assert told.__required_keys__ <= keys
    assert keys <= told.__required_keys__ | told.__optional_keys__


def test_one_name_is_one_type():
    one, other = {"type": "string"}, {"type": "integer"}
    agent = {"methods": [], "types": {"Way": one}}
    assert protocol_types.merged(agent, {"types": {"Way": one, "Mark": other}}) == {
        "methods": [],
        "types": {"Way": one, "Mark": other},
    }
    with pytest.raises(ValueError, match="Way is one type of the agent and another"):
        protocol_types.merged(agent, {"types": {"Way": other}})


def test_an_error_of_python_reads_as_before():
    assert str(IolabError("it failed", "do that")) == "it failed: do that"
    assert str(IolabError("It failed.", "Do that.")) == "It failed. Do that."
