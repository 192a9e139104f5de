"""`verify` of any two states of the owner's repository: how names become states, what is refused at once, what stays untouched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from trainflash import sandbox as sandboxes
from trainflash.cli import main
from trainflash.errors import UsageError
from trainflash.mcp_server.roots import Roots
from trainflash.mcp_server.verbs import answer
from trainflash.sandbox import refs
from trainflash.schema import Check, Command, Fidelity, Runs, Speedup, SpeedVerdict, Start, write_document
from trainflash.workflow import session, states, verifications, verifying

COMMAND = Command(("python", "train.py"))
SAME = Fidelity("same", (), 0.0, 0.0, 1e-3, 40, (), (), (Check("loss", True, "equal"),))
FASTER = SpeedVerdict("accept", Speedup(1.3, 1.2, 1.4, 4), "faster")


class Owner:
    """A repository with `main` (slow), `feature` (fast, made when main was younger) and a file that no commit holds."""

    def __init__(self, place: Path, folder: str = "") -> None:
        self.root = place
        self.project = place / folder
        self.project.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.write("train.py", "slow\n")
        self.start = self.commit("start")
        self.git("checkout", "-q", "-b", "feature")
        self.write("train.py", "fast\n")
        self.write("fast.py", "")
        self.fast = self.commit("faster")
        self.git("checkout", "-q", "main")
        self.write("notes.txt", "main went on\n")
        self.later = self.commit("later")
        self.write("points.csv", "1,2\n")

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=o", "-c", "user.email=o@localhost", *words], cwd=self.root, check=True, capture_output=True, text=True
        )
        return done.stdout

    def write(self, name: str, text: str) -> None:
        (self.project / name).write_text(text)

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def state(self) -> dict[str, object]:
        """All that a look must leave as it is."""
        files = {str(path): path.read_bytes() for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts}
        ours = "refs/trainflash/"
        named = [line for line in self.git("for-each-ref").splitlines() if ours not in line]
        return {
            "files": files,
            "index": (self.root / ".git" / "index").read_bytes(),
            "refs": named,
            "head": self.git("symbolic-ref", "HEAD"),
        }


@pytest.fixture
def owner(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Owner(tmp_path / "work" / "project")


@pytest.fixture
def measured(monkeypatch):
    """Every comparison that is asked for; what it finds is given."""
    seen: list[dict] = []

    def compare(box, baseline, candidate, directory, **options):
        texts = [Path(sandboxes.project_in(box, side), "train.py").read_text() for side in ("baseline", "candidate")]
        seen.append({"texts": texts, "directory": directory})
        starts = tuple(Start(n, "resident", 0.3, 0.3, "net", steps=240, spent_s=30.0) for n in range(1, 5))
        runs = Runs(options["shown"], starts, 5, machine={"cores": "2", "torch": "2.13.0"})
        write_document(directory / "runs.json", runs)
        return runs, FASTER

    monkeypatch.setattr(verifying.bench, "compare", compare)
    monkeypatch.setattr(verifying.fidelity, "check", lambda *_, **__: SAME)
    return seen


def pair(
    owner: Owner, baseline: str | None = None, candidate: str | None = None, command: Command = COMMAND
) -> tuple[states.Pair, session.Session]:
    asked = states.asked(None, baseline, candidate, owner.project)
    found = verifications.session_for(owner.project, None, asked)
    with found.locked():
        return states.pair(found, asked, command), found


def holds(found: session.Session, commit: str) -> dict[str, str]:
    git = sandboxes.lifecycle.repository_of(found.sandbox, found.sandbox.worktree)
    return {path: git.text("cat-file", "blob", entry.oid) for path, entry in git.tree(commit).items()}


def test_names_of_every_kind_become_states(owner, tmp_path):
    owner.git("tag", "v1", owner.start)
    owner.git("update-ref", "refs/remotes/origin/topic", owner.fast)
    owner.git("update-ref", "refs/remotes/fork/other", owner.fast)
    owner.git("remote", "add", "fork", str(tmp_path / "nowhere"))
    owner.git("update-ref", "refs/remotes/pull/12/merge", owner.fast)
    for name in ("feature", "topic", "origin/topic", "other", "pull/12/merge", owner.fast, owner.fast[:8]):
        made, found = pair(owner, "v1", name)
        assert (made.about.baseline.name, made.about.baseline.commit) == ("v1", owner.start)
        assert (made.about.candidate.name, made.about.candidate.commit) == (name, owner.fast)
        old, new = (holds(found, commit) for commit in made.commits)
        assert (old["train.py"], new["train.py"]) == ("slow", "fast")
        assert "fast.py" in new and "fast.py" not in old
        assert old["points.csv"] == new["points.csv"] == "1,2", "what no commit holds is on both sides"


def test_a_pull_request_that_was_only_fetched_has_its_name(owner, tmp_path):
    owner.git("update-ref", "refs/pull/7/head", owner.fast)
    clone = Path(str(tmp_path / "clone"))
    subprocess.run(["git", "clone", "-q", str(owner.root), str(clone)], check=True)
    with pytest.raises(UsageError, match=r"git knows no commit 'pull/7/head'") as refused:
        refs.commit_named(clone, "pull/7/head")
    assert "git fetch origin pull/7/head" in refused.value.mend
    subprocess.run(["git", "fetch", "-q", "origin", "pull/7/head"], cwd=clone, check=True)
    assert refs.commit_named(clone, "pull/7/head") == owner.fast
    assert refs.commit_named(clone, "feature") == owner.fast, "a branch of the remote that was never checked out"


def test_without_a_baseline_a_branch_is_compared_with_where_it_left(owner):
    made, _ = pair(owner, None, "feature")
    assert made.about.baseline.commit == owner.start, "not with main as it is now, which went on"
    assert made.about.note == f"baseline: {owner.start[:7]}, where {owner.fast[:7]} left main"
    made, _ = pair(owner, None, "main")
    assert made.about.baseline.commit == owner.start
    assert made.about.note.endswith(f"the commit before {owner.later[:7]}")
    with pytest.raises(UsageError, match=r"finds no commit that .* could be compared with") as refused:
        pair(owner, None, owner.start)
    assert "--baseline REF" in refused.value.mend


def test_without_a_candidate_the_project_as_it_is_now_is_judged(owner):
    owner.write("train.py", "edited\n")
    made, found = pair(owner, "main")
    old, new = (holds(found, commit) for commit in made.commits)
    assert (old["train.py"], new["train.py"]) == ("slow", "edited")
    assert made.about.candidate.name == states.NOW and made.about.candidate.commit is None


DIFF = "--- a/{0}train.py\n+++ b/{0}train.py\n@@ -1 +1 @@\n-slow\n+patched\n"


@pytest.mark.parametrize("named", ["", "code/"])
def test_a_patch_lies_on_its_baseline(tmp_path, monkeypatch, named):
    """Files named relative to the project, or to its repository as `git diff` does."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    owner = Owner(tmp_path / "work" / "repository", "code")
    (owner.project / "faster.diff").write_text(DIFF.format(named))
    made, found = pair(owner, "main", "faster.diff")
    old, new = (holds(found, commit) for commit in made.commits)
    assert (old["code/train.py"], new["code/train.py"]) == ("slow", "patched")
    assert str(made.about.candidate) == "faster.diff"
    made, found = pair(owner, None, "faster.diff")
    assert made.about.baseline.name == states.NOW
    with pytest.raises(UsageError, match=r"faster.diff: the diff does not apply: .*train.py") as refused:
        pair(owner, "feature", "faster.diff")
    assert "make it against feature" in refused.value.mend


