"""Write-backs into real projects: exactly the approved diff, whole or not at all, and back again."""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainflash import sandbox, writeback
from trainflash.cli import main
from trainflash.errors import ApprovalNeeded, Rejected, UsageError
from trainflash.schema import Command, Experiment, Verdict, write_document
from trainflash.writeback import journal

ACCEPT = Verdict("accept", None, None, 6, ("faster and the same",))
SOURCE = "".join(f"line {number}\n" for number in range(1, 31))


def git(where, *arguments):
    command = ["git", "-c", "user.name=Owner", "-c", "user.email=owner@example.org", *arguments]
    return subprocess.run(command, cwd=where, check=True, capture_output=True, text=True).stdout


def look(root):
    """Bytes or target, mode and time of change of every file of the project."""
    seen = {}
    for path in root.rglob("*"):
        if ".git" in path.relative_to(root).parts or (path.is_dir() and not path.is_symlink()):
            continue
        facts = path.lstat()
        seen[str(path.relative_to(root))] = (
            os.readlink(path) if path.is_symlink() else path.read_bytes(),
            facts.st_mode,
            facts.st_mtime_ns,
            facts.st_uid,
        )
    return seen


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "my project"
    root.mkdir()
    (root / "train.py").write_text(SOURCE)
    (root / "crlf.txt").write_bytes(b"one\r\ntwo\r\nlast without end")
    (root / "old.py").write_text("o = 1\n")
    (root / "blob.bin").write_bytes(bytes(range(256)))
    (root / "link").symlink_to("train.py")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "train.py").chmod(0o640)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    os.utime(root / "train.py", ns=(10**18, 10**18 + 7))
    return root


@pytest.fixture
def box(project):
    return sandbox.create(project)


def experiment(box, n, commit, *, decision="accepted", verdict=ACCEPT, parent=None):
    return Experiment(
        n=n,
        parent=parent,
        knob="knob",
        value="1",
        finding=None,
        location=None,
        risk="same",
        why="test",
        commit=commit,
        parent_commit=box.base_ref,
        diff_digest="",
        files=(),
        command=Command(("python", "train.py")),
        created_utc="2025-01-01T00:00:00+00:00",
        verdict=verdict,
        decision=decision,
    )


@pytest.fixture
def one(box):
    """Edits, makes, deletes, and changes a mode, a link and a binary file."""
    tree = Path(box.worktree)
    (tree / "train.py").write_text(SOURCE.replace("line 5\n", "line five\n"))
    (tree / "crlf.txt").write_bytes(b"one\r\nTWO\r\nlast without end")
    (tree / "old.py").unlink()
    (tree / "new" / "deep").mkdir(parents=True)
    (tree / "new" / "deep" / "n.py").write_text("n = 1\n")
    (tree / "blob.bin").write_bytes(bytes(reversed(range(256))))
    (tree / "run.sh").chmod(0o755)
    (tree / "link").unlink()
    (tree / "link").symlink_to("run.sh")
    return experiment(box, 1, sandbox.commit_worktree(box, "one"))


def test_exactly_the_approved_diff_is_written_and_undo_restores_everything(box, project, one):
    before = look(project)
    proposal = writeback.propose(box, [one])
    assert proposal.approvable, proposal.reason
    assert set(proposal.files) == {"train.py", "crlf.txt", "old.py", "new/deep/n.py", "blob.bin", "run.sh", "link"}
    for part in ("-line 5", "+line five", "new mode 100755", "GIT binary patch", "deleted file mode", "new file mode", "-two\r\n+TWO\r\n"):
        assert part in proposal.diff
    assert look(project) == before
    copy = project.parent / "copy"
    shutil.copytree(project, copy, symlinks=True)
    approval = writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert approval.files == proposal.files
    subprocess.run(["git", "apply", "-"], cwd=copy, input=proposal.diff.encode("utf-8", "surrogateescape"), check=True)
    written = look(project)
    assert {name: facts[0] for name, facts in written.items()} == {name: facts[0] for name, facts in look(copy).items()}
    assert written["train.py"][1] == before["train.py"][1]
    assert written["run.sh"][1] & 0o777 == 0o755
    assert {name for name in before if before[name] != written.get(name)} == set(proposal.files) - {"new/deep/n.py"}
    undone = writeback.undo(box)
    assert undone.undone
    assert look(project) == before
    assert not (project / "new").exists()
    with pytest.raises(UsageError, match="no write-back to undo"):
        writeback.undo(box)
    again = writeback.propose(box, [one])
    assert again.digest == proposal.digest
    writeback.apply(box, again, approved_digest=again.digest, how="terminal")
    assert [one.undone for one in writeback.approvals(box)] == [False]


