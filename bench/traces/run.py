"""Causes and advice on public traces, beside what an expert wrote down before the tool read them: `make bench-traces TRACES="--base DIR"`.

`catalogue.json` has no trace, only where each comes from (repository/path), its sha256 and the reading: which findings may stand first,
the share of the window that they may take, why, and which findings nobody should be told. DIR holds the files at `source`, `+` between
owner and repository (`seeds/`: the traces that the tests read); what is missing or another file is said and left out. `facts.py` computes
the numbers that are compared.

First cause: the finding that stands first (`none`: nothing is advised) is one of the reading's, and its share lies in the reading's.
Laughable: any advice under a finding that the reading rules out. Ceilings: none below 1 ÷ (1 - share), where the whole share may go.
Floors: no kernel was faster than the least time that its shapes and the card give it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import facts  # noqa: E402

from trainflash.errors import TrainFlashError  # noqa: E402
from trainflash.profile.analysis import products  # noqa: E402
from trainflash.profile.analysis.build import summarize  # noqa: E402
from trainflash.profile.sources import Request, load  # noqa: E402

FLOORED = ("precision", "attention_kernel")  # of whose share the floor of the products stays
COMPARED = (
    ("kernels", "kernels", 1),
    ("kernel_sum_ms", "kernel_sum_us", 1000),
    ("busy_ms", "busy_us", 1000),
    ("device_span_ms", "span_us", 1000),
)


def digest(path: Path) -> str:
    """sha256 of a file; of a folder that of the digests of its files by name."""
    if path.is_dir():
        return hashlib.sha256(b"".join(hashlib.sha256(each.read_bytes()).digest() for each in sorted(path.iterdir()))).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def summary_of(path: Path):
    if path.is_dir():
        return summarize(load(Request(profile_dir=path)))
    given = {"xplane_file": (path,)} if path.name.endswith(".pb") else {"trace_file": (path,)}
    return summarize(load(Request(**given)))


def judged(reading: dict, path: Path) -> dict:
    """What the tool says of one trace, and whether it agrees with the reading and with `facts`."""
    try:
        summary = summary_of(path)
    except TrainFlashError as error:
        return {
            "name": reading["name"],
            "said": f"refused: {error}",
            "right": "none" in reading["first"],
            "share_right": True,
            "laughable": [],
            "low": [],
            "undercut": [],
            "wrong": [],
        }
    found = summary.optimization_candidates
    first = found[0] if found else None
    word = first.finding if first else "none"
    low, high = reading["share"] or (0.0, 1.0)
    wanted = first.share if first else None
    return {
        "name": reading["name"],
        "said": "; ".join(f"{each.finding} {'' if each.share is None else f'{each.share * 100:.0f} %'}".strip() for each in found)
        or "none",
        "right": word in reading["first"],
        "share_right": wanted is None or low <= wanted <= high,
        "laughable": [each.finding for each in found if each.finding in reading["never"]],
        "low": [
            each.finding
            for each in found
            if each.finding not in FLOORED and each.ceiling_speedup and each.share and each.ceiling_speedup < 1 / (1 - each.share) - 1e-3
        ],
        "undercut": undercut(summary),
        "wrong": [] if path.is_dir() or path.name.endswith(".pb") else wrong_numbers(summary, path),
    }


def undercut(summary) -> list[str]:
    """Kernels that were faster than the least that their bytes or operations should take on the card: floors that are none."""
    card = products.card([each.name for each in summary.devices])
    found = []
    for op in summary.hot_ops if card else ():
        moving = card.moving_us(op.bytes_proxy_per_call or 0.0)
        multiplying, known = products.least_us([op], card)
        if op.count and (moving > op.exclusive_duration / op.count or multiplying > known > 0):
            found.append(op.canonical_name)
    return found


def wrong_numbers(summary, path: Path) -> list[str]:
    """Figures of the devices that differ by more than a microsecond from those of `facts`."""
    if len(summary.devices) > 1:
        return []
    told = facts.facts(path)
    if not summary.devices:
        return ["devices"] if told.get("device_events") else []
    use = summary.devices[0]
    return [theirs for ours, theirs, unit in COMPARED if abs(told.get(ours, 0) * unit - getattr(use, theirs)) > (1.5 if unit > 1 else 0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder that holds the traces")
    parser.add_argument("--half", choices=("open", "aside", "fresh", "second", "third", "all"), default="open")
    parser.add_argument("--only", help="names, with commas between")
    parser.add_argument("--json", type=Path, help="write what was judged here")
    asked = parser.parse_args()
    readings = json.loads((HERE / "catalogue.json").read_text(encoding="utf-8"))
    rows, missing = [], []
    for reading in readings:
        if asked.half not in ("all", reading["half"]) or (asked.only and reading["name"] not in asked.only.split(",")):
            continue
        path = asked.base / reading["source"]
        if not path.exists() or digest(path) != reading["sha256"]:
            missing.append(reading["name"])
            continue
        rows.append(judged(reading, path))
        row = rows[-1]
        marks = ["ok " if row["right"] and row["share_right"] else "NO "]
        marks += [f"laughable {row['laughable']}"] * bool(row["laughable"]) + [f"ceiling {row['low']}"] * bool(row["low"])
        marks += [f"numbers {row['wrong']}"] * bool(row["wrong"]) + [f"floors {row['undercut']}"] * bool(row["undercut"])
        print(
            f"{' '.join(marks):4} {row['name']:24} {row['said']}   (reading: {' or '.join(reading['first'])} {reading['share'] or ''})",
            flush=True,
        )
    total = len(rows)
    print(f"{total} traces of {asked.half}, {len(missing)} missing {missing or ''}")
    print(
        f"first cause right: {sum(row['right'] for row in rows)}, its share too: {sum(row['right'] and row['share_right'] for row in rows)}"
    )
    print(
        f"with laughable advice: {sum(bool(row['laughable']) for row in rows)}; ceilings too low: {sum(bool(row['low']) for row in rows)}"
    )
    print(f"numbers that differ: {sum(bool(row['wrong']) for row in rows)}; floors undercut: {sum(bool(row['undercut']) for row in rows)}")
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
