"""Evaluation forwards as lines of the record: what was evaluated, how, what came out, and against which targets it was scored.

There is one line for each number of updates done before, and each kind of network: its parameters' names and shapes, its class, and
whether it was in training mode. So a network that answers in each step without gradients (a teacher, a generator for its critic) is told
from the evaluation at its end. Forwards about the very batch of the step before or after them have a line of their own, with `step`.
"""

from __future__ import annotations

import hashlib
import weakref
from collections import deque

from . import state, tensors

_WEIGHED_LIMIT = 500  # evaluations whose weights are hashed
_RECENT = 64  # forwards after one update that may yet turn out to be about its batch; more are an evaluation
_SUMS = ("forwards", "samples", "results")
_SETS = ("multiset", "trimmed", "elements", "batches")  # sums of hashes, modulo 2**64


def begin(forward):
    """The line of one forward, as lines are added up."""
    rows = tensors.multiset(forward.rows)
    return {
        "k": "evaluation", "n": forward.updates, "of": forward.mode[:2], "net": forward.net, "forwards": 1, "samples": len(forward.rows),
        "multiset": rows, "trimmed": tensors.multiset(forward.trimmed), "elements": tensors.total(forward.inputs),
        "batches": tensors.multiset([tensors.joined([rows.to_bytes(8, "little")])]), "modes": [forward.mode], "weights": [], "results": 0,
        "outputs": [0.0, 0.0, 0], "means": [0.0, 0.0, 0], "types": [], "autocast": [forward.autocast], "scores": {},
    }  # fmt: skip


def merged(line, more):
    """`line` with what `more` adds."""
    for name in _SUMS:
        line[name] += more[name]
    for name in _SETS:
        line[name] = tensors.total([line[name], more[name]])
    for name in ("outputs", "means"):
        line[name] = [a + b for a, b in zip(line[name], more[name])]
    for name in ("modes", "types", "autocast"):
        line[name] += [each for each in more[name] if each not in line[name]]
    line["weights"] += more["weights"]
    if more.get("unweighed"):
        line["unweighed"] = True
    for name, score in more["scores"].items():
        line["scores"][name] = scored(line["scores"].get(name), score)
    return line


def scored(known, more):
    """Two scores together. One is `[targets, hash of them, hash without zeros, sum of the loss over all or None]`."""
    if known is None:
        return list(more)
    total = None if known[3] is None or more[3] is None else known[3] + more[3]
    return [known[0] + more[0], tensors.total([known[1], more[1]]), tensors.total([known[2], more[2]]), total]


class _Kind:
    """One kind of network after one number of updates: forwards that are certainly an evaluation, and the newest ones by themselves."""

    def __init__(self):
        self.sure = None
        self.recent = deque()  # (hashes of the inputs, module, its mode, line)
        self.seen = set()

    def add(self, entry):
        self.recent.append(entry)
        if len(self.recent) > _RECENT:
            oldest = self.recent.popleft()[3]
            self.sure = merged(self.sure, oldest) if self.sure else oldest


class Evaluations:
    """Collects the lines until it is known which batches the updates around them were made of."""

    def __init__(self):
        self._open = {}  # (updates, net, class, training mode) -> _Kind
        self._nets = {}
        self._weighed = 0

    def net(self, module):
        """A hash of the names and shapes of its parameters: the same network, whatever its class is called and whoever compiles it."""
        known = self._nets.get(id(module))
        if known is None or known[0]() is not module:
            names = sorted(f"{state.plain_name(name)}{list(each.shape)}" for name, each in module.named_parameters())
            known = self._nets[id(module)] = (weakref.ref(module), hashlib.blake2b("\n".join(names).encode(), digest_size=8).hexdigest())
        return known[1]

    def _at(self, forward):
        return self._open.setdefault((forward.updates, forward.net, *forward.mode[:2]), _Kind())

    def add(self, forward):
        self._at(forward).add((frozenset(forward.inputs), forward.module, tuple(forward.mode[1:]), forward.line))

    def wants_weights(self, forward, module):
        """Whether this module is evaluated for the first time after this update."""
        seen = self._at(forward).seen
        if id(module) in seen:
            return False
        seen.add(id(module))
        self._weighed += 1
        if self._weighed > _WEIGHED_LIMIT:
            forward.line["unweighed"] = True
        return self._weighed <= _WEIGHED_LIMIT

    def finished(self, until, given, trained):
        """Lines of evaluations made after at most `until` updates, in order; they are forgotten.

        `given` are the hashes of the inputs of the updates by number, `trained` the modes in which modules are trained.
        """
        for key in sorted(key for key in self._open if key[0] <= until):
            kind = self._open.pop(key)
            parts = {False: [kind.sure] if kind.sure else [], True: []}
            before, after = (given.get(n, frozenset()) for n in (key[0], key[0] + 1))
            for inputs, module, mode, line in kind.recent:
                # What belongs to both neighbours belongs to no step: all are made of the same samples, or of ones that never change.
                asked = bool(inputs) and (inputs <= before) != (inputs <= after)
                parts[asked and mode in trained.get(module, (mode,))].append(line)
            for step, lines in parts.items():
                if lines:
                    yield _written(lines, step)


def _written(lines, step):
    line = lines[0]
    for more in lines[1:]:
        line = merged(line, more)
    line.update({name: f"{line[name]:x}" for name in _SETS})
    line["scores"] = {name: [score[0], f"{score[1]:x}", f"{score[2]:x}", score[3]] for name, score in line["scores"].items()}
    return {**line, "step": True} if step else line