@pytest.mark.parametrize(
    ("candidate", "says", "mend"),
    [
        ("nobody", "git knows no commit 'nobody'", "git fetch origin nobody"),
        ("--all", "git knows no commit '--all'", ""),
        ("gone.diff", "gone.diff: there is no such patch file", "git diff main > faster.diff"),
        ("train.py", "train.py is a file, and no commit", "*.diff or *.patch"),
        ("empty.patch", "empty.patch: is empty", ""),
    ],
)
def test_names_that_nobody_knows_are_refused(owner, candidate, says, mend):
    owner.write("empty.patch", "")
    with pytest.raises(UsageError, match=says.replace("*", r"\*")) as refused:
        pair(owner, "main", candidate)
    assert mend in refused.value.mend


def test_a_command_that_only_one_side_has_is_refused(owner):
    owner.git("checkout", "-q", "feature")
    (owner.project / "pkg").mkdir()
    owner.write("pkg/__main__.py", "")
    owner.commit("a package")
    owner.git("checkout", "-q", "main")
    for words in (("python", "fast.py"), ("torchrun", "--config=fast.py", "train.py"), ("python", "-m", "fast"), ("python", "-m", "pkg")):
        with pytest.raises(UsageError, match=r"the command names (fast\.py|pkg/__main__\.py), which feature .* has and main .* lacks"):
            pair(owner, "main", "feature", Command(words))
    made, _ = pair(owner, "main", "feature", Command(("python", "train.py", "--out", "elsewhere.json")))
    assert made.commands[0].argv[-1] == "elsewhere.json"


