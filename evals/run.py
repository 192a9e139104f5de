"""Assistants at tasks, in three arms: nothing of ours, the command line, command line and skills.

    python evals/run.py --agent 'my-agent --print {prompt}' --python .venv/bin/python --trainflash ~/.local/bin/trainflash
    python evals/run.py --agent … --task curves --arm nothing --arm skills --attempts 1 --minutes 15
    python evals/run.py --calibrate --python .venv/bin/python

`--agent` is any command line; {prompt} in it becomes the user's words, which else come on its standard input. It gets a HOME of its own,
and of the environment only what `--pass` names. Only tasks that are calibrated on this machine are scored. Everything lands in --out:
answers, transcripts, scores.json, and RESULTS.md with the table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from harness import tasks as all_tasks
from harness.attempts import ARMS, Attempt, Tools, attempt, environment
from harness.judging import calibrate, judge
from harness.scores import Score, calibrated, claim_error, healthy_share, share_of_expert
from harness.table import results


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="evals/run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--agent", help="command line of the assistant")
    made.add_argument("--task", action="append", dest="names", help="only this task; may be repeated")
    made.add_argument("--arm", action="append", dest="arms", choices=ARMS, help="only this arm; may be repeated")
    made.add_argument("--attempts", type=int, default=1, help="per task and arm")
    made.add_argument("--minutes", type=float, default=20.0, help="limit of one attempt")
    made.add_argument("--pairs", type=int, default=4, help="paired runs for one measurement")
    made.add_argument("--python", type=Path, default=Path(sys.executable), help="an interpreter with torch and PyYAML")
    made.add_argument("--trainflash", type=Path, default=None, help="the command, for the arms that have it")
    made.add_argument("--pass", action="append", dest="passed", default=[], metavar="NAME", help="a variable that the assistant needs")
    made.add_argument("--calibrate", action="store_true", help="measure whether the tasks hold on this machine, and stop")
    made.add_argument("--uncalibrated", action="store_true", help="score without calibration; the table says so")
    made.add_argument("--in-sight", action="store_true", help="run even where the scorer cannot be hidden; the table says so")
    made.add_argument("--out", type=Path, default=Path("evals/out"))
    return made


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        chosen = all_tasks.load(arguments.names)
        return _calibrate(arguments, chosen) if arguments.calibrate else _attempts(arguments, chosen)
    except ValueError as bad:
        print(f"evals: {bad}", file=sys.stderr)
        return 2


def _calibrate(arguments: argparse.Namespace, chosen: list[all_tasks.Task]) -> int:
    arguments.out.mkdir(parents=True, exist_ok=True)
    tools = _tools(arguments)
    path = arguments.out / "calibration.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for task in chosen:
        with tempfile.TemporaryDirectory(prefix="calibrate-") as workplace:
            seen = environment(tools, Path(workplace) / "home", "nothing")
            unchanged, expert = calibrate(task, Path(workplace), arguments.pairs, seen)
        reason = calibrated(unchanged, expert, task.healthy)
        found[task.name] = {
            "reason": reason,
            "unchanged": asdict(unchanged) if unchanged else None,
            "expert": asdict(expert) if expert else None,
        }
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{task.name}: {reason or 'holds'}", flush=True)
    return 0


def _tools(arguments: argparse.Namespace) -> Tools:
    """The assistant's working directory is another one: paths are made absolute here."""
    command = arguments.trainflash.absolute() if arguments.trainflash else None
    if command is not None and not os.access(command, os.X_OK):
        raise ValueError(f"{command} is not a command: name the trainflash command with --trainflash")
    return Tools(arguments.python.absolute().parent, command, tuple(arguments.passed))


def _attempts(arguments: argparse.Namespace, chosen: list[all_tasks.Task]) -> int:
    if not arguments.agent:
        raise ValueError("name the assistant with --agent, or calibrate with --calibrate")
    arguments.out.mkdir(parents=True, exist_ok=True)
    dropped = {} if arguments.uncalibrated else _not_calibrated(arguments.out, chosen)
    tools = _tools(arguments)
    scores: list[Score] = []
    in_sight = False
    for task in (task for task in chosen if task.name not in dropped):
        for n in range(arguments.attempts):
            for arm in arguments.arms or ARMS:
                kept = arguments.out / task.name / arm / str(n)
                shutil.rmtree(kept, ignore_errors=True)
                with tempfile.TemporaryDirectory(prefix="attempt-") as workplace:
                    made = attempt(
                        task, arm, n, arguments.agent, tools, arguments.minutes, Path(workplace), must_hide=not arguments.in_sight
                    )
                    in_sight = in_sight or not made.hidden
                    for name in ("answer", "transcript.txt", "prompt.txt"):
                        _keep(Path(workplace) / name, kept / name)
                scores.append(_score(task, made, kept, arguments, tools))
                print(f"{task.name}, {arm}, {n}: {scores[-1].value:.2f} {'; '.join(scores[-1].failed_gates)}", flush=True)
                document = [asdict(score) for score in scores]
                (arguments.out / "scores.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    text = results(scores, dropped, arguments.agent, uncalibrated=arguments.uncalibrated, in_sight=in_sight)
    (arguments.out / "RESULTS.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _score(task: all_tasks.Task, made: Attempt, kept: Path, arguments: argparse.Namespace, tools: Tools) -> Score:
    patch = kept / "answer" / "patch.diff"
    with tempfile.TemporaryDirectory(prefix="judge-") as workplace:
        seen = environment(tools, Path(workplace) / "home", "nothing")
        judged = judge(task, patch if patch.is_file() else None, Path(workplace), arguments.pairs, seen)
    gates = (*made.gates, *judged.gates)
    if gates:
        value = 0.0
    elif task.healthy:
        value = healthy_share(made.claimed, judged.measured)
    elif judged.seconds is None or judged.seconds[2] is None:
        value = 0.0
    else:
        value = share_of_expert(judged.seconds[0], judged.seconds[1], judged.seconds[2])
    error = claim_error(made.claimed, judged.measured)
    return Score(task.name, made.arm, value, gates, judged.measured, made.claimed, error, made.minutes, made.tokens)


def _not_calibrated(out: Path, chosen: list[all_tasks.Task]) -> dict[str, str]:
    path = out / "calibration.json"
    if not path.is_file():
        raise ValueError("the tasks are not calibrated on this machine: run with --calibrate first, or with --uncalibrated")
    found = json.loads(path.read_text(encoding="utf-8"))
    return {task.name: reason for task in chosen if (reason := found.get(task.name, {"reason": "not calibrated"})["reason"])}


def _keep(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


if __name__ == "__main__":
    sys.exit(main())