@pytest.mark.parametrize("digest", ["", "0" * 64, "prefix"])
def test_another_digest_writes_nothing(box, project, one, digest):
    before = look(project)
    proposal = writeback.propose(box, [one])
    given = proposal.digest[:12] if digest == "prefix" else digest
    with pytest.raises(ApprovalNeeded) as caught:
        writeback.apply(box, proposal, approved_digest=given, how="digest")
    assert caught.value.exit_code == 5
    assert caught.value.mend
    assert look(project) == before


@pytest.mark.parametrize("digest", ["", " "])
def test_an_empty_approval_on_the_command_line_writes_nothing(box, project, one, digest):
    write_document(Path(box.directory, "experiments", "1", "experiment.json"), dataclasses.replace(one, parent_commit=box.base_ref))
    before = look(project)
    assert main(["writeback", "--accepted", "--approve", digest, "--sandbox", box.directory]) == 5
    assert look(project) == before


def test_who_may_not_propose_may_not_write(box, project, one):
    before = look(project)
    proposal = dataclasses.replace(writeback.propose(box, [one]), approvable=False, reason="not verified together")
    with pytest.raises(Rejected, match="not verified together"):
        writeback.apply(box, proposal, approved_digest=proposal.digest, how="elicitation")
    assert look(project) == before


def test_ctrl_c_while_writing_leaves_all_as_it_was(box, project, one, monkeypatch):
    before = look(project)
    proposal = writeback.propose(box, [one])
    for place in ("_put", "finish"):
        with monkeypatch.context() as patched:
            patched.setattr(journal, place, interrupt)
            with pytest.raises(KeyboardInterrupt):
                writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
        assert look(project) == before
    assert [each for each in writeback.approvals(box) if not each.undone] == []


def interrupt(*_):
    raise KeyboardInterrupt


def test_an_approval_does_not_hold_for_another_state_or_verdict(box, project, one):
    proposal = writeback.propose(box, [one])
    other = dataclasses.replace(one, verdict=dataclasses.replace(ACCEPT, starts=7))
    assert writeback.propose(box, [other]).digest != proposal.digest
    (project / "train.py").write_text(SOURCE + "the owner's line\n")
    before = look(project)
    with pytest.raises(ApprovalNeeded):
        writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert look(project) == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"decision": "pending"}, "pending"),
        ({"decision": "rejected"}, "rejected"),
        ({"verdict": None}, "no verdict"),
        ({"verdict": dataclasses.replace(ACCEPT, verdict="inconclusive")}, "no verdict that accepts"),
    ],
)
def test_what_was_not_accepted_is_not_written(box, project, one, change, said):
    before = look(project)
    proposal = writeback.propose(box, [dataclasses.replace(one, **change)])
    assert not proposal.approvable
    assert said in proposal.reason
    with pytest.raises(Rejected):
        writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert look(project) == before


def test_a_commit_between_that_nobody_accepted_is_not_written(box, one):
    second = sandbox.commit_diff(box, "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1,2 @@\n #!/bin/sh\n+true\n", "two")
    alone = writeback.propose(box, [experiment(box, 2, second, parent=1)])
    assert not alone.approvable
    assert "belongs to none" in alone.reason
    both = writeback.propose(box, [one, experiment(box, 2, second, parent=1)])
    assert both.approvable
    assert "+true" in both.diff
    assert "+line five" in both.diff


def test_the_owners_later_edits_are_kept(box, project, one):
    (project / "train.py").write_text(SOURCE.replace("line 25\n", "the owner's line\n"))
    (project / "mine.py").write_text("m = 1\n")
    proposal = writeback.propose(box, [one])
    assert proposal.approvable
    assert "owner's line" not in "".join(line for line in proposal.diff.splitlines() if line[:1] in "+-")
    writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    text = (project / "train.py").read_text()
    assert "line five\n" in text
    assert "the owner's line\n" in text
    assert (project / "mine.py").exists()
    assert not writeback.propose(box, [one]).approvable


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda root: (root / "train.py").write_text(SOURCE.replace("line 5\n", "mine\n")), r"train\.py:5:"),
        (lambda root: (root / "train.py").unlink(), "train.py: the owner deleted"),
        (lambda root: (root / "old.py").write_text("mine\n"), "old.py: the owner changed"),
        (lambda root: (root / "blob.bin").write_bytes(b"\0mine"), r"blob\.bin \(not text\)"),
        (lambda root: ((root / "new" / "deep").mkdir(parents=True), (root / "new" / "deep" / "n.py").write_text("mine")), "owner made"),
    ],
)
def test_where_both_changed_the_same_place_nothing_is_written(box, project, one, edit, said):
    edit(project)
    before = look(project)
    with pytest.raises(Rejected, match=said) as caught:
        writeback.propose(box, [one])
    assert caught.value.mend
    assert look(project) == before


