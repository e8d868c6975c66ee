"""The file itself: same contents, same bytes; damage is seen, nothing hostile is believed."""

import hashlib
import io
import stat
import subprocess
import zipfile
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.archive import format as layout
from iolab.archive import read, write
from iolab.archive.format import ArchiveError, Manifest, members_of
from iolab.errors import RefusedError

CONTENTS = {
    "study.db": bytes(range(256)) * 8,
    "study.toml": b'name = "s"\n',
    "commands/trial-t0001.fio": b"[read]\n" * 40,
}


def packed(contents=CONTENTS):
    manifest = Manifest("0.1", "id", "s", "a machine", members_of(contents))
    return write.pack(manifest, contents)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "a.iolab"
    path.write_bytes(packed())
    return path


def test_the_same_contents_give_the_same_bytes_in_any_order():
    assert packed(dict(reversed(CONTENTS.items()))) == packed()


def test_what_was_packed_comes_back(archive, tmp_path):
    found = read.read_archive(archive)
    assert found.contents == CONTENTS
    read.unpack(found, tmp_path / "out")
    for name, content in CONTENTS.items():
        assert (tmp_path / "out" / name).read_bytes() == content


def test_digests_are_those_that_sha256sum_prints(archive, tmp_path):
    """The digest over all is that of `sha256sum`'s own output for the members in order."""
    found = read.read_archive(archive)
    read.unpack(found, tmp_path / "out")
    names = [member.name for member in found.manifest.members]
    command = ["sha256sum", *names]
    done = subprocess.run(command, cwd=tmp_path / "out", capture_output=True, check=True)
    assert hashlib.sha256(done.stdout).hexdigest() == found.manifest.sha256


BODY = packed()


@given(st.integers(0, len(BODY) - 1), st.integers(1, 255))
def test_no_changed_byte_goes_unnoticed(position, change):
    body = bytearray(BODY)
    body[position] ^= change
    path = _Path(bytes(body))
    try:
        found = read.inspect(path)
    except ArchiveError:
        return  # So damaged that nobody would take it for ours.
    assert found.problems
    assert all(CONTENTS[name] == content for name, content in found.contents.items())


@given(st.integers(0, len(BODY) - 1))
def test_no_missing_end_goes_unnoticed(length):
    path = _Path(BODY[:length])
    try:
        problems = read.inspect(path).problems
    except ArchiveError as error:
        problems = (error.message,)
    assert problems


class _Path:
    """As much of a path as the reader uses, in memory."""

    def __init__(self, body):
        self.body = body

    def stat(self):
        size = len(self.body)
        return type("Status", (), {"st_mode": stat.S_IFREG, "st_size": size})

    def read_bytes(self):
        return self.body

    def __str__(self):
        return "x.iolab"


def test_damage_is_named_and_the_rest_is_told_apart(archive):
    body = bytearray(archive.read_bytes())
    place = zipfile.ZipFile(archive).getinfo("study.db").header_offset + 60
    body[place] ^= 0xFF
    archive.write_bytes(body)
    found = read.inspect(archive)
    assert any(problem.startswith("study.db cannot be unpacked") for problem in found.problems)
    assert any("seal" in problem for problem in found.problems)
    assert set(found.contents) == {"study.toml", "commands/trial-t0001.fio"}
    with pytest.raises(ArchiveError, match=r"is damaged: .*study\.db"):
        read.read_archive(archive)


# What somebody else made.


def hostile(tmp_path, change, *, is_sealed=True):
    """A file like ours, remade by `change(zip, name, content)` with a right seal."""
    buffer = io.BytesIO()
    source = zipfile.ZipFile(io.BytesIO(BODY))
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for info in source.infolist():
            change(target, info, source.read(info))
        target.comment = bytes(layout.SEAL_BYTES)
    body = buffer.getvalue()[: -layout.SEAL_BYTES]
    path = tmp_path / "hostile.iolab"
    path.write_bytes(body + (layout.seal_of(body) if is_sealed else bytes(layout.SEAL_BYTES)))
    return path


def refused(path, message):
    with pytest.raises(ArchiveError, match=message):
        read.inspect(path)


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/passwd",
        "commands/../../evil",
        "commands/.hidden",
        "C:\\evil",
        "a\nb",
        "x.sh",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path, name):
    def change(target, info, content):
        target.writestr(info, content)
        if info.filename == "study.db":
            target.writestr(zipfile.ZipInfo(name), b"evil")

    refused(hostile(tmp_path, change), "is refused: .* is no name of a member")
    assert {path.name for path in tmp_path.iterdir()} == {"hostile.iolab"}


def test_a_name_in_the_manifest_is_checked_too(tmp_path):
    def change(target, info, content):
        if info.filename == "manifest.json":
            content = content.replace(b'"study.toml"', b'"../evil"')
        target.writestr(info, content)

    problems = read.inspect(hostile(tmp_path, change)).problems
    assert any("'../evil' is no name of a member" in problem for problem in problems)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFCHR, stat.S_IFIFO])
