"""``iolab fleet`` as it is typed."""

import io
import json

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main


def iolab(*words):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in words], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    for name, device in (("a", "sata7200-4tb"), ("b", "sata7200-4tb"), ("c", "fixed-100us")):
        code, _, err = iolab(
            *("compare", "--on", f"sim:{device}", "--scheduler", "noop,deadline"),
            *("--test", "random-read", "--workers", "8", "--driver-queue-depth", "1"),
            *("--file-size", "1m", "--rounds", "5", "--out", folder / name),
        )
        assert code == 0, err
    return folder


def test_hosts_are_judged_together(hosts):
    code, out, err = iolab("fleet", hosts / "a", hosts / "b", f"slow={hosts / 'c'}")
    assert (code, err) == (0, "")
    text = " ".join(out.split())
    assert "3 hosts" in text
    assert "Not on every host, for deadline: slow is" in text
    assert "another host" in text
    code, out, _ = iolab("fleet", hosts / "a", hosts / "b", hosts / "c", "--json", "--strict")
    found = json.loads(out)
    assert code == (4 if found["verdict"]["headline_word"] in ("undecided", "depends") else 0)
    assert found["hosts"] == ["a", "b", "c"]
    assert [one["is_apart"] for one in found["comparisons"][0]["hosts"]] == [False, False, True]


def test_a_directory_of_hosts_stands_for_them(hosts):
    code, out, err = iolab("fleet", hosts)
    assert (code, err) == (0, "")
    assert out == iolab("fleet", *sorted(hosts.iterdir()))[1]


def test_wrong_words_are_one_line(hosts):
    for words, message in (
        ((hosts / "a",), "one host is no fleet"),
        ((hosts / "a", hosts / "a"), "two studies are named a: name hosts"),
        ((hosts / "a", f"x={hosts / 'a'}"), "x is the same study as a"),
        ((hosts / "a", hosts / "none"), "does not exist"),
        ((hosts / "a", hosts / "b", "--margin", "x"), "--margin"),
    ):
        code, out, err = iolab("fleet", *words)
        assert (code, out) == (1, "")
        assert message in err
        assert err.count("\n") == 1
