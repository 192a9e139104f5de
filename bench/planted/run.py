"""Runs `trainflash diagnose` over the planted programs and scores its first finding, its line and what must stand beside.

Each program is copied to a temporary folder with a git repository of its own, so nothing here is touched; the sandbox lies in the same
temporary place. Raw results go to bench/results/planted.json and are kept: a second call runs only what is missing or failed
(--fresh: all).
Scores are computed from the raw results each time, so a corrected manifest needs no new run.

    python bench/planted/run.py [--half open|kept|all] [--only NAME] [--jobs 1] [--fresh] [--markdown FILE]
"""

import argparse
import os
import shlex
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from programs import HERE, Program, command_of, copy_of, environment, programs
from score import Score, score

sys.path.append(str(HERE.parent))

from kept_results import KeptResults
from owners_project import answer, make_repository

RESULTS = HERE.parent / "results" / "planted.json"
KEPT_KEYS = ("kind", "phase", "location", "share", "severity", "bound_by", "evidence")


def diagnose(program: Program, trainflash: list[str], limit_s: float) -> dict:
    """The raw result of one program: findings, abstention, coverage, or the error."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as base:
        folder = copy_of(program, Path(base))
        make_repository(folder)
        env = {k: v for k, v in os.environ.items() if not k.startswith("PLANTED_")}
        env |= environment() | {"XDG_STATE_HOME": str(Path(base, "state"))}
        command = [*trainflash, "diagnose", "--json", "--", *command_of(program)]
        document = answer(command, folder, env, limit_s)
        if "error" in document:
            return document
        return {
            "findings": [{k: f.get(k) for k in KEPT_KEYS} for f in document["findings"]],
            **{key: document.get(key) for key in ("abstained", "steps", "coverage", "exit", "wall_s")},
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
