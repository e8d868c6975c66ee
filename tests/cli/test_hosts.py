"""``--hosts`` as it is typed: what is no host, and what cannot be run on one; none is reached."""

import io

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import IolabError
from iolab.testbed.hosts import parse_hosts

STUDY = ("--scheduler", "none,bfq", "--test", "read", "--file-size", "4m", "--rounds", "2")


def iolab(*words):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in words], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def ends_of(text, ssh=None):
    """Words of ssh for each host."""
    return [(*host.ssh, *host.address) for host in parse_hosts(text, ssh)]


def test_hosts_are_named_as_for_ssh():
    assert ends_of("db1, root@db2,db3:2222") == [
        ("ssh", "db1"),
        ("ssh", "root@db2"),
        ("ssh", "-p", "2222", "db3"),
    ]
    assert ends_of("[fe80::1%eth0]:22,fe80::2,root@[::1]", "ssh -F 'my file'") == [
        ("ssh", "-F", "my file", "-p", "22", "fe80::1%eth0"),
        ("ssh", "-F", "my file", "fe80::2"),
        ("ssh", "-F", "my file", "root@::1"),
    ]
    [host] = parse_hosts("db3:2222", None)
    *_, last, command = host.command("cat", "a file")
    assert (last, command) == ("db3", "exec cat 'a file'")
    assert host.shown("true") == "ssh -p 2222 db3 true"
    assert host.restored_by == "iolab restore --hosts db3:2222"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no host is named"),
        (" , ", "no host is named"),
        ("a,,b", "a,,b: a name is empty"),
        ("a,b,a", "a is named twice"),
        ("a,root@a", "a and root@a are one host"),
        ("db:1,DB:1", "db:1 and DB:1 are one host"),
        ("-oProxyCommand=x", "'-oProxyCommand=x' is no name of a host"),
        ("a,b/c", "'b/c' is no name of a host"),
        ("..", "'..' is no name of a host"),
        ("a b", "'a b' is no name of a host"),
        ("a:0", "'a:0' is no name of a host"),
        ("a:65536", "'a:65536' is no name of a host"),
        ("root@", "'root@' is no name of a host"),
        ("x" * 300, "is no name of a host"),
    ],
)
def test_what_is_no_host(text, message):
    with pytest.raises(IolabError) as caught:
        parse_hosts(text, None)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--on", "sim:fixed-100us"), "sim:fixed-100us needs no hosts"),
        (("--on", "null:"), "needs no hosts"),
        (("--on", "device:/dev/nothing"), "each disk is erased by its own serial number"),
        (("--on", "dir:data"), "data is no whole path"),
        (("--on", "loop:64m", "--dry-run"), "a rehearsal is of one machine"),
        (("--on", "loop:64m", "--trace"), "traces are written to files on the host"),
        (("--on", "loop:64m", "--resume"), "--resume needs the directory"),
        (("--on", "loop:64m", "--resume", "--out", "none"), "there is nothing to resume"),
        (("--on", "loop:64m", "--erase-serial", "x"), "erases no device"),
        (("--on", "loop:64m", "--ssh", "'"), "--ssh ': No closing quotation"),
        (("--on", "loop:64m", "--ssh", " "), "--ssh ' ': there is nothing in it"),
        (("--on", "loop:64m", "--ssh", "''"), "--ssh names no command"),
        (("--on", "loop:64m", "--ssh", "/nowhere/ssh"), "/nowhere/ssh cannot be started"),
    ],
)
def test_what_cannot_be_run_on_hosts_is_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = iolab("compare", *words, *STUDY, "--hosts", "db1.invalid")
    assert (code, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_ssh_without_hosts_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (("compare", "--on", "loop:64m", *STUDY), ("restore",)):
        code, _, err = iolab(*words, "--ssh", "ssh -v")
        assert (code, err) == (1, "iolab: --ssh is about --hosts: name hosts, or leave --ssh out\n")


def test_jobs_are_not_for_hosts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(
        'testbed = "loop:64m"\nrounds = 2\n[factors]\nscheduler = ["none", "bfq"]\n'
        '[[workloads]]\nkind = "iozone"\ntests = ["read"]\nfile_size = "4m"\n'
    )
    code, _, err = iolab("run", "study.toml", "--hosts", "a,b", "--jobs", "2")
    assert code == 1
    assert "leave --jobs, --executor and --shard out" in err
