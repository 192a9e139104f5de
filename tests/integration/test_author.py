"""Authors tried with real scripts: what they leave is taken as a diff or refused with its reason, and nothing else is in their reach."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from trainflash import author, sandbox, view
from trainflash.author import running
from trainflash.errors import UsageError
from trainflash.view import opening, trial

TRAIN = "import torch\n\n\ndef step(rows):\n    return [row * 2 for row in rows]\n"
TASK = author.Task("# Make step faster\n", '{"finding": "host_code"}', ("train.py",))
LIMITS = author.Limits(minutes=1.0)
FASTER = "sed -i 's/\\[row \\* 2 for row in rows\\]/rows * 2/' train.py"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    root = tmp_path / "project"
    for folder in ("pkg", "tests", "data"):
        (root / folder).mkdir(parents=True)
    texts = {
        "train.py": TRAIN, "pkg/model.py": "width = 4\n", "tests/test_step.py": "assert True\n", "data/x.csv": "1,2\n",
        "config.yaml": "lr: 0.1\n", ".gitignore": "cache/\n*.log\n", "notes.md": "notes\n", "pyproject.toml": "[project]\nname = 'x'\n",
    }  # fmt: skip
    for path, text in texts.items():
        (root / path).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    commit(root)
    (root / "cache").mkdir()
    (root / "cache" / "big.bin").write_bytes(b"cached")
    return root


def commit(root):
    for words in (["add", "."], ["-c", "user.name=o", "-c", "user.email=o@localhost", "commit", "-q", "-m", "one more"]):
        subprocess.run(["git", *words], cwd=root, check=True)


@pytest.fixture
def box(project):
    return sandbox.create(project, protect=view.protection)


@pytest.fixture(params=["mount", "landlock"])
def protected(request, box, monkeypatch):
    """The sandbox under each protection that this machine has."""
    strategy = trial.Strategy(request.param, "", os.path.join(box.directory, "layers"))
    found = trial._fails(box, strategy, lambda which, folder: opening.open_view(box, "baseline", folder, only=which.protection))
    if found is not None:
        pytest.skip(f"no {request.param} here: {found}")
    monkeypatch.setattr(trial, "find", lambda *_: strategy)
    return box


def script(tmp_path, text, name="assistant"):
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return author.named(shlex.quote(str(path)))


def answer(box, tmp_path, text, limits=LIMITS, **options):
    return author.write(box, script(tmp_path, text), TASK, tmp_path / "record", limits, **options)


def content(root):
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file() and ".git/" not in f"{path}/"}


def test_what_is_edited_becomes_a_diff_and_nothing_else_changes(protected, project, tmp_path):
    before = content(project)
    given = answer(protected, tmp_path, FASTER)
    assert (given.outcome, given.reason) == ("patch", "")
    assert "-    return [row * 2 for row in rows]\n+    return rows * 2\n" in given.diff
    assert content(project) == before and (Path(protected.worktree) / "train.py").read_text() == TRAIN
    subprocess.run(["git", "apply", "--check", "-"], cwd=project, input=given.diff, text=True, check=True)
    assert list(Path(protected.directory, "layers").iterdir()) == [], "the copy is thrown away"


def test_the_brief_comes_by_standard_input_and_as_files(protected, tmp_path):
    text = 'cat > in.py; cat "$1" >> in.py; grep -c finding "$(dirname "$1")/brief.json" >> in.py; pwd >> in.py; echo "$2" >> in.py'
    one = author.named(f"{shlex.quote(str(tmp_path / 'assistant'))} {{brief}} {{dir}}") if script(tmp_path, text) else None
    given = author.write(protected, one, TASK, tmp_path / "record", LIMITS)
    assert given.reason == "in.py:4: cannot be parsed: invalid syntax" or given.reason.startswith("in.py:"), given
    # the same, read as a patch of a source that parses
    script(tmp_path, f"sed 's/^/#/' > in.py; sed 's/^/#/' \"$1\" >> in.py; [ \"$(pwd)\" = \"$2\" ] && echo '# there' >> in.py; {FASTER}")
    given = author.write(protected, one, TASK, tmp_path / "record", LIMITS)
    assert given.diff.count("+## Make step faster") == 2 and "+# there" in given.diff


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("echo 'Which of the two functions should I change?'", "it asked instead of editing: Which of", id="asks"),
        pytest.param("true", "it printed nothing and changed nothing", id="prints nothing"),
        pytest.param("cat", "it answered in words and changed nothing: # Make step faster", id="prose"),
        pytest.param("echo broken; exit 3", "it ended with exit code 3: broken", id="fails"),
        pytest.param("kill -9 $$", "it was ended by signal 9", id="dies"),
        pytest.param("read answer < /dev/tty; echo $answer", "/dev/tty", id="asks the terminal"),
        pytest.param("rm train.py", "takes train.py away", id="deletes a file"),
        pytest.param("rm -rf pkg", "takes pkg/model.py away", id="deletes a folder"),
        pytest.param("rm -rf ./* .gitignore", "takes ", id="deletes everything"),
        pytest.param("for i in $(seq 20); do echo 'a = 1' > part$i.py; done", "edits 20 files; a", id="edits everything"),
        pytest.param("for i in $(seq 700); do echo \"a$i = 1\"; done >> train.py", "changes 700 lines", id="rewrites everything"),
        pytest.param("echo 'assert False' >> tests/test_step.py", "edits tests/test_step.py, which is a test", id="tests"),
        pytest.param("echo 3,4 >> data/x.csv", "edits data/x.csv, which is neither source nor settings", id="data"),
        pytest.param("echo x > cache/big.bin", "edits cache/big.bin, which git ignores", id="ignored data"),
        pytest.param("rm -rf cache", "edits cache", id="ignored data away"),
        pytest.param("echo '[tool.x]' >> pyproject.toml", "edits pyproject.toml, which is no part of the training", id="packaging"),
        pytest.param("echo 'budget = 9' > trainflash.toml", "edits trainflash.toml, which belongs to TrainFlash", id="our files"),
        pytest.param("echo 'x = 1' > sitecustomize.py", "edits sitecustomize.py, which is no part", id="run unasked"),
        pytest.param("echo 'def f(:' >> train.py", "train.py:6: cannot be parsed: invalid syntax", id="no Python"),
        pytest.param("echo 'lr: [0.1' > config.yaml", "config.yaml: cannot be parsed", id="no YAML"),
        pytest.param("printf '\\377\\376' > train.py", "train.py: cannot be read: no UTF-8 at byte 0", id="no text"),
        pytest.param("rm train.py; ln -s /etc/passwd train.py", "makes train.py what cannot be reviewed: a link", id="a link"),
        pytest.param("echo 'import numba' >> train.py", "train.py: imports numba, which the project does not use", id="a new dependency"),
        pytest.param(
            "sed -i 's/^import torch/import torch, time\\nFAST = time.time() > 0/' train.py",
            "train.py:2: time.time reads the clock",
            id="reads the clock",
        ),
        pytest.param("echo 'import os; os.getenv(0)' >> train.py", "train.py:6: os.getenv reads the environment", id="environment"),
        pytest.param("echo 'import sys; P = \"trainflash_probe\" in sys.modules' >> train.py", "is watched", id="looks who measures"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_a_failed_attempt_that_says_why(box, project, tmp_path, text, reason):
    before = content(project)
    given = answer(box, tmp_path, text)
    assert (given.outcome, given.diff) == ("failed", "")
    assert reason in given.reason and "\n" not in given.reason
    assert content(project) == before


def test_what_tools_leave_behind_is_no_part_of_the_answer(box, tmp_path):
    text = f"{FASTER}; mkdir -p .assistant __pycache__ cache/new; touch .assistant/state __pycache__/a.pyc run.log cache/new/x .history"
    given = answer(box, tmp_path, text)
    assert given.outcome == "patch" and given.diff.count("diff --git") == 1


def test_a_file_that_the_brief_is_about_may_be_called_a_test(box, tmp_path):
    task = replace(TASK, files=("tests/test_step.py",))
    given = author.write(box, script(tmp_path, "echo 'x = 1' >> tests/test_step.py"), task, tmp_path / "record", LIMITS)
    assert given.outcome == "patch"


def test_a_change_outside_of_the_project_is_refused(tmp_path, project):
    (project / "apps" / "one").mkdir(parents=True)
    (project / "apps" / "one" / "train.py").write_text(TRAIN)
    commit(project)
    inner = sandbox.create(project / "apps" / "one", protect=view.protection)
    given = author.write(inner, script(tmp_path, "echo 'x = 1' >> ../../train.py"), TASK, tmp_path / "record", LIMITS)
    assert given.reason == "edits ../../train.py, which is outside of the project"
    given = author.write(inner, script(tmp_path, FASTER), TASK, tmp_path / "record", LIMITS)
    assert given.outcome == "patch" and "--- a/train.py" in given.diff


def test_nothing_but_the_copy_is_in_reach(protected, project, tmp_path):
    records = Path(protected.directory)
    (records / "tuning_log.yaml").write_text("ours\n")
    mounted = trial.find(protected, None).protection == "mount"  # Landlock hides nothing, and layers nothing
    targets = [f"{records}/tuning_log.yaml", f"{records}/worktree/train.py", running.__file__, "/etc/trainflash-was-here"]
    attack = f"""
