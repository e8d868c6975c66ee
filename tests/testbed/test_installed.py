"""Issue 14, point 4: root's own copy of the agent, and why sudo starts no other.

Symptom: iolab started the agent of its virtual environment through sudo, and a rule for sudo had to
name it. Cause: who owns the environment owns the agent, so such a rule made its user root. Fix:
`iolab install-agent` makes a copy of root's, the front end starts that one, of its own version.
"""

import os
import stat
from pathlib import Path

import pytest

from iolab.cli.main import main
from iolab.errors import RefusedError, TestbedError
from iolab.library import agent_install
from iolab.testbed import installed
from iolab.testbed.command import agent_command


def program(path, says="iolab-agent 0.1.0", code=0):
    """A program that tells a version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def ordinary(tmp_path, monkeypatch):
    """An ordinary user with an agent of his own and a search path of the test's."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(installed, "INSTALLED_AGENT", tmp_path / "root" / "iolab-agent")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("IOLAB_AGENT", str(program(tmp_path / "mine" / "iolab-agent")))
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        yield tmp_path


def let_sudo(folder, answer):
    """A sudo that does what the script says."""
    sudo = folder / "sudo"
    sudo.write_text(f"#!/bin/sh\n{answer}\n")
    sudo.chmod(0o755)
    return str(sudo)


GRANTS = 'shift 2\nexec "$@"'


def test_sudo_starts_roots_copy_alone_and_only_if_needed(ordinary):
    sudo = let_sudo(ordinary, GRANTS)
    copy = program(installed.INSTALLED_AGENT)
    assert agent_command(needs_root=False) == [os.environ["IOLAB_AGENT"]]
    assert agent_command(needs_root=True) == [sudo, "-n", "--", str(copy)]


def test_root_itself_starts_its_own(ordinary, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert agent_command(needs_root=True) == [os.environ["IOLAB_AGENT"]]


def test_without_a_copy_both_ways_are_told(ordinary):
    let_sudo(ordinary, GRANTS)
    with pytest.raises(TestbedError) as caught:
        agent_command(needs_root=True)
    assert 'sudo "$(command -v iolab)" ...' in caught.value.hint
    assert 'sudo "$(command -v iolab)" install-agent' in caught.value.hint


def test_a_copy_of_another_version_is_refused(ordinary):
    let_sudo(ordinary, GRANTS)
    program(installed.INSTALLED_AGENT, says="iolab-agent 0.0.9")
    with pytest.raises(TestbedError, match=r"is iolab-agent 0\.0\.9.* with iolab-agent 0\.1\.0"):
        agent_command(needs_root=True)


@pytest.mark.parametrize("says", ["hello", "iolab-agent", "other 0.1.0", "a b c"])
def test_a_copy_that_is_no_agent_is_refused(ordinary, says):
    program(installed.INSTALLED_AGENT, says=says)
    with pytest.raises(TestbedError, match="does not tell its version"):
        agent_command(needs_root=True)


def test_sudo_that_wants_a_password_without_a_terminal(ordinary):
    let_sudo(ordinary, "exit 1")
    program(installed.INSTALLED_AGENT)
    with pytest.raises(TestbedError, match="without a password") as caught:
        agent_command(needs_root=True)
    assert "sudo -v" in caught.value.hint


def test_an_agent_that_refuses_to_start_says_why(ordinary):
    let_sudo(ordinary, "echo iolab-agent: others can change me >&2; exit 2")
    program(installed.INSTALLED_AGENT)
    with pytest.raises(TestbedError, match="others can change me"):
        agent_command(needs_root=True)


def test_no_sudo_at_all(ordinary, monkeypatch):
    program(installed.INSTALLED_AGENT)
    monkeypatch.setenv("PATH", str(ordinary))
    with pytest.raises(TestbedError, match="there is no sudo"):
        agent_command(needs_root=True)


def test_only_root_installs(ordinary, capsys):
    assert main(["install-agent"]) == 2
    assert "only root" in capsys.readouterr().err


def test_the_default_policy_is_printed_to_anybody(ordinary, capsys):
    assert main(["install-agent", "--policy"]) == 0
    assert 'classes = ["B"]' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("named", "environment", "user"),
    [
        ("alice", {"SUDO_USER": "bob"}, "alice"),
        (None, {"SUDO_USER": "bob"}, "bob"),
        (None, {"SUDO_USER": "root"}, None),
        (None, {}, None),
    ],
)
def test_whom_the_rule_names(named, environment, user):
    assert agent_install._user(named, environment) == user