def test_what_a_commit_tracks_never_comes_from_what_lies_about(owner):
    owner.write("fast.py", "lies about, untracked, on main\n")
    made, found = pair(owner, "main", "feature")
    old, new = (holds(found, commit) for commit in made.commits)
    assert "fast.py" not in old and new["fast.py"] == ""
    (owner.project / "data").write_text("a file that no commit holds\n")
    owner.git("stash", "-q", "--include-untracked")
    owner.git("checkout", "-q", "-b", "folders")
    (owner.project / "data").mkdir()
    owner.write("data/x.csv", "1\n")
    owner.commit("a folder of that name")
    owner.git("checkout", "-q", "main")
    owner.git("stash", "pop", "-q")
    sandboxes.discard(found.sandbox, everything=True)
    made, found = pair(owner, "main", "folders")
    assert holds(found, made.commits[1])["data/x.csv"] == "1"


def test_what_git_lfs_keeps_elsewhere_is_there_on_both_sides(owner):
    """Commits hold a pointer; the project holds the data, which the program reads."""
    owner.write("data.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n")
    owner.commit("a pointer")
    owner.git("checkout", "-q", "-b", "topic")
    owner.write("train.py", "faster\n")
    owner.commit("topic")
    owner.write("data.bin", "data")  # as git-lfs puts it there
    made, found = pair(owner, "main", "topic")
    old, new = (holds(found, commit) for commit in made.commits)
    assert old["data.bin"] == new["data.bin"] == "data" and (old["train.py"], new["train.py"]) == ("slow", "faster")
    owner.write("train.py", "edited, and in no commit\n")
    sandboxes.discard(found.sandbox, everything=True)
    made, found = pair(owner, "main", "topic")
    assert holds(found, made.commits[0])["train.py"] == "slow", "an edit is none of a commit's"


