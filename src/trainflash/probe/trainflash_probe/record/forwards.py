"""Which root forwards trained, and which evaluated.

A forward is a training forward if a backward depends on it, whatever mode its module is in: the autograd graph of the loss is
searched for nodes that were made during the forward. All others are evaluation, and so is what backward reaches in vain: a network
of which no optimizer holds a parameter, with inputs that need no gradient, such as a teacher that nobody froze; and one whose optimizer is
not among those that step behind that backward, such as a GAN's generator where its critic learns.
"""

from __future__ import annotations

from ..phases.matching import memory_of
from . import aims, evaluations, state, tensors

_ROWS_LIMIT = 1024  # samples of one update whose hashes are listed one by one


class Forward:
    """Fingerprint of the inputs of one root forward. `owns`: the module has parameters (else it is a criterion).

    `made`: where the results of networks lie that other optimizers train; they are no data, with gradients or without.
    """

    def __init__(self, module, args, kwargs, owns, evaluating, updates, made=()):
        found = [tensor for _, tensor in tensors.leaves([args, kwargs])]
        given = [tensor for tensor in found if not tensor.requires_grad and memory_of(tensor) not in made]
        self.owns, self.evaluating, self.updates, self.module = owns, evaluating, updates, id(module)
        self.rows = tensors.rows(given)
        self.trimmed = tensors.rows(given, trim=True) if owns and any(tensor.dim() > 1 for tensor in given) else self.rows
        self.parts = [tensors.ordered(tensors.rows([tensor])) for tensor in given] if owns else []
        whole = [tensor for tensor in given if not tensor.is_floating_point()]
        self.whole = tensors.ordered(tensors.rows(whole)) if owns and whole else ""
        self.coarse = tensors.coarse(given) if owns else (0, 0)
        self.inputs = [tensors.elements([tensor]) for tensor in given] if owns else []
        self.shapes = [tensors.describe(tensor) for tensor in found]
        self.moments = tensors.moments(given) if owns else [0.0, 0.0, 0.0]
        self.mode = state.mode(module)
        self.autocast = state.autocast(found[0].device.type if found else "cpu")
        self.marker = state.graph_marker()
        self.end = None  # the marker of the forward after it
        self.look = None  # of a criterion's: what it was given
        self.free = owns and not any(tensor.requires_grad for tensor in found)  # nobody could want its gradient but its parameters
        self.unheld = None  # reference to the module, where backward reaches it in vain
        self.others = frozenset()  # parameters of its network, if one of several optimizers trains it: which one steps next decides
        self.net = self.mode[0]  # which network it is of: see `Evaluations.net`
        self._line = None

    @property
    def without_gradients(self):
        """Whether nobody learns from its gradients."""
        return self.marker is None or self.unheld is not None

    @property
    def may_evaluate(self):
        return self.owns and (self.without_gradients or bool(self.others) or not self.mode[1])

    @property
    def line(self):
        """What an evaluation is told of it."""
        if self._line is None:
            self._line = evaluations.begin(self)
        return self._line

    def returned(self, result):
        """What came out of it; only of forwards that may be evaluations."""
        found = [tensor for _, tensor in tensors.leaves(result)]
        self.line["outputs"], self.line["means"] = tensors.totals(found), tensors.totals(found, scalars=True)
        self.line["types"] = sorted({str(tensor.dtype).replace("torch.", "") for tensor in found if tensor.is_floating_point()})
        self.line["results"] = 1


