"""Event files made by hand, as the probe writes them: a list of (milliseconds, code name) per process."""

from __future__ import annotations

import importlib
import json
import struct
import sys
from pathlib import Path

PROBE = Path(__file__).resolve().parents[2] / "src" / "trainflash" / "probe"
MS = 1_000_000
BASE_NS = 1_000 * MS


def part(name: str):
    """A module of the probe's package, imported as the user's process would."""
    if str(PROBE) not in sys.path:
        sys.path.append(str(PROBE))
    return importlib.import_module(f"trainflash_probe.{name}")


def code(name: str) -> int:
    """Code of "Fwd", "/Fwd" (its end), "step", "data_of+3", …"""
    codes = part("codes").NAMES
    if name.startswith("/"):
        return codes[name[1:]] + 1
    base, _, offset = name.partition("+")
    return codes[base] + int(offset or 0)


def word(ms: float, name: str) -> int:
    return (int(ms * MS) << 12) | code(name)


def write_run(
    directory: Path, events: list, *, facts: list = (), steps: int | None = None, tail: bytes = b"", pid: int = 7, **header
) -> Path:
    """One process: `events` are (ms, name) or whole words."""
    codes = part("codes")
    words = [event if isinstance(event, int) else word(*event) for event in events]
    if steps is None:
        steps = sum(1 for event in words if event & 0xFFF == codes.STEP)
    head = [codes.MAGIC, steps, 0, 0, 0, 0, 0, 0]
    raw = struct.pack(f"<{len(head) + len(words)}Q", *head, *words)
    (directory / f"events-{pid}.bin").write_bytes(raw + tail)
    (directory / f"facts-{pid}.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    document = {
        "schema": codes.VERSION,
        "pid": pid,
        "ppid": 1,
        "role": "main",
        "rank": 0,
        "world_size": 1,
        "argv": ["train.py"],
        "python": "3.11.7",
        "torch": "2.13.0",
        "start_ns": BASE_NS - 500 * MS,
        "base_ns": BASE_NS,
        "own": ["/home/me/project"],
        "codes": codes.NAMES,
        "phases": list(codes.PHASES),
        "events": f"events-{pid}.bin",
        "facts": f"facts-{pid}.jsonl",
    }
    (directory / f"process-{pid}.json").write_text(json.dumps({**document, **header}))
    (directory / "notice.jsonl").write_text(json.dumps({"notice": "torch 2.13.0"}) + "\n")
    return directory


def plain_step(at: float) -> list:
    """Ten milliseconds: 4 Data, 3 Fwd, 1 Bwd, 1 Opt, 1 Other."""
    return [
        (at, "data_of+0"),
        (at + 4, "/Data"),
        (at + 4, "Fwd"),
        (at + 7, "/Fwd"),
        (at + 7.5, "Bwd"),
        (at + 8.5, "/Bwd"),
        (at + 8.5, "Opt"),
        (at + 9.5, "/Opt"),
        (at + 10, "step"),
    ]