def test_the_line_for_sudo_forbids_words():
    line = installed.sudoers_line("nobody")
    assert line == f'nobody ALL=(root) NOPASSWD: {installed.INSTALLED_AGENT} ""'
    with pytest.raises(TestbedError, match="root and needs no rule"):
        installed.sudoers_line("root")
    with pytest.raises(TestbedError, match="there is no user"):
        installed.sudoers_line("nobody ALL=(ALL) ALL")


@pytest.fixture
def roots_place(tmp_path, monkeypatch):
    """A place for the copy in a directory of root's; what is above it is not looked at."""
    place = tmp_path / "libexec" / "iolab"
    monkeypatch.setattr(installed, "INSTALLED_AGENT", place / "iolab-agent")
    look = installed._check_owned
    above = {tmp_path, *tmp_path.parents}
    checked = lambda fd, path: None if path in above else look(fd, path)  # noqa: E731
    monkeypatch.setattr(installed, "_check_owned", checked)
    return place


@pytest.mark.needs_root
def test_a_copy_is_made_and_removed(roots_place, tmp_path):
    source = program(tmp_path / "venv" / "iolab-agent")
    os.chown(source, 1000, 1000)
    before = os.umask(0)
    try:
        assert installed.install(source) == "iolab-agent 0.1.0"
        assert installed.install(source) == "iolab-agent 0.1.0"  # Over the first.
    finally:
        os.umask(before)
    copy = roots_place / "iolab-agent"
    for path, mode in ((copy, 0o755), (roots_place, 0o755), (roots_place.parent, 0o755)):
        found = path.stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (mode, 0, 0), path
    assert copy.read_text() == source.read_text()
    assert [path.name for path in roots_place.iterdir()] == ["iolab-agent"]
    assert installed.remove()
    assert not roots_place.exists()
    assert not installed.remove()


@pytest.mark.needs_root
def test_a_planted_link_is_replaced_and_not_followed(roots_place, tmp_path):
    roots_place.mkdir(parents=True)
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (roots_place / "iolab-agent").symlink_to(victim)
    installed.install(program(tmp_path / "venv" / "iolab-agent"))
    assert victim.read_text() == "kept"
    assert not (roots_place / "iolab-agent").is_symlink()


@pytest.mark.needs_root
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_directory_that_others_may_write_is_refused(roots_place, tmp_path, mode):
    roots_place.parent.mkdir()
    roots_place.parent.chmod(mode)
    with pytest.raises(RefusedError, match="others than root may write"):
        installed.install(program(tmp_path / "venv" / "iolab-agent"))
    assert not list(roots_place.glob("*"))


@pytest.mark.needs_root
def test_a_directory_of_somebody_elses_is_refused(roots_place, tmp_path):
    roots_place.parent.mkdir()
    os.chown(roots_place.parent, 1000, 1000)
    with pytest.raises(RefusedError, match="does not belong to root"):
        installed.install(program(tmp_path / "venv" / "iolab-agent"))


@pytest.mark.needs_root
def test_a_directory_that_is_a_link_is_refused(roots_place, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    roots_place.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError, match="is a link"):
        installed.install(program(tmp_path / "venv" / "iolab-agent"))
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.needs_root
def test_what_does_not_run_is_not_installed(roots_place, tmp_path):
    with pytest.raises(TestbedError, match="does not tell its version"):
        installed.install(program(tmp_path / "venv" / "iolab-agent", code=1))
    assert not roots_place.exists()


@pytest.mark.needs_root
def test_what_install_did_not_make_is_not_removed(roots_place):
    (roots_place / "iolab-agent").mkdir(parents=True)
    with pytest.raises(RefusedError, match="was not made by"):
        installed.remove()
    (roots_place / "iolab-agent").rmdir()
    (roots_place / "notes").write_text("the administrator's")
    assert not installed.remove()
    assert (roots_place / "notes").exists()
