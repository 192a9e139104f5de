"""Views tried with real processes: candidate edits on the original's path, data read from it, and every write kept away from it."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from trainflash import sandbox
from trainflash.errors import UsageError
from trainflash.view import open_view, protection, trial

ROOT = os.geteuid() == 0
GIT = ["git", "-c", "user.name=Owner", "-c", "user.email=owner@example.org"]

ATTACK = """
import os, shutil, sys
from pathlib import Path
def attempt(do, *arguments):
    try:
        do(*arguments)
    except OSError as bad:
        print("refused", arguments[0], bad.errno)
here, original, home = Path.cwd(), Path(os.fsdecode(bytes.fromhex(sys.argv[1]))), Path(os.environ["HOME"])
write = lambda path: open(path, "w").close()
folders = [here, here / "data", here.parent, home, home / "new", original, original / "data", original.parent, Path("/etc"), Path("/usr")]
for folder in folders:
    attempt(lambda path: write(path / "trainflash-was-here"), folder)
for path in (here / "train.py", original / "train.py", original / "data" / "x.bin", home / "file"):
    attempt(write, path)
    attempt(lambda path: path.unlink(), path)
for path in (here / "pkg", original / "pkg", original / "data"):
    attempt(shutil.rmtree, path)
attempt(lambda path: path.rename(here / "moved"), original / "keep")
print("alive")
"""
STAMPS = """
import os, sys
for path in sys.argv[1:]:
    os.chmod(path, 0o777)
    os.utime(path, (1, 1))
