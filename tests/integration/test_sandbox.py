"""Sandboxes of real projects with real git: the state is taken exactly, the original stays as it was, nothing is left behind."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from trainflash import sandbox
from trainflash.errors import UsageError
from trainflash.sandbox import lifecycle

ME = ("-c", "user.name=Owner", "-c", "user.email=owner@example.org", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always")


LEAVING_LINK = """diff --git a/up b/up
new file mode 120000
--- /dev/null
+++ b/up
@@ -0,0 +1 @@
+../../etc
\\ No newline at end of file
"""


def git(where, *arguments):
    """Git as the owner runs it, without touching the index."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    return subprocess.run(["git", *ME, *arguments], cwd=where, env=environment, check=True, capture_output=True).stdout.decode()


def look(root, *, objects=False):
    """Bytes, mode and time of change of everything beneath `root`; git's objects only on demand."""
    seen = {}
    for at, names, files in os.walk(root):
        if not objects and at.endswith("/.git"):
            names.remove("objects")
        for name in (*names, *files):
            path = Path(at, name)
            facts = path.lstat()
            if path.is_symlink():
                seen[path] = (os.readlink(path), facts.st_mtime_ns)
            elif path.is_file():
                seen[path] = (path.read_bytes(), facts.st_mode, facts.st_mtime_ns)
            elif ".git" not in path.relative_to(root).parts:
                seen[path] = (facts.st_mode, facts.st_mtime_ns)
    return seen


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """The user's state folder, outside of any project."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def project(tmp_path):
    """A repository with staged, unstaged, deleted, untracked, ignored and odd files."""
    root = tmp_path / "my project"
    (root / "pkg").mkdir(parents=True)
    (root / "data").mkdir()
    (root / "train.py").write_text("print('first')\n")
    (root / "pkg" / "gone.py").write_text("gone = 1\n")
    (root / "pkg" / "staged.py").write_text("a = 1\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("train.py")
    (root / ".gitignore").write_text("data/\n*.log\n")
    (root / "data" / "x.bin").write_bytes(b"data")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    (root / "pkg" / "staged.py").write_text("a = 2\n")
    git(root, "add", "pkg/staged.py")
    (root / "train.py").write_text("print('unstaged')\n")
    (root / "pkg" / "gone.py").unlink()
    (root / "untracked, new.py").write_text("b = 1\n")
    (root / "odd\n\"näme'\\.txt").write_bytes(b"crlf\r\nlone\n\xff\x00")
    os.utime(root / "train.py", ns=(10**18, 10**18 + 5))
    return root


def files_of(checkout):
    paths = (path for path in checkout.rglob("*") if path.is_symlink() or path.is_file())
    return {str(path.relative_to(checkout)) for path in paths if path.name != ".git"}


def assert_equal_files(project, checkout, wanted):
    assert files_of(checkout) == wanted
    for name in wanted:
        mine, theirs = checkout / name, project / name
        assert mine.is_symlink() == theirs.is_symlink()
        if theirs.is_symlink():
            assert os.readlink(mine) == os.readlink(theirs)
        else:
            assert mine.read_bytes() == theirs.read_bytes()
            assert mine.stat().st_mode == theirs.stat().st_mode
            assert mine.stat().st_mtime_ns == theirs.stat().st_mtime_ns


def test_the_state_is_taken_exactly_and_the_original_stays(project):
    before, status, refs = look(project), git(project, "status", "--porcelain"), git(project, "for-each-ref")
    made = sandbox.create(project)
    wanted = {".gitignore", "train.py", "pkg/staged.py", "run.sh", "link", "untracked, new.py", "odd\n\"näme'\\.txt"}
    assert_equal_files(project, Path(made.baseline), wanted)
    assert_equal_files(project, Path(made.worktree), wanted)
    assert {path: facts for path, facts in look(project).items() if path in before} == before
    assert git(project, "status", "--porcelain") == status
    assert made.head == git(project, "rev-parse", "HEAD").strip()
    assert sandbox.original_changes(made) == ()
    sandbox.discard(made)
    assert look(project) == before
    assert git(project, "for-each-ref") == refs
    assert git(project, "worktree", "list").count("\n") == 1
    assert not (project / ".git" / "worktrees").exists()


def test_conversion_hooks_signing_and_identity_of_the_owner_never_run(project, tmp_path):
    hook = project / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    for name, value in {
        "core.autocrlf": "true",
        "commit.gpgSign": "true",
        "gpg.program": "/bin/false",
        "filter.spy.clean": f"touch '{tmp_path}/ran'; cat",
        "filter.spy.smudge": f"touch '{tmp_path}/ran'; cat",
        "filter.spy.required": "true",
        "core.fsmonitor": f"touch '{tmp_path}/ran'",
        "core.logAllRefUpdates": "always",
    }.items():
        git(project, "config", name, value)
    (project / ".gitattributes").write_text("*.py filter=spy text eol=crlf ident\n")
    (project / "train.py").write_bytes(b"# $Id$\r\nmixed\n")
    before = look(project)
    (tmp_path / "ran").unlink(missing_ok=True)
    made = sandbox.create(project)
    sandbox.commit_diff(made, "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1,2 @@\n #!/bin/sh\n+true\n", "one")
    assert (Path(made.worktree) / "train.py").read_bytes() == b"# $Id$\r\nmixed\n"
    assert not (tmp_path / "ran").exists()
    sandbox.discard(made)
    assert look(project) == before


def test_variables_of_a_surrounding_hook_have_no_say(project, tmp_path, monkeypatch):
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    made = sandbox.create(project)
    assert (Path(made.worktree) / "train.py").read_text() == "print('unstaged')\n"
    assert not (tmp_path / "elsewhere").exists()


def test_unborn_branch(tmp_path):
    root = tmp_path / "unborn"
    root.mkdir()
    git(root, "init", "-q")
    (root / "train.py").write_text("1\n")
    before = look(root)
    made = sandbox.create(root)
    assert made.head is None
    assert files_of(Path(made.worktree)) == {"train.py"}
    sandbox.discard(made)
    assert look(root) == before


def test_detached_head_and_linked_worktree(project, tmp_path):
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", "--detach", str(linked))
    (linked / "train.py").write_text("print('linked')\n")
    before, before_main = look(linked), look(project)
    made = sandbox.create(linked)
    assert (Path(made.worktree) / "train.py").read_text() == "print('linked')\n"
    assert made.repository == str(linked)
    sandbox.discard(made)
    assert look(linked) == before
    assert look(project) == before_main
    assert git(project, "worktree", "list").count("\n") == 2


def test_subfolder_of_a_larger_repository(project):
    inner = project / "pkg"
    made = sandbox.create(inner)
    assert made.repository == str(project)
    assert made.prefix == "pkg"
    assert sandbox.project_in(made, "candidate") == Path(made.worktree, "pkg")
    sandbox.commit_diff(made, "--- a/staged.py\n+++ b/staged.py\n@@ -1 +1 @@\n-a = 2\n+a = 3\n", "one")
    assert (Path(made.worktree) / "pkg" / "staged.py").read_text() == "a = 3\n"
    assert "a/staged.py" in sandbox.diff(made)
    (Path(made.worktree) / "train.py").write_text("outside\n")
    with pytest.raises(UsageError, match="outside the project"):
        sandbox.commit_worktree(made, "two")


def test_changed_files_have_their_own_names(project):
    names = ("with space.py", 'quo"te\n.py', os.fsdecode(b"\xff.py"))
    for name in names:
        (project / "pkg" / name).write_text("-- a/none.py\n")
    made = sandbox.create(project / "pkg")
    for name in names:
        (sandbox.project_in(made, "candidate") / name).write_text("new\n")
    commit = sandbox.commit_worktree(made, "one")
    assert sandbox.changed_files(made, made.base_ref, commit) == tuple(sorted(names))


def test_a_disk_that_is_full_in_the_end_leaves_nothing_behind(project, monkeypatch):
    def full(path, value):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    before = look(project)
    monkeypatch.setattr(lifecycle, "write_document", full)
    with pytest.raises(OSError, match="No space"):
        sandbox.create(project)
    assert look(project) == before
    assert not list((project / ".git").glob("worktrees/*")) and not (project / ".git" / "refs" / "trainflash").exists()


def test_no_git_at_all(tmp_path):
    root = tmp_path / "plain"
    (root / ".venv").mkdir(parents=True)
    (root / ".venv" / "pyvenv.cfg").write_text("")
    (root / "train.py").write_text("1\n")
    before = look(root)
    made = sandbox.create(root)
    assert files_of(Path(made.worktree)) == {"train.py"}
    assert made.head is None
    assert any("no git" in warning for warning in made.warnings)
    sandbox.commit_diff(made, "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-1\n+2\n", "one")
    assert look(root) == before
    sandbox.discard(made, everything=True)
    assert look(root) == before
    assert not Path(made.directory).exists()


def test_a_project_that_an_enclosing_repository_ignores_counts_as_without_git(project):
    inner = project / "data"
    made = sandbox.create(inner)
    assert made.repository == str(inner)
    assert files_of(Path(made.worktree)) == {"x.bin"}


def test_submodules_and_nested_repositories_stay_in_the_original(project, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(project, other, symlinks=True)
    git(project, "submodule", "--quiet", "add", str(other), "sub")
    git(project, "clone", "-q", str(other), "nested")
    made = sandbox.create(project)
    assert (Path(made.worktree) / "sub").is_dir()
    assert not any(name.startswith(("sub/", "nested/")) for name in files_of(Path(made.worktree)))
    assert any("nested" in warning for warning in made.warnings)
    assert sandbox.status(made).dirty == ()
    sandbox.discard(made)
    assert (project / "sub" / "train.py").exists()


def test_large_files_are_left_where_they_are(project):
    with open(project / "weights.pt", "wb") as file:
        file.truncate(65 << 20)
    made = sandbox.create(project)
    assert "weights.pt" not in files_of(Path(made.worktree))
    assert any("weights.pt" in warning for warning in made.warnings)


def test_diff_commit_status_and_checkout(project):
    made = sandbox.create(project)
    first = sandbox.commit_diff(made, "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-print('unstaged')\n+print('faster')\n", "one knob")
    assert sandbox.head(made) == first
    assert (Path(made.worktree) / "train.py").read_text() == "print('faster')\n"
    assert (Path(made.baseline) / "train.py").read_text() == "print('unstaged')\n"
    assert "+print('faster')" in sandbox.diff(made)
    (Path(made.worktree) / "new.py").write_text("n = 1\n")
    now = sandbox.status(made)
    assert now.dirty == ("new.py",)
    assert now.commits == ((first, "one knob"),)
    assert "+n = 1" in sandbox.diff(made)
    with pytest.raises(UsageError, match=r"in no commit: new\.py"):
        sandbox.commit_diff(made, "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-#!/bin/sh\n+#!/bin/bash\n", "two")
    second = sandbox.commit_worktree(made, "by hand")
    sandbox.checkout(made, "candidate", made.base_ref)
    assert not (Path(made.worktree) / "new.py").exists()
    assert_equal_files(project, Path(made.worktree), files_of(Path(made.baseline)))
    sandbox.checkout(made, "candidate", second)
    assert (Path(made.worktree) / "new.py").exists()
    assert "+n = 1" in sandbox.diff(made, first, second)
    git(project, "gc", "-q", "--prune=now")
    sandbox.checkout(made, "candidate", first)
    with pytest.raises(UsageError, match="no commit of this sandbox"):
        sandbox.checkout(made, "candidate", made.head)


@pytest.mark.parametrize(
    ("diff", "said"),
    [
        ("", "empty"),
        ("--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-print('other')\n+print(1)\n", "does not apply"),
        ("--- /dev/null\n+++ b/../up.py\n@@ -0,0 +1 @@\n+x\n", "does not apply"),
        ("--- /dev/null\n+++ /etc/up.py\n@@ -0,0 +1 @@\n+x\n", "absolute path"),
        ("--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+x\n", "does not apply"),
        ("--- /dev/null\n+++ b/link/x\n@@ -0,0 +1 @@\n+x\n", "does not apply"),
        (LEAVING_LINK, "link out"),
    ],
)
def test_a_diff_that_must_not_apply_changes_nothing(project, diff, said):
    made = sandbox.create(project)
    before = look(Path(made.worktree))
    with pytest.raises(UsageError, match=said) as caught:
        sandbox.commit_diff(made, diff, "bad")
    assert caught.value.mend
    assert look(Path(made.worktree)) == before
    assert sandbox.head(made) == made.base_ref


def test_a_second_sandbox_needs_another_place(project, tmp_path):
    made = sandbox.create(project)
    with pytest.raises(UsageError, match="already") as caught:
        sandbox.create(project)
    assert "discard" in caught.value.mend
    assert "--base" in caught.value.mend
    other = sandbox.create(project, tmp_path / "elsewhere")
    assert other.directory != made.directory
    assert sandbox.newest(project) == other
    assert sandbox.load(Path(other.directory)) == other
    sandbox.discard(other)
    assert sandbox.newest(project) == made
    assert (Path(made.worktree) / "train.py").exists()
    assert sandbox.status(made).commits == ()


def test_a_sandbox_whose_checkouts_somebody_removed_is_made_anew(project):
    made = sandbox.create(project)
    (Path(made.directory) / "tuning_log.yaml").write_text("x")
    shutil.rmtree(made.worktree)
    assert sandbox.newest(project) is None
    with pytest.raises(UsageError, match="is gone") as caught:
        sandbox.load(Path(made.directory))
    assert "sandbox create" in caught.value.mend
    again = sandbox.create(project)
    assert again.directory == made.directory
    assert (Path(again.directory) / "tuning_log.yaml").exists()
    sandbox.discard(again)
    assert git(project, "worktree", "list").count("\n") == 1


def test_a_project_that_was_cloned_anew_has_no_runs_of_the_old_one(project, tmp_path):
    made = sandbox.create(project)
    runs = Path(made.directory, "runs", "diagnose-001")
    runs.mkdir(parents=True)
    Path(made.directory, "plan.yaml").write_text("x")
    shutil.rmtree(project)
    project.mkdir()
    (project / "train.py").write_text("print(1)\n")
    for arguments in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")):
        git(project, *arguments)
    assert sandbox.newest(project) is None
    again = sandbox.create(project)
    assert again.directory == made.directory and sandbox.diff(again) == ""
    assert not runs.exists() and not Path(made.directory, "plan.yaml").exists()


def test_a_sandbox_of_another_version_is_left_alone(project):
    made = sandbox.create(project)
    document = Path(made.directory) / "sandbox.json"
    document.write_text(document.read_text().replace("sandbox.v1", "sandbox.v9"))
    with pytest.raises(UsageError, match="cannot be read"):
        sandbox.create(project)
    assert Path(made.worktree, "train.py").exists()


def test_discard_keeps_log_and_reports_unless_everything(project):
    made = sandbox.create(project)
    for name in ("tuning_log.yaml", "report.html", "plan.yaml"):
        (Path(made.directory) / name).write_text("x")
    sandbox.discard(made)
    assert sorted(os.listdir(made.directory)) == ["report.html", "tuning_log.yaml"]
    again = sandbox.create(project)
    assert (Path(again.directory) / "tuning_log.yaml").exists()
    sandbox.discard(again, everything=True)
    assert not Path(made.directory).exists()


def test_the_owners_own_worktrees_stay(project, tmp_path):
    git(project, "worktree", "add", "-q", "--detach", str(tmp_path / "baseline"))
    shutil.rmtree(tmp_path / "baseline")  # stale, but the owner's
    made = sandbox.create(project)
    sandbox.discard(made)
    assert git(project, "worktree", "list").count("\n") == 2


def test_drift_of_the_original_is_reported(project):
    made = sandbox.create(project)
    (project / "train.py").write_text("edited\n")
    (project / "data" / "y.bin").write_text("")
    assert sandbox.original_changes(made) == ("new data/y.bin", "changed train.py")
    assert (Path(made.worktree) / "train.py").read_text() == "print('unstaged')\n"


@pytest.mark.parametrize("after_s", [0.15, 0.25, 0.35, 0.5])
def test_a_kill_in_the_middle_of_create_blocks_nothing(project, tmp_path, after_s):
    for number in range(300):
        (project / f"file{number}.py").write_text(f"{number}\n")
    before, refs = look(project), git(project, "for-each-ref")
    code = f"from pathlib import Path; from trainflash import sandbox; sandbox.create(Path({str(project)!r}))"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    time.sleep(after_s)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    made = sandbox.newest(project) or sandbox.create(project)
    assert "train.py" in files_of(Path(made.worktree))
    sandbox.discard(made)
    assert look(project) == before
    assert git(project, "for-each-ref") == refs


def test_two_at_once_do_not_meet(project):
    code = f"from pathlib import Path; from trainflash import sandbox; sandbox.create(Path({str(project)!r}))"
    children = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(2)]
    said = [child.communicate()[1] for child in children]
    assert sorted(child.returncode for child in children) == [0, 1]
    assert any(b"UsageError" in text for text in said)
    assert sandbox.newest(project) is not None


def test_a_project_that_was_edited_since_is_told_and_one_that_only_ran_is_not(project):
    made = sandbox.create(project)
    (project / "__pycache__").mkdir(exist_ok=True)
    (project / "__pycache__" / "train.cpython-311.pyc").write_bytes(b"bytecode")
    assert sandbox.drifted(made) == ()
    edited = next(path for path in sorted(project.glob("*.py")))
    edited.write_text(edited.read_text() + "# later\n")
    assert sandbox.drifted(made) == (edited.name,)


def test_a_lock_is_waited_for_a_moment_and_no_longer(project, monkeypatch):
    monkeypatch.setattr(lifecycle, "LOCK_PATIENCE_S", 0.3)
    held, mine = (os.open(project, os.O_RDONLY) for _ in range(2))
    assert sandbox.hold(held) and not sandbox.hold(mine)
    released = threading.Timer(0.1, os.close, (held,))
    released.start()
    assert sandbox.hold(mine)
    released.join()
    os.close(mine)
