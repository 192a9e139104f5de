"""Runs in which a knob's preconditions hold, and a small applier of diffs: what tests over all knobs share."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from knob_scenes import activity, diagnosis, finding, loader, setting, summary

from trainflash import knobs
from trainflash.knobs import Knob
from trainflash.schema import (
    Attention,
    Candidate,
    Collections,
    Command,
    Communication,
    Compilation,
    Finding,
    IgnoredTargets,
    InVain,
    Location,
    Memory,
    Numerics,
    Operators,
    PaddedField,
    Recompute,
    Summary,
    SyncPoint,
    Updates,
    Written,
)

GB = 1_000_000_000


LISTS = ("recompute", "attention", "ignored_targets", "in_vain", "sync_points")  # parts of a run of which there may be several
SEEN = {field.name for field in dataclasses.fields(Summary)}
ELSEWHERE = ("no_loader", "role", "threads", "settings")  # facts that are read below


def run_for(knob: Knob, here: Location, optimizer: Location | None = None, **facts) -> tuple[Summary, Finding]:
    """A run that saw everything at `here`, with what the knob asks for; `facts` (`train_loader__num_workers`, `no_loader`) on top."""
    parts = {
        "loader": loader("train", here, num_workers=2, prefetch_factor=2),
        "numerics": Numerics("float32", None, "highest", False, True, (9, 0), True, False, False, 4, False, False),
        "updates": Updates("SGD", optimizer, False, False, 9, 999, 1, 4.0, 2),
        "communication": Communication("nccl", "DDP", 0.3, 9.0, 5.0, 9e6, 0.2, True, False, 25.0, 1.0, 0.1, here),
        "compilation": Compilation(5, 3, 0.3, 90.0, 0, (), True, False, here),
        "collections": Collections(50, 50, 0.3, 9.0, 50, here),
        "memory": Memory(
            host_peak_bytes=GB, host_limit_bytes=16 * GB, device_peak_bytes=GB, device_total_bytes=80 * GB, empty_cache_calls=5,
            empty_cache_share=0.2, empty_cache_at=here,
        ),
        "operators": Operators(3, 900.0, 9.0, 10.0, 0.5, 100.0, 0.3, 0.4, 0.1),
        "recompute": Recompute(here, 2.0, 0.2),
        "attention": Attention("hand_written", here, 0.4, 2.0, (2, 4, 64, 64)),
        "in_vain": InVain(here, True, 1.0, 0.4),
        "ignored_targets": IgnoredTargets(here, 0.5, 0.8, 1.0, (256, 64)),
        "sync_points": SyncPoint(here, "item", 100, 0.5, 0.2, True),
    }  # fmt: skip
    padded, padded_by = facts.pop("padded", {"input_ids": 0, "attention_mask": 0}), facts.pop("padded_by", None)
    whole = {"device": "cuda:NVIDIA H200", "input_shapes": 1, "padding_share": 0.5, "data_function": here}
    wanted = {condition.fact: met(condition) for condition in knob.requires}
    for name, value in {**wanted, **{name.replace("__", "."): value for name, value in facts.items()}}.items():
        root, _, field = name.partition(".")
        root = "loader" if root in ("train_loader", "eval_loader") else root
        if root in parts and field:
            parts[root] = dataclasses.replace(parts[root], **{field: value})
        elif root in whole or name in SEEN:
            whole[root] = value
        elif name == "batches_a_pass":
            parts["loader"] = dataclasses.replace(parts["loader"], epochs=(summary().steps + summary().warmup_steps) // value)
        elif name.replace(".", "__") in facts and not root.startswith(ELSEWHERE):
            raise KeyError(f"no run here can have seen {name}")
    asked = [condition.fact.removeprefix("settings.") for condition in knob.requires if condition.fact.startswith("settings.")]
    threads = dataclasses.replace(summary().threads, set_at=here)
    if "threads.torch_threads" in (name.replace("__", ".") for name in facts):
        threads = dataclasses.replace(threads, torch_threads=facts["threads__torch_threads"])
    made = summary(
        **{name: part for name, part in parts.items() if name not in ("loader", *LISTS)},
        **{name: (parts[name],) for name in LISTS},
        loaders=()
        if facts.get("no_loader")
        else (dataclasses.replace(parts["loader"], role="eval" if facts.get("role") == "eval" else "train"),),
        settings=tuple(setting(name, here) for name in sorted({"anomaly_mode", "profiler", *asked})),
        activities=tuple(activity(phase, here, grad_enabled=True) for phase in ("Eval", "Ckpt", "Log")),
        threads=threads,
        written=(Written(here, often=True, unheard=True),),
        padded=tuple(each if isinstance(each, PaddedField) else PaddedField(each, padded[each], 128) for each in padded),
        padded_by=padded_by,
        **whole,
    )
    return made, finding(knob.answers[0], here)


def met(condition):
    """A value that meets a condition."""
    if condition.equals is not None:
        return condition.equals
    if condition.differs is not None:
        return not condition.differs
    if condition.above is not None:
        return int(condition.above) + 1
    if condition.below is not None:
        return int(condition.below) - 1
    return "there" if condition.exists else None


def applied(root: Path, diff: str) -> dict[str, str]:
    """The files that a unified diff makes of those in `root`, without writing them; fails where the context does not fit."""
    result = {}
    for part in re.split(r"(?m)^--- a/", diff)[1:]:
        name = part.split("\n", 1)[0].strip()
        lines = (root / name).read_bytes().decode("utf-8").split("\n")
        out, at = [], 0
        for hunk in re.split(r"(?m)^@@ -", part)[1:]:
            head, _, body = hunk.partition("\n")
            number = int(re.match(r"(\d+)", head)[1])
            start = number - (0 if re.match(r"\d+,0 ", head) else 1)
            out += lines[at:start]
            at = start
            for row in body.split("\n")[:-1]:
                if row.startswith("\\"):
                    continue
                if row[:1] in (" ", "-"):
                    assert lines[at] == row[1:], f"{name}:{at + 1}: {lines[at]!r} is not {row[1:]!r}"
                    at += 1
                if row[:1] in (" ", "+"):
                    out.append(row[1:])
        result[name] = "\n".join(out + lines[at:])
    return result


def candidate_here(root: Path, name: str, source: str, **facts) -> Candidate:
    """What the knob `name` makes of `source`, where the run saw it on the line that ends in "# here"."""
    (root / "train.py").write_text(source, encoding="utf-8")
    here = Location("train.py", next(n for n, row in enumerate(source.splitlines(), 1) if "# here" in row))
    run, found = run_for(knobs.get(name), here, **facts)
    words = Command(("python", "train.py"))
    return knobs.propose(
        knobs.get(name), None, None, diagnosis=diagnosis(found), summary=run, checkout=root, command=words, memory_bytes=GB
    )