class Forwards:
    """Forwards made with gradients, until it is known whether a backward depends on them."""

    def __init__(self):
        self._waiting = []
        self._used = []
        self._aimed = []  # rows of the targets that loss functions were given since the last update
        self._looks = []  # the same targets, a look for each call
        self.given = frozenset()  # hashes of the inputs of the last update
        self.trained = {}  # module -> the modes in which it was trained

    def add(self, forward):
        if self._waiting and self._waiting[-1].end is None:
            self._waiting[-1].end = forward.marker
        self._waiting.append(forward)

    def aim(self, target, ignored=None, updates=0):
        """A loss function of torch was given this target, and leaves the class index `ignored` out: with that a batch is padded.

        `updates`: how many were made before.
        """
        self._looks.append(None)
        target = tensors.as_single(target)
        if ignored is not None and target.dim() == 1:
            target = target[target != ignored]
        self._aimed += tensors.rows([target], ignored=ignored)
        self._looks[-1] = aims.look([target], updates)

    def use(self, numbers):
        """`numbers`: autograd nodes that a backward depends on; None when unknown: then the newest training-mode forward is taken."""
        if numbers is None:
            chosen = [forward for forward in self._waiting if forward.mode[1] and not forward.evaluating] or self._waiting[-1:]
        else:
            chosen = [
                forward
                for forward in self._waiting
                if any(forward.marker < number < (forward.end or float("inf")) for number in numbers if number < (1 << 62))
            ]
        self._used += chosen
        taken = set(map(id, chosen))
        self._waiting = [forward for forward in self._waiting if id(forward) not in taken]

    @property
    def in_vain(self):
        """Those of the update that is about to be told that no optimizer trains."""
        return [forward for forward in self._used if forward.unheld is not None]

    @property
    def maybe_in_vain(self):
        """Those of it that may be of networks which other optimizers train."""
        return [forward for forward in self._used if forward.others]

    def set_aside(self, forwards):
        """These are none of the update."""
        self._used = [forward for forward in self._used if forward not in forwards]

    def expired(self, updates):
        """Forwards with a model that no backward used during the update after theirs (a GAN's generator is used one update later)."""
        old = [forward for forward in self._waiting if forward.updates < updates - 1]
        self._waiting = [forward for forward in self._waiting if forward.updates >= updates - 1]
        return [forward for forward in old if forward.owns]

    def all(self):
        """All that still wait, at the end."""
        return [forward for forward in self._waiting if forward.owns]

    def taken(self):
        """The keys of an update line that describe its inputs; the next update begins."""
        models = [forward for forward in self._used if forward.owns]
        rows = [row for forward in models for row in forward.rows]
        trimmed = [row for forward in models for row in forward.trimmed]
        targets = self._aimed or [row for forward in self._used if not forward.owns for row in forward.rows]
        looks = self._looks if self._aimed else [forward.look for forward in self._used if not forward.owns]
        paired = len(trimmed) == len(targets) and [tensors.joined(both) for both in zip(trimmed, targets)]
        self.given = frozenset(each for forward in models for each in forward.inputs)
        for forward in models:
            self.trained.setdefault(forward.module, set()).add(tuple(forward.mode[1:]))
        self._used, self._aimed, self._looks = [], [], []
        return {
            "forwards": len(models),
            "samples": len(rows),
            "rows": _listed(rows),
            "multiset": f"{tensors.multiset(rows):x}",
            "order": tensors.ordered(rows),
            "unpadded": _listed(trimmed) if trimmed != rows else None,
            "trimmed": [f"{tensors.multiset(trimmed):x}", tensors.ordered(trimmed)],
            "targets": tensors.ordered(targets) if targets else None,
            "target_rows": _listed(targets),
            "target_sums": aims.together(looks),
            "pairs": f"{tensors.multiset(paired):x}" if paired else None,
            "parts": [part for forward in models for part in forward.parts],
            "whole": "".join(forward.whole for forward in models) or None,
            "coarse": [sum(forward.coarse[index] for forward in models) for index in range(2)],
            "shapes": sorted({shape for forward in models for shape in forward.shapes}),
            "moments": [sum(forward.moments[index] for forward in models) for index in range(3)],
            "modes": [forward.mode for forward in models],
            "autocast": sorted({forward.autocast for forward in models}),
        }


def _listed(rows):
    """The hashes one by one, hexadecimal, 8 bytes each; None where they are too many."""
    return "".join(row.hex() for row in rows) if len(rows) <= _ROWS_LIMIT else None
