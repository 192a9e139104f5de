"""Runs `trainflash diagnose` over the planted programs and scores its first finding, its line and what must stand beside.

Each program is copied to a temporary folder with a git repository of its own, so nothing here is touched; the sandbox lies in the same
temporary place. Raw results go to bench/results/planted.json and are kept: a second call runs only what is missing or failed
(--fresh: all).
Scores are computed from the raw results each time, so a corrected manifest needs no new run.

    python bench/planted/run.py [--half open|kept|all] [--only NAME] [--jobs 1] [--fresh] [--markdown FILE]
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from programs import HERE, Program, command_of, copy_of, environment, programs
from score import Score, score

sys.path.append(str(HERE.parent))

from kept_results import KeptResults

RESULTS = HERE.parent / "results" / "planted.json"
KEPT_KEYS = ("kind", "phase", "location", "share", "severity", "bound_by", "evidence")


def make_repository(folder: Path) -> None:
    """The owner's project: one commit of everything."""
    identity = ["-c", "user.name=owner", "-c", "user.email=owner@example.org", "-c", "commit.gpgsign=false"]
    (folder / ".gitignore").write_text("__pycache__/\ncheckpoints/\n")
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "start"]):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)


def last_document(text: str) -> dict:
    """The JSON document on stdout, whether it is one line or several."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text.strip().splitlines()[-1])


def diagnose(program: Program, trainflash: list[str], limit_s: float) -> dict:
    """The raw result of one program: findings, abstention, coverage, or the error."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as base:
        folder = copy_of(program, Path(base))
        make_repository(folder)
        env = {k: v for k, v in os.environ.items() if not k.startswith("PLANTED_")}
        env |= environment() | {"XDG_STATE_HOME": str(Path(base, "state"))}
        command = [*trainflash, "diagnose", "--json", "--", *command_of(program)]
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"error": f"no answer within {limit_s:.0f} s"}
        wall = round(time.perf_counter() - began, 1)
        try:
            document = last_document(out)
        except (json.JSONDecodeError, IndexError):
            return {"error": f"exit {process.returncode}, no JSON: {err[-1500:]}", "wall_s": wall}
        if document.get("status") == "error" or "findings" not in document:
            return {"error": f"exit {process.returncode}: {document.get('error') or err[-1500:]}", "wall_s": wall}
        return {
            "findings": [{k: f.get(k) for k in KEPT_KEYS} for f in document["findings"]],
            "abstained": document.get("abstained"),
            "steps": document.get("steps"),
            "coverage": document.get("coverage"),
            "exit": process.returncode,
            "wall_s": wall,
        }


def verdict(program: Program, row: Score) -> str:
    if not row.right:
        return "WRONG"
    parts = ["right"]
    if row.line is False:
        parts.append("line wrong")
    if row.beside is False:
        parts.append("beside missing")
    return ", ".join(parts)


def table(rows: list[tuple[Program, Score]]) -> list[list[str]]:
    head = ["program", "truth", "first finding", "share", "line", "verdict", "note"]
    lines = [head]
    for program, row in rows:
        share = "" if row.share is None else f"{row.share:.0%}"
        cells = [f"{program.half}/{program.name}", program.manifest["kind"], row.first, share, row.place, verdict(program, row), row.note]
        lines.append(cells)
    return lines


def totals(rows: list[tuple[Program, Score]]) -> list[str]:
    """One line per half: first findings, lines, what stands beside, healthy programs accused."""
    lines = []
    for half in sorted({program.half for program, _ in rows}, reverse=True):
        part = [(p, s) for p, s in rows if p.half == half]
        line = [s.line for _, s in part if s.line is not None]
        beside = [s.beside for _, s in part if s.beside is not None]
        accused = [p.name for p, s in part if p.manifest["healthy"] and not s.right]
        names = f" ({', '.join(accused)})" if accused else ""
        lines.append(
            f"{half}: first finding right {sum(s.right for _, s in part)} of {len(part)}; line right {sum(line)} of {len(line)}; "
            f"beside present {sum(beside)} of {len(beside)}; healthy accused {len(accused)}{names}"
        )
    return lines


def as_text(lines: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def as_markdown(lines: list[list[str]]) -> str:
    rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * len(lines[0]), *rows[1:]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["open", "kept", "all"], default="open")
    parser.add_argument("--only", action="append", help="name of a program; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time; more than one disturbs the timings")
    parser.add_argument("--fresh", action="store_true", help="run again what has a result already")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one program")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--trainflash", help="the command to test; default: this interpreter's trainflash")
    args = parser.parse_args()
    trainflash = shlex.split(args.trainflash) if args.trainflash else [sys.executable, "-m", "trainflash"]
    chosen = programs(args.half, args.only)
    store = KeptResults(args.results, lambda row: "findings" in row, fresh=args.fresh)

    def work(program: Program) -> None:
        key = f"{program.half}/{program.name}"
        if not store.has(key):
            store.put(key, diagnose(program, trainflash, args.limit))
            row = score(program, store.rows[key])
            print(f"{key}: {program.manifest['kind']} -> {row.first} {row.place} {verdict(program, row)}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(work, chosen))
    rows = [(p, score(p, store.rows[f"{p.half}/{p.name}"])) for p in chosen]
    lines, sums = table(rows), totals(rows)
    print(as_text(lines), *sums, sep="\n")
    if args.markdown:
        args.markdown.write_text("\n".join(["# Planted programs", "", *(f"- {line}" for line in sums), "", as_markdown(lines), ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