def test_nothing_of_the_owners_is_touched_and_no_hook_runs(owner, measured, capsys, monkeypatch):
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "post-commit"):
        path = owner.root / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {owner.root.parent}/hook-ran\n")
        path.chmod(0o755)
    before = owner.state()
    monkeypatch.chdir(owner.project)
    assert main(["verify", "--baseline", "main", "--candidate", "feature", "--json", "--", "python", "train.py"]) == 0
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert "making a sandbox" in told.err and "starts the program" in told.err
    assert measured[0]["texts"] == ["slow\n", "fast\n"]
    assert answer["verdict"] == "accept" and answer["training"]["kinds"] == ["same training"]
    assert answer["compared"]["baseline"]["commit"] == owner.later and answer["compared"]["command"] == "python train.py"
    assert answer["machine"]["torch"] == "2.13.0"
    assert owner.state() == before
    assert not (owner.root.parent / "hook-ran").exists()
    comment = owner.root.parent / "comment.md"
    asked = ["verify", "--baseline", "main", "--candidate", "feature", "--summary"]
    assert main([*asked, str(comment), "--", "python", "train.py"]) == 0
    shown = capsys.readouterr()
    assert comment.read_text().startswith("<!-- trainflash verify -->") and "`python train.py`" in comment.read_text()
    assert f"feature ({owner.fast[:7]})" in shown.out
    assert measured[1]["directory"] == measured[0]["directory"], "it goes on from the starts that are there"
    assert main([*asked, str(owner.root), "--", "python", "train.py"]) == 2
    assert "is no place for a file" in capsys.readouterr().err and len(measured) == 2, "before anything runs"


def test_edits_of_what_commits_hold_say_nothing_about_commits(owner, measured, capsys, monkeypatch):
    monkeypatch.chdir(owner.project)
    asked = ["verify", "--baseline", "main", "--candidate", "feature", "--json", "--", "python", "train.py"]
    assert main(asked) == 0
    capsys.readouterr()
    owner.git("checkout", "-q", "feature")
    assert main(asked) == 0
    told = capsys.readouterr()
    assert "changed" not in told.err and "edited" not in str(json.loads(told.out)["reasons"])
    owner.write("points.csv", "3,4\n")
    assert main(asked) == 0
    told = capsys.readouterr()
    assert "files that no commit holds are as they were before points.csv changed" in told.err
    assert "points.csv" in json.loads(told.out)["reasons"][-1]


def test_a_budget_too_small_for_one_pair_is_said_at_once(owner, measured, capsys, monkeypatch):
    monkeypatch.chdir(owner.project)
    asked = ["verify", "--candidate", "feature", "--budget"]
    assert main([*asked, "5s", "--", "python", "train.py"]) == 2
    assert "a budget of 5 s is too small" in capsys.readouterr().err
    assert sandboxes.newest(owner.project) is None, "before a sandbox is made"
    assert main([*asked, "10m", "--", "python", "train.py"]) == 0
    capsys.readouterr()
    assert main([*asked, "25s", "--", "python", "train.py"]) == 2
    said = capsys.readouterr().err
    assert "one start of both took 30 s before" in said and "give at least 30s" in said
    assert len(measured) == 1


def test_an_experiment_beside_two_states_is_refused(owner, capsys, monkeypatch):
    monkeypatch.chdir(owner.project)
    assert main(["verify", "--experiment", "1", "--baseline", "main", "--", "python", "train.py"]) == 2
    assert "exclude each other" in capsys.readouterr().err
    assert main(["verify", "--", "python", "train.py"]) == 2
    assert "has no sandbox yet" in capsys.readouterr().err, "nothing can have been accepted"


