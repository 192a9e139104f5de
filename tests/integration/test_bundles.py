"""A verdict in one file: what it holds and does not hold, how it is opened as a stranger's, and what another machine says of it."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from trainflash import sandbox as sandboxes
from trainflash.cli import main
from trainflash.errors import UsageError
from trainflash.fidelity import work
from trainflash.report import verified as shown
from trainflash.schema import (
    BundleManifest,
    Candidate,
    Check,
    Command,
    Compared,
    Fidelity,
    Runs,
    Speedup,
    SpeedVerdict,
    Start,
    State,
    Verdict,
    Verified,
    WordChange,
    to_plain,
    write_document,
)
from trainflash.workflow import optimizing, session, verifying
from trainflash.workflow.bundles import archive, carrying, contents

SAME = Fidelity("same", (), 0.0, 0.0, 1e-3, 40, (), (), (Check("loss", True, "equal"),))
FASTER = SpeedVerdict("accept", Speedup(1.3, 1.2, 1.4, 4), "faster")
SLOWER = SpeedVerdict("reject", Speedup(0.9, 0.8, 0.95, 4), "not faster")
VERIFY = ["verify", "--json", "--candidate", "feature"]
CMD = ["--", "python", "train.py", "--data", "/mnt/secret-place/set", "--api-key", "hunter2hunter2"]


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=o", "-c", "user.email=o@localhost")
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def speed(monkeypatch):
    """What timing finds on this machine; a test may change it."""
    found = {"verdict": FASTER, "machine": {"machine": "node-17", "processor": "A", "cores": "2", "torch": "2.13.0", "load": "9.9"}}

    def compare(box, baseline, candidate, directory, **options):
        found["ran"] = (baseline, candidate)
        starts = tuple(Start(n, "resident", 0.3, 0.3, "net", steps=240, spent_s=30.0) for n in range(1, 5))
        runs = Runs(options["shown"], starts, 5, machine=found["machine"])
        write_document(directory / "runs.json", runs)
        (directory / "steps.jsonl").write_text('{"n": 99, "baseline": [0, []], "candidate": [0, []]}\n')
        return runs, found["verdict"]

    def check(box, baseline, candidate, place, **options):
        for side, folder, loss in (("baseline", options["baseline_record"], 1.0), ("candidate", place, 1.0)):
            run = folder / side
            run.mkdir(parents=True, exist_ok=True)
            (folder / work.reuse.FILE.format(side)).write_text(json.dumps({"runs": {side: {"folder": side}}}))
            counted = {"forwards": 1, "backwards": 1, "samples": 8, "elements": 8, "rank": 0}
            lines = [{**counted, "step": step, "losses": [loss.hex()]} for step in range(3)]
            (run / "work-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        found["log"] = f"read {box.project}/train.py and /root/deep/place/x.pt"
        return replace(SAME, notes=(found["log"],))

    monkeypatch.setattr(verifying.fidelity, "whole_steps", lambda *_: None)
    monkeypatch.setattr(verifying.fidelity, "evaluated_every", lambda *_: None)
    monkeypatch.setattr(verifying.fidelity, "check", check)
    monkeypatch.setattr(verifying.bench, "compare", compare)
    return found


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A project with `main` and a faster `feature`, on this machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "work" / "project"
    project.mkdir(parents=True)
    git(project, "init", "-q", "-b", "main")
    (project / "train.py").write_text("slow\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "start")
    git(project, "checkout", "-qb", "feature")
    (project / "train.py").write_text("fast\n")
    git(project, "commit", "-qam", "faster")
    git(project, "checkout", "-q", "main")
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def there(here, tmp_path, monkeypatch):
    """Goes to another machine: a clone, with a state folder of its own."""

    def went() -> Path:
        clone = tmp_path / "elsewhere" / "clone"
        subprocess.run(["git", "clone", "-q", "-b", "main", str(here), str(clone)], check=True)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere" / "state"))
        monkeypatch.chdir(clone)
        return clone

    return went


@pytest.fixture
def bundle(here, speed, tmp_path, capsys):
    path = tmp_path / "feature.zip"
    assert main([*VERIFY, "--bundle", str(path), *CMD]) == 0
    capsys.readouterr()
    return path


def typed(capsys, *words: str) -> tuple[int, dict, str]:
    code = main([*words, *CMD])
    told = capsys.readouterr()
    return code, json.loads(told.out) if told.out else {}, told.err


def test_a_bundle_holds_what_the_verdict_rests_on_and_nothing_of_the_machine(bundle, here, tmp_path):
    manifest, members = archive.read(bundle)
    assert set(members) == {"claim.json", "verdict.json", "change.diff", "runs.json", "steps.jsonl", "records.jsonl"}
    assert members["change.diff"].decode() == git(here, "diff", "--full-index", "main", "feature")
    text = b"".join(members.values()).decode()
    for private in ("hunter2hunter2", "/mnt/secret-place", str(tmp_path), "/root/deep", "node-17"):
        assert private not in text, private
    claim = json.loads(members["claim.json"])
    assert claim["baseline"]["argv"] == ["python", "train.py", "--data", "set", "--api-key", "[redacted]"]
    assert claim["machine"] == {"processor": "A", "cores": "2", "torch": "2.13.0"}
    assert claim["compared"]["baseline"]["commit"] == git(here, "rev-parse", "main").strip()
    assert json.loads(members["runs.json"])["starts"][0]["y"] == 0.3
    lines = [json.loads(line) for line in members["records.jsonl"].splitlines()]
    assert [line["side"] for line in lines] == ["baseline"] * 3 + ["candidate"] * 3
    assert float.fromhex(lines[0]["losses"][0]) == 1.0
    assert manifest.files["change.diff"] == hashlib.sha256(members["change.diff"]).hexdigest()
    assert len(manifest.digest) == 64


def test_equal_contents_are_equal_bytes(bundle, here, speed, tmp_path, capsys):
    _, members = archive.read(bundle)
    assert archive.pack(members) == archive.pack(dict(reversed(members.items()))) == bundle.read_bytes()
    code, answer, _ = typed(capsys, *VERIFY)
    assert code == 0 and "carried" not in answer


def test_the_verdict_carries_over_or_does_not_and_no_figures_are_mixed(bundle, there, speed, capsys):
    clone = there()
    speed["machine"] = {"machine": "other", "processor": "B", "cores": "64", "torch": "2.13.0"}
    speed["verdict"] = SpeedVerdict("accept", Speedup(1.1, 1.05, 1.15, 6), "faster here")
    code, answer, said = typed(capsys, "verify", "--json", "--carried", str(bundle))
    carried = answer["carried"]
    assert (code, answer["status"], carried["answer"]) == (0, "ok", "carries over")
    assert "making a sandbox" in said
    assert answer["speedup"]["mean"] == 1.1 and carried["there"]["speedup"]["mean"] == 1.3
    assert carried["machine"]["processor"] == "A" and answer["machine"]["processor"] == "B"
    assert carried["differs"] == ["cores was 2, is 64", "processor was A, is B"]
    assert (sandboxes.newest(clone) is not None) and not git(clone, "status", "--porcelain")
    speed["verdict"] = SLOWER
    code, answer, _ = typed(capsys, "verify", "--json", "--carried", str(bundle))
    assert (code, answer["status"], answer["carried"]["answer"]) == (4, "rejected", "does not")
    speed["verdict"] = SpeedVerdict("inconclusive", None, "too noisy here")
    code, answer, _ = typed(capsys, "verify", "--json", "--carried", str(bundle))
    assert (code, answer["carried"]["answer"]) == (3, "undecided")
    assert main(["verify", "--carried", str(bundle), "--", "python", "train.py", "--epochs", "3"]) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert "Undecided" in told and "the command was python train.py --data set" in told and "1.30×" in told


def test_a_change_of_the_command_alone_is_carried_too(here, speed, there, tmp_path, capsys):
    """An experiment that sets a variable and another word: both belong to the change, and no file holds them."""
    command = Command(("python", "train.py", "--workers=0"))
    words = (WordChange(2, "--workers=0", "--workers=2"),)
    candidate = Candidate(
        "dataloader_workers", "2", "input_cpu", None, "same", "", "more of them", environment={"OMP_NUM_THREADS": "4"}, words=words
    )
    found = session.create(here)
    with found.locked():
        assert optimizing.try_candidate(found, candidate, command, verifying.Demands()).decision == "accepted"
    path = tmp_path / "workers.zip"
    for asked in (["--experiment", "1"], []):
        assert main(["verify", "--json", *asked, "--bundle", str(path), "--", *command.argv]) == 0
        capsys.readouterr()
        opened = contents.opened(path)
        assert opened.diff == "" and opened.claim.words == words and opened.claim.candidate.env == {"OMP_NUM_THREADS": "4"}
        assert opened.claim.baseline.argv[-1] == "--workers=0" and opened.claim.candidate.argv[-1] == "--workers=2"
    there()
    assert main(["verify", "--json", "--carried", str(path), "--", *command.argv]) == 0
    assert json.loads(capsys.readouterr().out)["carried"]["differs"] == []
    old, new = speed["ran"]
    assert (old.argv[-1], new.argv[-1]) == ("--workers=0", "--workers=2") and (old.env, new.env) == ({}, {"OMP_NUM_THREADS": "4"})
    assert main(["verify", "--json", "--carried", str(path), "--", "python", "train.py"]) == 2
    assert "the command has no '--workers=0' as its word 3" in capsys.readouterr().err


def verdict(word: str) -> Verdict:
    return Verdict(word, None, SAME, 0, ("because",))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("was", "now", "answer"),
    [
        ("accept", "accept", "carries over"), ("accept", "reject", "does not"), ("accept", "inconclusive", "undecided"),
        ("reject", "reject", "carries over"), ("reject", "accept", "does not"), ("reject", "inconclusive", "undecided"),
        ("needs_agreement", "needs_agreement", "carries over"), ("accept", "needs_agreement", "does not"),
    ],
)  # fmt: skip
def test_only_verdicts_are_held_against_each_other(was, now, answer):
    assert carrying.answer(verdict(was), verdict(now)) == answer
    state = State("main", None, "0" * 40)
    claim = contents.Claim(Compared(state, state, ""), Command(("python", "t.py")), Command(("python", "t.py")), (), {}, 1e-3, 1.02, ())
    bundled = carrying.Bundle("0" * 64, claim, verdict(was), "")
    here = Verified(verdict(now), Compared(state, state, ""))
    carried = carrying.carried(bundled, here, Command(("/opt/env/bin/python", "t.py")))
    assert carried.answer == answer and carried.differs == (), "an interpreter at another place is the same command"
    assert shown.carry_over(here, carried).count("There:") == 1


def test_the_agreements_are_the_bundles(bundle):
    opened = contents.opened(bundle)
    claim = replace(opened.claim, allowed=("order",), tolerance=1e-4)
    asked = carrying.as_there(verifying.Demands(allowed=frozenset({"precision"})), replace(opened, claim=claim))
    assert (asked.allowed, asked.tolerance) == (frozenset({"order"}), 1e-4)


def test_a_change_that_does_not_apply_here_is_refused(bundle, there, capsys):
    clone = there()
    (clone / "train.py").write_text("quite another program\n")
    git(clone, "commit", "-qam", "rewritten")
    code, answer, said = typed(capsys, "verify", "--json", "--carried", str(bundle), "--baseline", "HEAD")
    assert code == 2 and "does not apply" in said and "--baseline REF" in said
    code, answer, _ = typed(capsys, "verify", "--json", "--carried", str(bundle))
    assert code == 0, "without a name it lies on the commit it was made on, which this clone has"
    assert answer["carried"]["differs"] == []


def rewritten(path: Path, change) -> Path:
    """The bundle with other members, as a stranger would make one."""
    with zipfile.ZipFile(path) as old:
        members = {entry.filename: old.read(entry) for entry in old.infolist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members.items():
            new.writestr(name, data)
    return path


def manifest(members: dict[str, bytes], **changed) -> None:
    """Rewrite the manifest so that all digests are right, with other fields where given."""
    files = {name: hashlib.sha256(data).hexdigest() for name, data in members.items() if name != "manifest.json"}
    made = BundleManifest("1.0", files)
    digest = hashlib.sha256(archive.canonical(made)).hexdigest()
    members["manifest.json"] = json.dumps({**to_plain(replace(made, digest=digest)), **changed}).encode()


def bad_diff(members):
    members["change.diff"] = b"--- a/other.py\n"


def bad_manifest(members):
    members["manifest.json"] = members["manifest.json"].replace(b'"trainflash": "', b'"trainflash": "9')


def other_version(members):
    manifest(members, schema="verify_bundle.v2")


def other_document(members):
    manifest(members, schema="summary.v1")


def climbs_out(members):
    members["../../../tmp/evil.py"] = b"x"
    manifest(members)


def no_verdict(members):
    del members["verdict.json"]
    manifest(members)


def unfolds(members):
    members["claim.json"] = b" " * (archive.LIMITS["claim.json"] + 1)
    manifest(members)


def deep(members):
    members["claim.json"] = b"[" * 200_000
    manifest(members)


def no_number(members):
    members["verdict.json"] = b'{"schema": "verdict.v1", "verdict": "accept", "starts": "many"}'
    manifest(members)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (bad_diff, "change.diff is not what was bundled"),
        (bad_manifest, "its manifest is not what was bundled"),
        (other_version, "is a verify_bundle.v2, and this trainflash reads verify_bundle.v1"),
        (other_document, "is summary.v1, expected verify_bundle.v1"),
        (climbs_out, "holds other files than its manifest names"),
        (no_verdict, "holds no verdict.json"),
        (unfolds, "claim.json unfolds to more than 1 MiB"),
        (deep, "claim.json is no JSON"),
        (no_number, "verdict.json: "),
        (lambda members: members.clear(), "holds no manifest.json, and is no bundle"),
    ],
)
def test_a_bundle_that_is_not_whole_is_refused_in_one_line(bundle, change, says):
    rewritten(bundle, change)
    with pytest.raises(UsageError) as refused:
        contents.opened(bundle)
    assert says in refused.value.message and "\n" not in refused.value.message and refused.value.mend


def test_a_torn_file_and_none_are_refused(bundle, here, tmp_path, capsys):
    whole = bundle.read_bytes()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        bundle.write_bytes(whole[:cut])
        code, _, said = typed(capsys, "verify", "--json", "--carried", str(bundle))
        assert code == 2 and "is torn, or no bundle" in said
    bundle.write_bytes(whole[:200] + bytes(40) + whole[240:])
    with pytest.raises(UsageError):
        contents.opened(bundle)
    code, _, said = typed(capsys, "verify", "--json", "--carried", str(tmp_path / "none.zip"))
    assert code == 2 and "No such file" in said


def test_two_members_of_one_name_are_refused(bundle):
    data = io.BytesIO(bundle.read_bytes())
    with zipfile.ZipFile(data, "a") as open_, pytest.warns(UserWarning, match="Duplicate name"):
        open_.writestr("change.diff", b"another")
    bundle.write_bytes(data.getvalue())
    with pytest.raises(UsageError, match="other files than its manifest names"):
        contents.opened(bundle)


def test_an_inconclusive_verdict_carries_nothing(here, speed, there, tmp_path, capsys):
    speed["verdict"] = SpeedVerdict("inconclusive", None, "too noisy")
    path = tmp_path / "open.zip"
    assert typed(capsys, *VERIFY, "--bundle", str(path))[0] == 3
    there()
    code, _, said = typed(capsys, "verify", "--json", "--carried", str(path))
    assert code == 2 and "the bundle's own verdict is inconclusive: speed: too noisy" in said


def test_what_cannot_be_bundled_is_said_before_anything_runs(here, speed, tmp_path, capsys, monkeypatch):
    git(here, "checkout", "-q", "feature")
    (here / "train.py").write_text('API_KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"\nfast\n')
    git(here, "commit", "-qam", "with a key")
    git(here, "checkout", "-q", "main")
    monkeypatch.setattr(verifying.bench, "compare", lambda *_, **__: pytest.fail("measured"))
    code, _, said = typed(capsys, *VERIFY, "--bundle", str(tmp_path / "it.zip"))
    assert code == 2 and "holds a secret" in said and "abcdefghij" not in said
    code, _, said = typed(capsys, *VERIFY, "--bundle", str(tmp_path))
    assert code == 2 and "is no place for a file" in said
    code, _, said = typed(capsys, "verify", "--carried", "x.zip", "--candidate", "feature")
    assert code == 2 and "a bundle brings its change itself" in said


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/home/me/env/bin/python train.py", "python train.py"),
        ("read '/data/set/a b.csv' and ./run.sh, ../data/x", "read 'a b.csv' and ./run.sh, ../data/x"),
        ("see https://example.org/a/b/c", "see https://example.org/a/b/c"),
        ("PATH=/usr/bin:/usr/local/bin", "PATH=bin:bin"),
        ("origin/feature, 1/2, train.py:31", "origin/feature, 1/2, train.py:31"),
    ],
)
def test_paths_of_a_machine_lose_their_folders(text, left):
    assert contents.clean({"a": [text]}) == {"a": [left]}