def test_undo_refuses_when_the_owner_edited_since(box, project, one):
    proposal = writeback.propose(box, [one])
    writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    (project / "crlf.txt").write_text("mine\n")
    before = look(project)
    with pytest.raises(UsageError, match=r"crlf\.txt was edited since"):
        writeback.undo(box)
    assert look(project) == before


def test_a_folder_that_became_a_link_is_not_followed(box, project, tmp_path):
    (Path(box.worktree) / "pkg").mkdir()
    (Path(box.worktree) / "pkg" / "a.py").write_text("a\n")
    made = experiment(box, 1, sandbox.commit_worktree(box, "one"))
    (tmp_path / "elsewhere").mkdir()
    (project / "pkg").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is a link now"):
        writeback.propose(box, [made])
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_subfolder_project_is_written_where_it_lies(project):
    (project / "sub").mkdir()
    (project / "sub" / "train.py").write_text("a = 1\n")
    git(project, "add", ".")
    made = sandbox.create(project / "sub")
    commit = sandbox.commit_diff(made, "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n", "one")
    proposal = writeback.propose(made, [experiment(made, 1, commit)])
    assert proposal.files == ("train.py",)
    writeback.apply(made, proposal, approved_digest=proposal.digest, how="digest")
    assert (project / "sub" / "train.py").read_text() == "a = 2\n"
    assert (project / "train.py").read_text() == SOURCE


KILLED = """
import os, signal, sys
from pathlib import Path
from trainflash import sandbox, writeback
from trainflash.cli import main
from trainflash.schema import Experiment, read_document
box = sandbox.load(Path(sys.argv[1]))
one = read_document(Experiment, Path(sys.argv[2]))
left = int(sys.argv[3])
def stop(event, arguments):
    global left
    if event in ("os.rename", "os.remove", "os.mkdir", "os.chmod") and sys.argv[4] in str(arguments[0]) + str(arguments[1]):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
proposal = writeback.propose(box, [one]) if sys.argv[5] == "apply" else None
sys.addaudithook(stop)
writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest") if proposal else writeback.undo(box)
print("finished")
"""


@pytest.mark.parametrize(
    ("verb", "within", "places"),
    [
        ("apply", "my project/", range(0, 60, 12)),
        ("undo", "my project/", range(0, 60, 12)),
        ("undo", "writebacks/", range(60)),
        pytest.param("apply", "my project/", range(60), marks=pytest.mark.full),
        pytest.param("undo", "my project/", range(60), marks=pytest.mark.full),
        pytest.param("apply", "writebacks/", range(60), marks=pytest.mark.full),
    ],
)
def test_a_kill_at_any_change_leaves_all_or_nothing(box, project, one, tmp_path, verb, within, places):
    write_document(tmp_path / "one.json", one)
    before = look(project)
    kills = 0
    for left in places:
        if verb == "undo":
            proposal = writeback.propose(box, [one])
            writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
        arguments = [box.directory, str(tmp_path / "one.json"), str(left), within, verb]
        child = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, text=True)
        if child.returncode == 0:
            break
        assert child.returncode == -9, child.stderr
        kills += 1
        assert writeback.recover(box) == ()
        if any(not one.undone for one in writeback.approvals(box)):
            writeback.undo(box)
        assert look(project) == before
        assert not [name for name in os.listdir(project) if name.startswith(".trainflash")]
    assert kills >= 1
    assert child.stdout == "finished\n"


def test_a_file_that_cannot_be_written_leaves_all_as_it_was(box, project, one, monkeypatch):
    before = look(project)
    proposal = writeback.propose(box, [one])
    replace, calls = os.replace, []

    def failing(source, target):
        if str(project) in str(target):
            calls.append(target)
            if len(calls) == 3:
                raise OSError(28, "No space left on device", str(target))
        replace(source, target)

    monkeypatch.setattr(journal.os, "replace", failing)
    with pytest.raises(UsageError, match="nothing was changed"):
        writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert look(project) == before
    assert writeback.approvals(box) == ()


def test_the_record_outlives_the_sandbox(box, project, one):
    proposal = writeback.propose(box, [one])
    writeback.apply(box, proposal, approved_digest=proposal.digest, how="elicitation")
    sandbox.discard(box)
    assert (Path(box.directory) / "writebacks" / f"{proposal.digest}.json").exists()
