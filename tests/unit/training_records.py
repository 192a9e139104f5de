"""Synthetic records of a small training: 40 samples, 3 epochs of 10 updates, an evaluation and a checkpoint after each."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

from trainflash.fidelity.record import Record, Stream, Update

EPOCH = 10
BATCH = 4
MODE = ("Net", True, 1, 0.1, 1)


def row(number: int) -> str:
    return f"{number + 1:016x}"


def update(n: int, shown: tuple[int, ...] | None = None, **changes) -> Update:
    """Update `n` of a program that goes through 40 samples in order, epoch by epoch."""
    shown = shown if shown is not None else tuple(((n - 1) % EPOCH) * BATCH + each for each in range(BATCH))
    plain = Update(
        n=n,
        optimizer=0,
        optimizer_class="SGD",
        losses=(1.0 / n,),
        loss_types=("float32",),
        forwards=1,
        samples=len(shown),
        rows=tuple(map(row, shown)),
        multiset=f"{sum(int(row(each), 16) for each in shown):x}",
        order="-".join(map(row, shown)),
        targets="t" + "-".join(map(row, shown)),
        shapes=("float32[3,8,8]",),
        moments=(float(sum(shown)), float(sum(each * each for each in shown)) + 1.0, 0.5 * sum(shown)),
        modes=(MODE,),
        autocast=("",),
        settings=({"lr": 0.1 if n <= EPOCH else 0.05, "weight_decay": 1e-4, "momentum": 0.9, "values": 100},),
        grad_norm=1.0 / n,
        grads=4,
        grad_elements=100,
        logs=int(n % EPOCH == 0),
        epoch=(n - 1) // EPOCH + 1,
        batches=(),
    )
    return replace(plain, **changes)


def weights(n: int, shift: float = 0.0, **changes) -> dict:
    sketch = [1.0 + shift] * 8
    line = {
        "n": n, "optimizer": 0, "digest": f"w{n}{shift}", "norm": math.sqrt(8), "sketch": sketch, "types": ["float32"], "values": 100,
        "buffer_norm": 0.0, "buffer_sketch": [], "random": {"torch": f"r{n}"},
        "parameters": 4, "updated": 4, "changed_values": 100, "untouched": [], "averages": [[1.0, [1.0] * 8]],
    }  # fmt: skip
    return {**line, **changes}


def evaluation(n: int, **changes) -> dict:
    modes = [["Net", False, 0, 0.0, 0]]
    line = {"n": n, "of": ["Net", False], "forwards": 4, "samples": 32, "multiset": "beef", "modes": modes, "weights": []}
    values = changes.get("trimmed", changes.get("multiset", line["multiset"]))
    line |= {"net": line["of"][0], "elements": values, "batches": "ba", "means": [0.0, 0.0, 0]}
    whole = {"types": ["float32"], "autocast": [""], "scores": {}}
    return {**line, **whole, "results": line["forwards"], "outputs": [3.0 * n, 400.0, 320], **changes}


def checkpoint(n: int, **changes) -> dict:
    names = ["model.weight:float32[4, 4]", "optimizer.state:float32[4, 4]"]
    return {"n": n, "keys": "k", "names": names, "digest": f"c{n}", "sketch": [1.0] * 8, "norm": math.sqrt(8), **changes}


def stream(updates=None, **changes) -> Stream:
    plain = Stream(
        rank=0,
        world_size=1,
        updates=tuple(updates or (update(n) for n in range(1, 31))),
        weights=tuple(weights(n) for n in (1, 2, 5, 10, 20, 30)),
        evaluations=(evaluation(10), evaluation(20), evaluation(30)),
        checkpoints=(checkpoint(10), checkpoint(20), checkpoint(30)),
        ended=True,
    )
    return replace(plain, **changes)


def record(*streams: Stream, whole: bool = True) -> Record:
    return Record(streams or (stream(),), whole)


def altered(at: int, **changes) -> Record:
    """The usual program, with one update changed."""
    return record(stream([update(n, **(changes if n == at else {})) for n in range(1, 31)]))


def later(**changes) -> Record:
    return record(stream(**changes))


def check_of(found, name):
    return next(check for check in found.checks if check.name == name)


def shuffled() -> Record:
    """The same samples in each epoch, the batches in reverse."""
    places = [begin + place for begin in (0, 10, 20) for place in range(EPOCH, 0, -1)]
    moved = [replace(update(place), n=n, losses=(0.9 / n,)) for n, place in enumerate(places, start=1)]
    return record(stream([replace(each, logs=int(each.n % EPOCH == 0)) for each in moved]))


def shuffled_like(other: Record) -> Record:
    """The samples of `shuffled`, the gradients of `other`."""
    norms = [each.grad_norm for each in other.streams[0].updates]
    return record(stream([replace(each, grad_norm=norm) for each, norm in zip(shuffled().streams[0].updates, norms, strict=True)]))


def short(updates: int) -> Record:
    return record(stream([update(n) for n in range(1, updates + 1)]))


def setting(n: int, **changes) -> tuple[dict, ...]:
    return ({**update(n).settings[0], **changes},)


def clipped(bound: float | None) -> Record:
    """The usual program with gradients of norm 1.0 and 0.1 by turns, clipped to `bound`."""
    norms = [min(1.0 if n % 2 else 0.1, bound or math.inf) * (1 - 1e-7 * n) for n in range(1, 31)]
    return record(stream([update(n, grad_norm=norm) for n, norm in enumerate(norms, start=1)]))


def rounded(delta: float, shift: float) -> Record:
    updates = [update(n, losses=(1.0 / n + (delta if n > 1 else 0.0),)) for n in range(1, 31)]
    return record(stream(updates, weights=tuple(weights(n, shift) for n in (1, 2, 5, 10, 20, 30))))


def write(run_dir: Path, samples: int, *, optimizers: int = 1, kind: str = "SGD", loss: float = 1.0) -> None:
    """The record of a program that ended after six updates, as the recorder writes it."""
    run_dir.mkdir(parents=True)
    plain = {
        "k": "update", "class": kind, "losses": [loss.hex()], "loss_types": [], "forwards": 1, "samples": samples, "rows": None,
        "multiset": "", "order": "", "targets": None, "shapes": [], "moments": [], "modes": [], "autocast": [], "settings": [],
        "grad_norm": None, "grads": None, "grad_elements": None, "logs": 0, "epoch": 0, "batches": [],
    }  # fmt: skip
    lines = [{"k": "start", "schema": "training-record.v1", "rank": 0, "world_size": 1, "start_ns": 1}]
    lines += [{**plain, "n": n + 1, "optimizer": n % optimizers} for n in range(6)] + [{"k": "end", "swallowed": {}}]
    (run_dir / "training-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
