"""Stacks by short words: "own:train.py:10:main lib:lightning/fit.py:3:fit torch:torch/nn/functional.py:9:linear"."""

from __future__ import annotations

import numpy as np
import traces as t

from trainflash.schema import PHASES, Location
from trainflash.stacks import Stack, StackFrame
from trainflash.trace import Samples

KINDS = {"own": "own", "lib": "library", "torch": "torch", "py": "python"}
ENGINE = "torch:torch/_tensor.py:1:Tensor.backward torch:torch/autograd/graph.py:2:_engine_run_backward"


def stack(words: str) -> Stack:
    """The frames from the outermost to the leaf; `text` of a frame behind a bar."""
    frames = []
    for word in words.split():
        word, _, text = word.partition("|")
        kind, file, line, function = word.split(":")
        frames.append(StackFrame(Location(file, int(line), function), KINDS[kind], text.replace("_", " ")))
    return tuple(frames)


def samples(rows: list[tuple[str, str, int]], steps: int, every_ms: float = 1.0) -> Samples:
    """Samples of one training thread: (stack, phase, times in each step), `every_ms` milliseconds each."""
    known = list(dict.fromkeys(words for words, _, _ in rows))
    step, phase, number = [], [], []
    for at in range(steps):
        for words, name, times in rows:
            step += [at] * times
            phase += [PHASES.index(name)] * times
            number += [known.index(words)] * times
    count = len(step)
    return Samples(
        t_ns=t.START_NS + t.ns(np.arange(count) * every_ms),
        weight_ns=t.ns(np.full(count, every_ms)),
        place=np.full(count, -1),
        phase=np.array(phase),
        step=np.array(step),
        locations=(),
        stack=np.array(number),
        stacks=tuple(map(stack, known)),
    )