def test_a_project_without_git_takes_a_patch_but_no_commits(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "plain"
    project.mkdir()
    (project / "train.py").write_text("slow\n")
    (project / "it.patch").write_text(DIFF.format(""))
    plain = type("Plain", (), {"project": project})()
    made, found = pair(plain, None, "it.patch")
    assert holds(found, made.commits[1])["train.py"] == "patched"
    with pytest.raises(UsageError, match="is in no git repository"):
        pair(plain, "main", "it.patch")


def test_try_makes_its_sandbox_itself(owner, measured, capsys, monkeypatch):
    monkeypatch.chdir(owner.project)
    owner.write("it.diff", DIFF.format(""))
    assert main(["optimize", "try", "--patch", "it.diff", "--json", "--", "python", "train.py"]) == 0
    told = capsys.readouterr()
    assert "making a sandbox" in told.err
    assert json.loads(told.out)["experiments"][0]["training"]["sentence"] == "trains the same"


def test_a_client_asks_the_same(owner, measured):
    roots = Roots((owner.project,))

    def asked(**given):
        return answer("verify", {"command": ["python", "train.py"], **given}, roots, lambda *_: None)

    told = asked(baseline="main", candidate="feature", bundle=True)
    assert told["status"] == "ok" and told["compared"]["candidate"]["commit"] == owner.fast
    assert told["training"]["sentence"] == "trains the same"
    assert zipfile.is_zipfile(told["bundle"])
    brought = asked(carried=told["bundle"])
    assert brought["carried"]["answer"] == "carries over" and brought["carried"]["digest"]
    owner.write("it.diff", DIFF.format(""))
    assert asked(candidate="it.diff")["compared"]["candidate"]["name"] == "it.diff"
    assert measured[-1]["texts"] == ["slow\n", "patched\n"]
    (owner.project.parent / "outside.diff").write_text(DIFF.format(""))
    assert "outside of the server's roots" in asked(candidate="../outside.diff")["error"]["message"]
    assert "outside of the server's roots" in asked(carried="../feature.zip")["error"]["message"]
    assert "exclude each other" in asked(experiment=1, candidate="feature")["error"]["message"]


PROGRAM = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
data = torch.randn(256, 16)
target = data.sum(1, keepdim=True).tanh()
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(30):
    order = torch.randperm(256)
    for at in range(0, 256, 32):
        index = order[at : at + 32]
        wasted = sum(n * 1e-9 for n in range(60000))
        loss = nn.functional.mse_loss(model(data[index]), target[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())
"""


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_branch_is_verified_from_a_clean_checkout(tmp_path):
    """With real starts: a clone in which nothing was ever done, one command, one verdict."""
    owner = Owner(tmp_path / "work" / "project")
    owner.write("train.py", PROGRAM)
    owner.commit("a real program")
    owner.git("checkout", "-q", "-b", "faster")
    owner.write("train.py", PROGRAM.replace("range(60000)", "range(600)"))
    owner.commit("less waste")
    owner.git("checkout", "-q", "main")  # which a clone then takes for the main branch
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "-b", "main", str(owner.root), str(clone)], check=True)
    bundle = tmp_path / "faster.zip"

    def verify(state: str, *words: str) -> dict:
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / state), "OMP_NUM_THREADS": "1"}
        typed = [sys.executable, "-m", "trainflash", "verify", *words, "--budget", "5m", "--json", "--", sys.executable, "train.py"]
        done = subprocess.run(typed, cwd=clone, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    answer = verify("state", "--candidate", "origin/faster", "--bundle", str(bundle))
    assert answer["verdict"] == "accept" and answer["speedup"]["ci_low"] > 1.5
    assert answer["training"] == {"sentence": "trains the same", "kinds": ["same training"]}
    assert "left main" in answer["compared"]["note"]
    assert subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True).stdout == ""
    brought = verify("another-state", "--carried", str(bundle))
    assert brought["carried"]["answer"] == "carries over" and brought["carried"]["differs"] == []
    assert brought["carried"]["there"]["speedup"] == answer["speedup"] != brought["speedup"], "measured here, anew"


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_program_that_trains_for_a_time_is_told_to_train_for_steps(owner):
    timed = PROGRAM.replace(
        "for epoch in range(30):", "import time\nuntil = time.time() + 6\nepoch = 0\nwhile time.time() < until:\n    epoch += 1"
    )
    owner.write("train.py", timed)
    owner.commit("six seconds")
    owner.git("checkout", "-q", "-b", "faster")
    owner.write("train.py", timed.replace("range(60000)", "range(600)"))
    owner.commit("less waste")
    asked = ["verify", "--candidate", "faster", "--budget", "3m", "--json", "--", sys.executable, "train.py"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", "trainflash", *asked], cwd=owner.project, env=environment, capture_output=True, text=True)
    assert done.returncode == 3, done.stdout + done.stderr
    reasons = json.loads(done.stdout)["reasons"]
    assert any("depends on time" in reason and "number of steps" in reason for reason in reasons), reasons