for path in {" ".join(targets)}; do echo bad >> "$path" && [ {mounted} = False ] && echo "overwrote $path"; done
git rev-parse HEAD 2>/dev/null && echo 'saw history'
[ {mounted} = True ] && cat {records}/tuning_log.yaml
echo bad > "$HOME/left-behind"
{FASTER}
"""
    before = content(project), content(records / "worktree"), Path(running.__file__).read_bytes()
    given = answer(protected, tmp_path, attack)
    printed = (tmp_path / "record" / "output.log").read_text()
    assert given.outcome == "patch" and not {"overwrote", "saw", "ours"} & set(printed.split())
    assert (content(project), content(records / "worktree"), Path(running.__file__).read_bytes()) == before
    assert (records / "tuning_log.yaml").read_text() == "ours\n"
    assert not (tmp_path / "home" / "left-behind").exists()


def test_where_an_assistant_keeps_its_login_is_kept(protected, tmp_path):
    kept = tmp_path / "home" / ".claude"
    kept.mkdir()
    answer(protected, tmp_path, f'echo renewed > "$HOME/.claude/login"; {FASTER}')
    assert (kept / "login").read_text() == "renewed\n"


def test_one_that_never_ends_is_ended_with_all_that_it_started(box, tmp_path):
    mark = f"9{os.getpid()}.5"
    given = answer(box, tmp_path, f"(setsid sleep {mark} &); {FASTER}; sleep {mark}", author.Limits(minutes=0.03))
    assert given.reason == "it did not end within 0.03 min"
    alive = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert mark not in alive.replace("ps -eo", "")


def test_a_daemon_is_ended_and_the_answer_counts(box, tmp_path):
    mark = f"8{os.getpid()}.5"
    given = answer(box, tmp_path, f"(setsid sleep {mark} > /dev/null 2>&1 &); {FASTER}")
    assert given.outcome == "patch"
    assert mark not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


@pytest.mark.parametrize("where", ["model.bin", "/tmp/model.bin", "$HOME/model.bin"])
def test_one_that_writes_gigabytes_is_ended(box, tmp_path, monkeypatch, where):
    monkeypatch.setattr(running, "MOST_WRITTEN", 2_000_000)
    monkeypatch.setattr(running, "_LOOK_EVERY_S", 0.0)
    given = answer(box, tmp_path, f"head -c 8000000 /dev/zero > {where}; sleep 60")
    assert given.reason == "it wrote more than 2 MB"


def test_one_that_prints_gigabytes_is_ended(box, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "MOST_PRINTED", 1_000_000)
    monkeypatch.setattr(running, "_LOOK_EVERY_S", 0.0)
    given = answer(box, tmp_path, "yes 'a line that says nothing'")
    assert given.reason == "it printed more than 1 MB"


def test_ctrl_c_while_it_writes_ends_it_and_leaves_nothing(box, project, tmp_path):
    mark = f"7{os.getpid()}.5"
    before = content(project)

    def interrupt():
        deadline = time.monotonic() + 60
        while mark not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        answer(box, tmp_path, f"{FASTER}; sleep {mark}")
    assert mark not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert content(project) == before and list(Path(box.directory, "layers").iterdir()) == []
    assert '"interrupted"' in (tmp_path / "record" / "run.json").read_text()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Invalid API key · Please run /login", "its login is missing: Invalid API key"),
        ("Error: OPENAI_API_KEY is not set; 401 Unauthorized", "its login is missing: "),
        ("There's an issue with the selected model (x-9). It may not exist", "its model is not known: "),
        ("litellm.NotFoundError: model_not_found: gpt-99", "its model is not known: "),
        ("Credit balance is too low", "its budget is spent: Credit balance is too low"),
        ('{"type": "result", "subtype": "error_max_budget_usd", "is_error": true}', "its budget is spent: "),
    ],
)
def test_what_no_second_attempt_mends_ends_it_with_its_own_line(box, tmp_path, said, reason):
    given = answer(box, tmp_path, f"cat <<'END'\n{said}\nEND\nexit 1")
    assert given.outcome == "ended" and given.reason.startswith(reason) and said[:30] in given.reason


def test_an_answer_counts_whatever_is_printed_beside_it(box, tmp_path):
    given = answer(box, tmp_path, f"echo 'please run /login to see your usage'; {FASTER}; exit 1")
    assert given.outcome == "patch"


def test_cost_model_and_words_are_read_and_secrets_are_not_kept(box, tmp_path):
    secret = "sk-ant-" + "a1b2c3d4e5" * 4
    line = f'{{"type": "result", "is_error": false, "total_cost_usd": 0.25, "result": "done with {secret}", "modelUsage": {{"m-1": {{}}}}}}'
    given = author.write(
        box,
        replace(script(tmp_path, f"cat <<'END'\n{line}\nEND\n{FASTER}"), argv=(str(tmp_path / "assistant"), "--api-key", secret)),
        TASK,
        tmp_path / "record",
        LIMITS,
    )
    assert (given.outcome, given.cost_usd, given.model, given.words) == ("patch", 0.25, "m-1", "done with [redacted]")
    assert given.command[1:] == ("--api-key", "[redacted]")
    for path in (tmp_path / "record").iterdir():
        assert secret not in path.read_text(), path


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("Tokens: 5k sent.\nCost: $0.02 message, $0.05 session.\n", 0.05),
        ("mini-swe-agent (step 1, $0.01):\nmini-swe-agent (step 2, $0.04):\n", 0.04),
        ('{"type":"step_finish","part":{"cost":0.5}}\n{"type":"step_finish","part":{"cost":0.25}}\n', 0.75),
        ('{\n "response": "ok",\n "stats": {"models": {"flash": {}}}\n}\n', None),
        ("{not json\n", None),
    ],
)
def test_costs_are_read_in_the_forms_of_the_known_programs(text, cost):
    from trainflash.author import told

    assert told.told(text).cost_usd == cost


def test_where_nothing_protects_the_project_no_author_is_started(box, tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "find", lambda *_: trial.Strategy("manifest", "no mount view, no Landlock", ""))
    with pytest.raises(UsageError, match="nothing on this machine keeps a program from writing into the project: no mount view"):
        answer(box, tmp_path, FASTER)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_gets_a_room_too(box, tmp_path):
    """Nobody's own sandbox; Python is the machine's, because that of these tests may lie where he cannot read."""
    kept = tmp_path / "home" / ".claude"
    kept.mkdir()
    one = script(
        tmp_path, f'id -u; echo renewed > "$HOME/.claude/login"; echo bad > "$HOME/left"; cat {box.directory}/sandbox.json; {FASTER}'
    )
    code = f"""