def test_links_and_other_kinds_are_refused(tmp_path, kind):
    def change(target, info, content):
        if info.filename == "study.toml":
            info.external_attr = (kind | 0o777) << 16
        target.writestr(info, content)

    refused(hostile(tmp_path, change), "study.toml is not a plain file")


def test_a_member_that_is_there_twice_is_refused(tmp_path):
    def change(target, info, content):
        target.writestr(info, content)
        if info.filename == "study.toml":
            target.writestr(info, b"other")

    with pytest.warns(UserWarning, match="Duplicate name"):
        path = hostile(tmp_path, change)
    refused(path, "study.toml is in it twice")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "TOTAL_BYTES_MAX", 1 << 20)

    def change(target, info, content):
        target.writestr(info, bytes(2 << 20) if info.filename == "study.db" else content)

    monkeypatch.setattr(read, "_content", lambda *_: pytest.fail("it was unpacked"))
    refused(hostile(tmp_path, change), "it would unpack to")


def test_a_member_is_never_unpacked_beyond_the_size_it_admits(tmp_path):
    """A header that lies: the table of contents says 2 KiB, the data would be 8 MiB."""

    def change(target, info, content):
        target.writestr(info, bytes(8 << 20) if info.filename == "study.db" else content)

    path = hostile(tmp_path, change)
    size = (8 << 20).to_bytes(4, "little")
    body = path.read_bytes().replace(size, len(CONTENTS["study.db"]).to_bytes(4, "little"))
    body = body[: -layout.SEAL_BYTES]
    path.write_bytes(body + layout.seal_of(body))
    found = read.inspect(path)
    assert any(problem.startswith("study.db") for problem in found.problems)
    assert "study.db" not in found.contents


def test_foreign_methods_are_refused(tmp_path):
    def change(target, info, content):
        target.writestr(info, content, zipfile.ZIP_BZIP2)

    refused(hostile(tmp_path, change), "packed in a foreign way")


def test_what_the_manifest_does_not_know_is_damage(tmp_path):
    def change(target, info, content):
        target.writestr(info, content)
        if info.filename == "study.db":
            target.writestr(zipfile.ZipInfo("report.html"), b"evil")

    assert read.inspect(hostile(tmp_path, change)).problems == (
        "report.html is not in the manifest",
    )


def test_a_changed_member_with_a_new_seal_is_damage(tmp_path):
    def change(target, info, content):
        is_text = info.filename == "study.toml"
        target.writestr(info, content.replace(b'"s"', b'"t"') if is_text else content)

    (problem,) = read.inspect(hostile(tmp_path, change)).problems
    assert problem.startswith("study.toml is not what the manifest promises")


def test_a_missing_seal_is_damage(tmp_path):
    path = hostile(
        tmp_path, lambda target, info, content: target.writestr(info, content), is_sealed=False
    )
    assert read.inspect(path).problems == ("the seal at the end of the file is missing or damaged",)


def test_a_newer_format_is_named(tmp_path):
    def change(target, info, content):
        if info.filename == "manifest.json":
            content = content.replace(b'"version": 1', b'"version": 3')
        target.writestr(info, content)

    refused(
        hostile(tmp_path, change), r"newer iolab \(archive format 3, this one knows 2\): update"
    )


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text\n" * 100, BODY[40:-80]])
def test_other_files_are_no_archives(tmp_path, content):
    path = tmp_path / "x.iolab"
    path.write_bytes(content)
    refused(path, "is not an archive of iolab")


def test_other_zip_files_are_no_archives(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("study.db", b"x")
    refused(path, "is not an archive of iolab")


def test_directories_and_missing_files_are_no_archives(tmp_path):
    refused(tmp_path, "is not a file")
    refused(tmp_path / "none", "cannot be read")


# What is already there.


def test_nothing_is_overwritten(archive, tmp_path):
    with pytest.raises(RefusedError, match="exists already"):
        write.write_new(archive, b"x")
    assert archive.read_bytes() == packed()
    found = read.read_archive(archive)
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").touch()
    with pytest.raises(ArchiveError, match="holds something already"):
        read.unpack(found, full)
    assert [path.name for path in full.iterdir()] == ["mine"]


def test_an_empty_directory_may_be_unpacked_into(archive, tmp_path):
    (tmp_path / "out").mkdir()
    read.unpack(read.read_archive(archive), tmp_path / "out")
    assert (tmp_path / "out" / "study.db").is_file()


def test_a_failure_while_unpacking_leaves_nothing(archive, tmp_path):
    found = read.read_archive(archive)
    broken = replace(found, contents={**found.contents, "study.db/x": b"x"})
    with pytest.raises(ArchiveError, match="cannot be made"):
        read.unpack(broken, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"a.iolab"}


def test_a_study_too_large_for_any_reader_is_not_packed(monkeypatch):
    monkeypatch.setattr(write, "TOTAL_BYTES_MAX", 100)
    with pytest.raises(ArchiveError, match="more than an archive holds"):
        packed()