"""


def look(root):
    """Bytes, mode and time of change of everything beneath `root`."""
    seen = {}
    for at, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(at, name)
            facts = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
            seen[path] = (content, facts.st_mode, facts.st_mtime_ns)
    return seen


def git(where, *arguments):
    return subprocess.run([*GIT, *arguments], cwd=where, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "file").write_text("mine\n")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / ".local" / "state"))
    return folder


@pytest.fixture
def project(home, tmp_path):
    root = tmp_path / "work, of: \\me" / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "data" / "deep").mkdir(parents=True)
    (root / "train.py").write_text("print('owner')\n")
    (root / "pkg" / "old.py").write_text("o = 1\n")
    (root / "keep").write_text("k\n")
    (root / ".gitignore").write_text("data/\n__pycache__/\n")
    (root / "data" / "x.bin").write_bytes(b"data")
    (root / "data" / "deep" / "y.bin").write_bytes(b"deep")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    (root / "train.py").write_text("print('dirty')\n")
    return root


@pytest.fixture
def box(project):
    return sandbox.create(project)


@pytest.fixture
def run_dir(box):
    folder = Path(box.directory, "runs", "one")
    folder.mkdir(parents=True)
    return folder


def run(view, *command, **options):
    environment = {**os.environ, **view.env}
    return subprocess.run(view.argv(command), cwd=view.cwd, env=environment, capture_output=True, text=True, timeout=60, **options)


def python(view, code, *arguments):
    return run(view, sys.executable, "-c", textwrap.dedent(code), *arguments)


@contextlib.contextmanager
def opened(*arguments, **options):
    view = open_view(*arguments, **options)
    try:
        yield view
    finally:
        view.close()


needs_mount = pytest.mark.skipif("protection_here() != 'mount'", reason="no mount view on this machine")


def protection_here():
    code = "import sys; sys.path.append(sys.argv[1]); import syscalls; syscalls.unshare(syscalls.CLONE_NEWNS)"
    folder = str(Path(trial.__file__).parent)
    return "mount" if subprocess.run([sys.executable, "-c", code, folder], capture_output=True).returncode == 0 else "other"


def test_create_writes_down_what_holds(project):
    made = sandbox.create(project, protect=protection)
    assert (made.protection, made.protection_reason) == protection(made)
    assert sandbox.load(Path(made.directory)) == made


def test_what_holds_is_tried_once_and_leaves_nothing(box, project):
    before = look(project)
    kind, reason = protection(box)
    assert kind in ("mount", "landlock", "manifest")
    assert reason
    assert protection(box) == (kind, reason)
    assert look(project) == before
    assert os.listdir(Path(box.directory, "layers")) == []
    assert not [name for name in os.listdir(box.directory) if "trial" in name]


@needs_mount
def test_the_candidate_is_seen_on_the_original_path_with_the_data_of_the_original(box, project, run_dir):
    sandbox.commit_diff(box, "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-print('dirty')\n+print('candidate')\n", "one")
    with opened(box, "candidate", run_dir) as view:
        assert view.protection == "mount"
        assert view.project == str(project)
        done = python(view, "import os; print(os.getcwd()); exec(open('train.py').read()); print(open('data/deep/y.bin').read())")
        assert done.stdout.splitlines() == [str(project), "candidate", "deep"]
        assert run(view, "sh", "-c", "pwd; cat ../project/train.py").stdout.splitlines() == [str(project), "print('candidate')"]
    with opened(box, "baseline", run_dir, cwd="pkg") as view:
        assert run(view, "cat", "../train.py", "old.py").stdout == "print('dirty')\no = 1\n"


@needs_mount
def test_what_a_candidate_deletes_and_what_the_owner_makes_later_are_not_seen(box, project, run_dir):
    shutil.rmtree(Path(box.worktree, "pkg"))
    sandbox.commit_worktree(box, "without pkg")
    (project / "later.py").write_text("l = 1\n")
    (project / "data" / "later.bin").write_text("seen")
    with opened(box, "candidate", run_dir) as view:
        assert sorted(run(view, "ls").stdout.split()) == ["data", "keep", "train.py"]
        assert run(view, "cat", "data/later.bin").stdout == "seen"
        assert python(view, "import os; os.mkdir('pkg'); print(os.listdir('pkg'))").stdout == "[]\n"
    with opened(box, "baseline", run_dir) as view:
        assert sorted(run(view, "ls").stdout.split()) == ["data", "keep", "pkg", "train.py"]


@needs_mount
def test_a_program_that_writes_everywhere_changes_nothing_but_its_run_folder(box, project, home, run_dir):
    before, before_home = look(project.parent), look(home)
    with opened(box, "candidate", run_dir) as view:
        done = python(view, ATTACK, os.fsencode(project).hex())
        assert "alive" in done.stdout, done.stderr
        assert python(view, STAMPS, str(project / "train.py"), str(project / "data" / "x.bin"), str(home)).returncode in (0, 1)
        script = f"rm -rf -- * .git; echo x > '{run_dir}/arrived'; echo x > /dev/shm/$$; rm /dev/shm/$$"
        assert run(view, "sh", "-c", script).returncode == 0
        assert run(view, "ls", "-A").stdout == ".git\n.gitignore\n"
        assert run(view, "ls", "-A", ".git").stdout == ""
        written = view.written()
        assert str(project / "train.py") in written
        assert str(home / "trainflash-was-here") in written
    assert (run_dir / "arrived").exists()
    assert look(project.parent) == before
    ours = Path(box.directory)
    assert {path: facts for path, facts in look(home).items() if path in before_home and ours not in (path, *path.parents)} == {
        path: facts for path, facts in before_home.items() if ours not in (path, *path.parents)
    }
    assert not Path("/etc/trainflash-was-here").exists()
    assert sandbox.original_changes(box) == ()
    assert os.listdir(Path(box.directory, "layers")) == []


@needs_mount
def test_a_run_sees_nothing_of_an_earlier_one(box, run_dir):
    for _ in range(2):
        with opened(box, "candidate", run_dir) as view:
            done = run(view, "sh", "-c", "set -C; mkdir outputs && echo x > data/cache && echo x > /tmp/made-by-trainflash-test")
            assert done.returncode == 0, done.stderr
    assert not Path("/tmp/made-by-trainflash-test").exists()


@needs_mount
def test_two_views_at_once_see_their_own_side_on_equal_paths(box, project, run_dir):
    sandbox.commit_diff(box, "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-print('dirty')\n+print('candidate')\n", "one")
    code = "import os, sys; sys.stdin.readline(); print(os.getcwd(), open('train.py').read()); open('data/mine', 'x').write('x')"
    with opened(box, "baseline", run_dir) as first, opened(box, "candidate", run_dir) as second:
        children = [
            subprocess.Popen(
                view.argv([sys.executable, "-c", code]), cwd=view.cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for view in (first, second)
        ]
        said = [child.communicate("go\n")[0] for child in children]
        assert [child.returncode for child in children] == [0, 0]
    assert said == [f"{project} print('dirty')\n\n", f"{project} print('candidate')\n\n"]


@needs_mount
def test_git_works_in_the_view_and_the_repository_stays(box, project, run_dir):
    before = look(project)
    with opened(box, "baseline", run_dir) as view:
        assert run(view, "git", "rev-parse", "--show-toplevel").stdout.strip() == str(project)
        assert run(view, "git", "status", "--porcelain").stdout == " M train.py\n"
        assert run(view, *GIT, "commit", "-q", "-a", "-m", "in the view").returncode == 0
        assert run(view, "git", "log", "--oneline").stdout.count("\n") == 2
    assert look(project) == before


@needs_mount
def test_subfolder_linked_worktree_and_no_git(home, project, tmp_path):
    linked = tmp_path / "linked"
    git(project, "worktree", "add", "-q", "--detach", str(linked))
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "train.py").write_text("print('plain')\n")
    for root, inner in ((project, project / "pkg"), (linked, linked), (plain, plain)):
        before = look(root)
        made = sandbox.create(inner, tmp_path / "boxes")
        runs = Path(made.directory, "runs")
        runs.mkdir()
        with opened(made, "candidate", runs) as view:
            assert view.protection == "mount"
            assert run(view, "pwd").stdout.strip() == str(inner)
            assert run(view, "cat", str(root / "train.py")).stdout
            assert run(view, "sh", "-c", f"echo x > '{inner}/made' && rm '{root}/train.py'").returncode == 0
            toplevel = run(view, "git", "rev-parse", "--show-toplevel").stdout.strip()
            assert toplevel == ("" if root == plain else str(root))
        after = {path: facts for path, facts in look(root).items() if ".git" not in path.parts or path in before}
        assert {path: facts[:2] for path, facts in after.items()} == {path: facts[:2] for path, facts in before.items()}
        sandbox.discard(made)


@needs_mount
def test_a_socket_in_tmp_answers_in_the_view(box, run_dir, tmp_path_factory):
    path = f"/tmp/trainflash-test-{os.getpid()}.socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        try:
            with opened(box, "baseline", run_dir) as view:
                code = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('answered')"
                assert python(view, code, path).stdout == "answered\n"
        finally:
            os.unlink(path)


@needs_mount
def test_a_folder_that_the_owner_names_is_layered(box, run_dir, tmp_path):
    folder = tmp_path / "outputs"
    folder.mkdir()
    command = ("sh", "-c", f"echo x > '{folder}/y'")
    with opened(box, "baseline", run_dir, writable=[str(folder)]) as view:
        assert run(view, *command).returncode == 0
        assert str(folder / "y") in view.written()
    assert os.listdir(folder) == []
    with pytest.raises(UsageError, match="not a folder"):
        open_view(box, "baseline", run_dir, writable=[str(folder / "nowhere")])


@needs_mount
def test_the_program_cannot_undo_the_view(box, project, run_dir):
    with opened(box, "baseline", run_dir) as view:
        for command in (("mount", "-o", "remount,rw", "/"), ("umount", str(project)), ("nsenter", "-t", "1", "-m", "true")):
            assert run(view, *command).returncode != 0
        outside = f"/proc/{os.getpid()}/root{project}/through"
        assert run(view, "sh", "-c", f"echo x > '{outside}'").returncode != 0
    assert not (project / "through").exists()


@needs_mount
def test_the_program_dies_with_the_process_that_started_it(box, run_dir):
    with opened(box, "baseline", run_dir) as view:
        inner = view.argv([sys.executable, "-c", f"import os, time; open('{run_dir}/pid', 'w').write(str(os.getpid())); time.sleep(60)"])
        code = "import json, subprocess, sys; subprocess.run(json.loads(sys.argv[1]))"
        parent = subprocess.Popen([sys.executable, "-c", code, json.dumps(inner)])
        deadline = time.monotonic() + 20
        while not ((run_dir / "pid").exists() and (run_dir / "pid").read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        pid = int((run_dir / "pid").read_text())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            if "Z" in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1][:3]:
                break
            time.sleep(0.02)
        else:
            assert not Path(f"/proc/{pid}").exists()


@needs_mount
def test_where_the_sandbox_lies_on_an_overlay_something_else_protects(box, project, run_dir):
    """Inside a view every folder is one, as in a container: layers go elsewhere, or Landlock takes over."""
    code = """
    import os, subprocess, sys
    from pathlib import Path
    from trainflash import sandbox
    from trainflash.view import open_view, protection
    project = Path(sys.argv[1])
    inner = sandbox.create(project, Path(sys.argv[2]))
    runs = Path(inner.directory, "runs")
    runs.mkdir()
    print(*protection(inner))
    view = open_view(inner, "candidate", runs)
    script = "echo x > train.py && cat train.py; echo x > data/new; echo x > ../up; echo x > $(mktemp) && echo temporary"
    done = subprocess.run(view.argv(["sh", "-c", script]), cwd=view.cwd, env={**os.environ, **view.env}, capture_output=True, text=True)
    print(done.stdout, end="")
    view.close()
    print(sandbox.original_changes(inner), not os.path.lexists(project.parent / "up"), os.path.exists(view.layer))
    """
    with opened(box, "baseline", run_dir) as view:
        done = python(view, code, str(project), str(Path(os.environ["HOME"], "inner")))
    lines = done.stdout.splitlines()
    assert lines[0].startswith(("mount private", "landlock no mount view (layers cannot be made")), done.stderr
    assert lines[1:] == ["x", "temporary", "() True False"]


def test_signals_and_exit_codes_are_those_of_the_program(box, run_dir):
    with opened(box, "baseline", run_dir) as view:
        assert run(view, "sh", "-c", "exit 7").returncode == 7
        assert run(view, "no-such-program").returncode == 127
        assert run(view, str(Path(box.project, "train.py"))).returncode == 126
        ignored = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
        assert python(view, ignored).stdout == "True\n"
        assert int(run(view, "grep", "SigIgn", "/proc/self/status").stdout.split()[1], 16) & 1 << signal.SIGPIPE - 1 == 0


def test_landlock_refuses_writes_to_the_original(box, project, home, run_dir):
    if trial._fails(box, trial.Strategy("landlock", "", str(Path(box.directory, "layers"))), _open_trial(box)) is not None:
        pytest.skip("no Landlock on this machine")
    before, before_home = look(project), (home / "file").read_bytes()
    sandbox.commit_diff(box, "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-print('dirty')\n+print('candidate')\n", "one")
    with opened(box, "candidate", run_dir, only="landlock") as view:
        assert view.protection == "landlock"
        assert view.project != str(project)
        done = python(view, ATTACK, os.fsencode(project).hex())
        assert "alive" in done.stdout, done.stderr
        assert f"refused {project}/train.py" in done.stdout
    with opened(box, "candidate", run_dir, only="landlock") as view:
        assert run(view, "cat", "train.py", "data/x.bin").stdout == "print('candidate')\ndata"
        assert run(view, "sh", "-c", "echo x > data/new && echo x > outputs").returncode == 0
        assert run(view, "sh", "-c", f"echo x > '{run_dir}/arrived'").returncode == 0
        assert {Path(path).name for path in view.written()} == {"new", "outputs"}
        assert run(view, "sh", "-c", "echo x > data/x.bin").returncode != 0
    ours = (project / ".git" / name for name in ("worktrees", "refs", "objects"))
    skipped = tuple(str(path) for path in ours)
    assert {p: f for p, f in look(project).items() if not str(p).startswith(skipped)} == {
        p: f for p, f in before.items() if not str(p).startswith(skipped)
    }
    assert (home / "file").read_bytes() == before_home


def test_without_any_protection_a_write_to_the_original_is_seen(box, project, run_dir):
    with opened(box, "baseline", run_dir, only="manifest") as view:
        assert view.protection == "manifest"
        assert run(view, "sh", "-c", "echo x > data/x.bin; echo y > data/fresh; echo z > train.py").returncode == 0
    assert sandbox.original_changes(box) == ("changed data/x.bin",)
    assert (project / "data" / "x.bin").read_text() == "x\n"
    assert (project / "train.py").read_text() == "print('dirty')\n"


def test_the_trial_catches_a_view_that_protects_nothing(box):
    said = trial._fails(box, trial.Strategy("manifest", "", str(Path(box.directory, "layers"))), _open_trial(box))
    assert said is not None
    assert "a write reached" in said
    assert sandbox.original_changes(box) == ()


def test_in_place_runs_in_the_original(box, project, run_dir):
    with opened(box, "baseline", run_dir, in_place=True) as view:
        assert view.protection == "in_place"
        assert run(view, "sh", "-c", "pwd; echo x > made").stdout.strip() == str(project)
        assert view.written() == ()
    assert sandbox.original_changes(box) == ("new made",)


@pytest.mark.parametrize("protection", ["mount", "landlock", "manifest"])
def test_what_a_run_wrote_is_said_with_its_size(box, project, run_dir, protection):
    view = open_view(box, "candidate", run_dir, only=protection)
    code = "import tempfile; open('data/big', 'wb').write(b'x' * 3_000_000); open('small', 'w').write('x'); tempfile.mkstemp()"
    try:
        words = view.argv([sys.executable, "-I", "-S", "-c", code])
        done = subprocess.run(words, cwd=view.cwd, env={**os.environ, **view.env}, capture_output=True, text=True)
        if "the view cannot be entered" in done.stderr:
            pytest.skip("not to be had on this machine")
        assert done.returncode == 0, done.stderr
        outputs = view.outputs()
    finally:
        view.close()
    assert list(outputs) == ["data/big", "small"]
    assert 3_000_000 <= outputs["data/big"] < 4_000_000


def test_a_working_folder_that_is_not_there_is_said(box, run_dir):
    with pytest.raises(UsageError, match="no such folder"):
        open_view(box, "baseline", run_dir, cwd="nowhere")
    with pytest.raises(UsageError, match="not a folder"):
        open_view(box, "baseline", run_dir / "nowhere")


@pytest.mark.skipif(not ROOT, reason="only root can become somebody else")
@pytest.mark.skipif(not shutil.which("setpriv") or not os.access("/usr/bin/python3", os.X_OK), reason="needs setpriv and a system Python")
def test_an_ordinary_user_gets_a_mount_view_too(home, project, tmp_path):
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*nobody, "/usr/bin/python3", "-I", trial.__file__], capture_output=True).returncode == 2:
        pytest.skip("this checkout cannot be read by other users")
    made = sandbox.create(project)
    runs = Path(made.directory, "runs")
    runs.mkdir()
    asks = tmp_path / "tools" / "srun"  # would start something outside of the view
    asks.parent.mkdir()
    asks.write_text("#!/bin/sh\necho bad\n")
    asks.chmod(0o755)
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    os.chown(project / "data", 65534, 100)  # as in a project that a group shares
    closed = [parent for parent in tmp_path.parents if not parent.stat().st_mode & 0o001]
    code = """
    import codecs, os, subprocess, sys
    from pathlib import Path
    from trainflash import sandbox
    from trainflash.view import open_view, protection
    codecs.lookup("ascii")  # loaded while its folder can still be read
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    sys.executable = "/usr/bin/python3"
    os.environ["PATH"] = f"{sys.argv[2]}:{os.environ['PATH']}"
    box = sandbox.load(Path(sys.argv[1]))
    print(protection(box)[0], protection(box)[1], file=sys.stderr)
    view = open_view(box, "candidate", Path(box.directory, "runs"))
    script = "id -u; grep CapEff /proc/self/status; echo x > train.py; echo x > data/new && echo wrote"
    script += "; rm -rf data pkg; ls; mount -o remount,rw / && echo bad; srun train.py"
    done = subprocess.run(view.argv(["sh", "-c", script]), cwd=view.cwd, capture_output=True, text=True)
    print(view.protection); print(done.stdout); print(done.stderr, file=sys.stderr)
    view.close()
    assert os.listdir(Path(box.directory, "layers")) == []
    """
    before = look(project)
    for parent in closed:
        parent.chmod(parent.stat().st_mode | 0o001)
    try:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), made.directory, asks.parent], capture_output=True, text=True, cwd="/"
        )
    finally:
        for parent in closed:
            parent.chmod(parent.stat().st_mode & ~0o001)
    if done.stdout.startswith(("landlock", "manifest")):
        pytest.skip(f"no user namespaces here: {done.stderr}")
    assert done.stdout.splitlines()[:4] == ["mount", "65534", "CapEff:\t0000000000000000", "wrote"], done.stderr
    assert "bad" not in done.stdout and "it was refused" in done.stderr
    assert look(project) == before


def _open_trial(box):
    return lambda strategy, run_dir: open_view(box, "baseline", run_dir, only=strategy.protection)