import codecs, os, sys
from pathlib import Path
from trainflash import author, sandbox
codecs.lookup("ascii")  # loaded while its folder can still be read
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.executable, os.environ["PATH"] = "/usr/bin/python3", "/usr/bin:/bin"
box = sandbox.load(Path({box.directory!r}))
task = author.Task("# Faster", "{{}}", ("train.py",))
one, record = author.named({str(tmp_path / "assistant")!r}), Path({str(tmp_path / "record")!r})
given = author.write(box, one, task, record, author.Limits(minutes=1.0))
print(given.outcome, "rows * 2" in given.diff, os.listdir(Path(box.directory, "layers")))
"""
    assert one.argv
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    closed = [parent for parent in tmp_path.parents if not parent.stat().st_mode & 0o001]
    for parent in closed:
        parent.chmod(parent.stat().st_mode | 0o001)
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    finally:
        for parent in closed:
            parent.chmod(parent.stat().st_mode & ~0o001)
    assert done.stdout.split("\n")[0] == "patch True []", done.stderr
    printed = (tmp_path / "record" / "output.log").read_text()
    assert printed.startswith("65534") and (kept / "login").exists() and not (tmp_path / "home" / "left").exists()


def in_hand(box, tmp_path, act, minutes=1.0):
    """An answer by hand: `act` gets the folder once the task lies there."""
    said = []

    def say(line):
        said.append(line)
        threading.Thread(target=act, args=(tmp_path / "desk",)).start()

    one = author.named(f"manual:{tmp_path / 'desk'}")
    return author.write(box, one, TASK, tmp_path / "record", author.Limits(minutes=minutes), say=say), said


def test_by_hand_the_copy_is_edited_and_done_is_made(box, project, tmp_path):
    def act(desk):
        assert "Make step faster" in (desk / "BRIEF.md").read_text() and "answer.diff" in (desk / "BRIEF.md").read_text()
        assert not (desk / "project" / ".git").exists()
        (desk / "project" / "train.py").write_text(TRAIN.replace("[row * 2 for row in rows]", "rows * 2"))
        (desk / "done").touch()

    given, said = in_hand(box, tmp_path, act)
    assert given.outcome == "patch" and "+    return rows * 2" in given.diff
    assert str(tmp_path / "desk") in said[0] and (project / "train.py").read_text() == TRAIN


def test_by_hand_a_diff_is_an_answer_too(box, tmp_path):
    diff = (
        "--- a/train.py\n+++ b/train.py\n@@ -4,2 +4,2 @@\n def step(rows):\n-    return [row * 2 for row in rows]\n+    return rows * 2\n"
    )

    def act(desk):
        (desk / "half").write_text(diff)
        (desk / "half").rename(desk / "answer.diff")

    assert in_hand(box, tmp_path, act)[0].outcome == "patch"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("done", "", "it printed nothing and changed nothing"),
        ("answer.diff", "", "answer.diff is empty"),
        ("answer.diff", "I would use a vector.\n", "answer.diff does not apply: No valid patches in input"),
        ("answer.diff", "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n", "answer.diff does not apply: x.py: No such file"),
        ("answer.diff", "--- /dev/null\n+++ b/../x.py\n@@ -0,0 +1 @@\n+b\n", "answer.diff does not apply: "),
    ],
)
def test_by_hand_what_is_no_answer_is_said(box, tmp_path, name, text, reason):
    given, _ = in_hand(box, tmp_path, lambda desk: (desk / name).write_text(text))
    assert given.outcome == "failed" and given.reason.startswith(reason)


def test_by_hand_a_folder_that_holds_something_else_is_left_alone(box, tmp_path):
    mine = tmp_path / "desk" / "project"
    mine.mkdir(parents=True)
    (mine / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="desk is not empty"):
        in_hand(box, tmp_path, lambda desk: None)
    assert (mine / "thesis.txt").read_text() == "mine"


def test_by_hand_the_second_attempt_lies_in_the_same_folder(box, tmp_path):
    for _ in range(2):
        assert in_hand(box, tmp_path, lambda desk: (desk / "done").touch())[0].reason == "it printed nothing and changed nothing"


def test_by_hand_it_is_waited_for_so_long_and_no_longer(box, tmp_path):
    given, _ = in_hand(box, tmp_path, lambda desk: None, minutes=0.01)
    assert given.reason == f"nobody answered in {tmp_path / 'desk'} within 0.01 min"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no command"),
        ("'", "No closing quotation"),
        ("no-such-assistant --yes", "there is no program no-such-assistant"),
        ("/no/such/program", "there is no program /no/such/program"),
        ("acp:", "needs the agent's name"),
        ("manual now", "takes no more words"),
    ],
)
def test_a_command_that_cannot_be_is_refused_at_once(text, message):
    with pytest.raises(UsageError, match=message):
        author.named(text)


def test_a_preset_whose_program_is_not_there_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for preset in author.PRESETS:
        with pytest.raises(UsageError) as caught:
            author.named(preset.name)
        assert preset.argv[0] in caught.value.message and caught.value.mend == preset.get
    with pytest.raises(UsageError, match="there is no program acpx"):
        author.named("acp:codex")


def test_a_program_beside_the_caller_is_found_from_the_room_as_well(box, tmp_path, monkeypatch):
    script(tmp_path, FASTER)
    monkeypatch.chdir(tmp_path)
    given = author.write(box, author.named("./assistant"), TASK, tmp_path / "record", LIMITS)
    assert given.outcome == "patch"


def test_words_behind_a_presets_name_are_flags_of_ones_own(monkeypatch, tmp_path):
    for name in ("claude", "acpx", "aider"):
        script(tmp_path, "true", name)
    monkeypatch.setenv("PATH", str(tmp_path))
    given = {"brief": "/b/BRIEF.md", "folder": "/p", "files": ("a.py", "b.py"), "dollars": 1.5, "minutes": 20}
    words = author.named("claude --model opus").words(**given)
    assert words[-4:] == ("--max-budget-usd", "1.50", "--model", "opus")
    assert author.named("acp:codex").words(**given)[-4:] == ("codex", "exec", "--file", "-")
    assert author.named("aider").words(**given)[-3:] == ("/b/BRIEF.md", "a.py", "b.py")


def test_an_assistant_in_an_assistant_does_not_take_itself_for_it(monkeypatch, tmp_path):
    script(tmp_path, "true", "claude")
    monkeypatch.setenv("PATH", str(tmp_path))
    given = author.named("claude").environment({"CLAUDECODE": "1", "TRAINFLASH_RUN": "x", "KEPT": "y"})
    assert given == {"KEPT": "y"}


def test_python_authors_work_as_well(box, tmp_path):
    path = tmp_path / "assistant.py"
    path.write_text(
        "import pathlib, sys\nassert 'faster' in sys.stdin.read()\nfile = pathlib.Path('train.py')\n"
        "file.write_text(file.read_text().replace('[row * 2 for row in rows]', 'rows * 2'))\n"
    )
    given = author.write(box, author.named(f"{sys.executable} {path}"), TASK, tmp_path / "record", LIMITS)
    assert given.outcome == "patch", given
