"""What a sandbox decides without git: which projects it takes, and what it sees change in the original."""

import os

import pytest

from trainflash import sandbox
from trainflash.errors import UsageError
from trainflash.sandbox import manifest


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "project"
    (root / "data").mkdir(parents=True)
    (root / "train.py").write_text("print(1)\n")
    (root / "data" / "x.bin").write_bytes(b"1234")
    (root / "link").symlink_to("train.py")
    return root


def test_a_folder_that_nobody_touched_has_no_changes(folder):
    assert manifest.changes(manifest.scan(folder), folder) == ()


@pytest.mark.parametrize(
    ("touch", "said"),
    [
        (lambda root: (root / "train.py").write_text("print(2)\n"), "changed train.py"),
        (lambda root: os.utime(root / "train.py", (1, 1)), "changed train.py"),
        (lambda root: (root / "data" / "x.bin").unlink(), "removed data/x.bin"),
        (lambda root: (root / "data" / "y").write_text(""), "new data/y"),
        (lambda root: (root / "train.py").chmod(0o600), "mode of train.py"),
        (lambda root: ((root / "link").unlink(), (root / "link").write_text("print(1)")), "changed link"),
        (lambda root: (root / "data").chmod(0o700), "mode of data"),
    ],
)
def test_each_kind_of_change_is_named(folder, touch, said):
    (folder / "train.py").chmod(0o644)
    (folder / "data").chmod(0o755)
    before = manifest.scan(folder)
    touch(folder)
    assert manifest.changes(before, folder) == (said,)


def test_a_manifest_survives_its_file_with_names_that_are_no_text(folder, tmp_path):
    with open(os.fsencode(folder) + b"/\xff\n", "w"):
        pass
    before = manifest.scan(folder)
    manifest.write(before, tmp_path / "original.json")
    assert manifest.read(tmp_path / "original.json") == before
    assert manifest.changes(before, folder) == ()


def test_beyond_the_limit_folders_are_watched_by_their_own_time(folder):
    before = manifest.scan(folder, limit=0)
    assert before.unlisted.keys() == {"data"}
    (folder / "data" / "y").write_text("")
    assert manifest.changes(before, folder) == ("changed data/",)


def test_a_damaged_manifest_is_said_so(tmp_path):
    (tmp_path / "original.json").write_text("{")
    with pytest.raises(UsageError, match=r"original\.json"):
        manifest.read(tmp_path / "original.json")


def test_no_such_project(tmp_path):
    with pytest.raises(UsageError, match="no such project") as caught:
        sandbox.create(tmp_path / "nowhere", tmp_path / "base")
    assert caught.value.mend
    assert not (tmp_path / "base").exists()


def test_a_file_is_no_project(tmp_path):
    (tmp_path / "train.py").write_text("")
    with pytest.raises(UsageError, match="not a folder"):
        sandbox.create(tmp_path / "train.py", tmp_path / "base")


def test_the_inside_of_git_is_no_project(tmp_path):
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"\.git"):
        sandbox.create(tmp_path / ".git" / "hooks", tmp_path / "base")


def test_a_sandbox_inside_the_project_is_refused_and_nothing_is_made(folder):
    with pytest.raises(UsageError, match="inside the project") as caught:
        sandbox.create(folder, folder / "sandbox")
    assert "--base" in caught.value.mend
    assert not (folder / "sandbox").exists()


def test_no_sandbox_here(tmp_path):
    with pytest.raises(UsageError, match="is no sandbox"):
        sandbox.load(tmp_path)
    assert sandbox.newest(tmp_path) is None
