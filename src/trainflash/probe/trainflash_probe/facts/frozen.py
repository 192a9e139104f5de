"""Networks that nobody trains, and whether they answer rows again that they answered before: a teacher, a frozen backbone.

The windows of `again` show which modules without a trained parameter, in evaluation mode, record nothing for a backward: these give the
same for the same row. From then on the rows that go into the network are told apart by a few of their values, at fixed places; one is
known again whatever batch it comes in. Of a part of a network that is given what the whole network is, the whole's rows are looked at.
Where its weights change it is no longer frozen, as an average of what is trained. Inputs on a device are not looked at.
"""

from __future__ import annotations

import sys
import time
import weakref

from .. import own
from ..guard import swallow
from ..nested import memory_of, needs_grad, tensors_in
from ..parts import modules_in, parameters_in
from ..phases import matching
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from .askers import asker

MOST_ROWS = 200_000
MOST_NS = 300_000_000  # of our own work
MOST_NETWORKS = 4
VALUES = 8  # of each dimension of a row, evenly spaced
TELL_EVERY = 64  # calls

_clock = time.perf_counter_ns


class _Network:
    """One frozen module; `part_at`: the owner's line that calls it, where it is a part of the root whose rows are looked at."""

    def __init__(self, module, part_at) -> None:
        self.module, self.part_at = weakref.ref(module), part_at
        self.weights = _weights(module)
        self.seen: set = set()
        self.places: dict = {}  # owner's line -> [calls of the network, of any root, rows, again, marks of (rows, again)]


class Frozen(Observer):
    """Is told of calls in a window, and listens to roots afterwards."""

    def __init__(self) -> None:
        self._root = None  # (the root that runs, places in memory of what it was given)
        self._networks: dict = {}  # id of a root -> _Network
        self._spent = self._calls = 0
        self._listens = False

    def called(self, module, frame, args: tuple, kwargs: dict, outermost: bool) -> None:
        """A module is about to be called in a window, by `frame`; the outermost ones are told first."""
        try:
            if outermost:
                self._root = weakref.ref(module), set(map(matching.memory_of, tensors_in((args, kwargs)))) - {0}
            if self._root is not None and len(self._networks) < MOST_NETWORKS:
                self._note(module, frame, args, kwargs)
        except Exception as error:
            swallow("frozen", error)

    def _note(self, module, frame, args: tuple, kwargs: dict) -> None:
        root, given = self._root[0](), self._root[1]
        if root is None or id(root) in self._networks or needs_grad((args, kwargs)):
            return
        if module is not root and not given.intersection(map(matching.memory_of, tensors_in((args, kwargs)))):
            return
        place = asker(frame)
        if place is None or not _is_frozen(module):
            return
        self._networks[id(root)] = _Network(module, None if module is root else place)
        if not self._listens:
            self._listens = True
            loop.on_forward.append(self._on_call)

    def _on_call(self, module, args: tuple, kwargs: dict) -> None:
        """A root is about to run: one that is looked at, or another one at a place where such a one is called as well."""
        began = _clock()
        try:
            self._look(module, args, kwargs)
        except Exception as error:
            swallow("frozen", error)
            self._stop()
        self._spent += _clock() - began
        if self._spent > MOST_NS:
            self._stop()

    def _look(self, module, args: tuple, kwargs: dict) -> None:
        network = self._networks.get(id(module))
        place = None
        if network is None or network.part_at is None:
            place = own.caller()
            place = None if place is None else tuple(place)
            for each in self._networks.values():
                if place in each.places:
                    each.places[place][1] += each is not network
        if network is None:
            return
        part, rows = network.module(), signatures((args, kwargs))
        if part is None or part.training or (rows is not None and _weights(part) != network.weights):
            del self._networks[id(module)]
            return
        place = tuple(network.part_at) if network.part_at is not None else place
        if rows is None or place is None or (network.part_at is not None and loop.evaluating):
            return
        entry = network.places.setdefault(place, [0, 0, 0, 0, []])
        entry[0] += 1
        entry[1] += 1
        entry[2] += len(rows)
        entry[3] += sum(row in network.seen for row in rows)
        network.seen.update(rows)
        if not entry[0] & (entry[0] - 1):
            entry[4].append((entry[2], entry[3]))
        self._calls += 1
        if self._calls % TELL_EVERY == 0:
            self.tell()
        if len(network.seen) > MOST_ROWS:
            self._stop()

    def _stop(self) -> None:
        loop.on_forward = [each for each in loop.on_forward if each != self._on_call]
        self.tell()

    def on_exit(self) -> None:
        """The end is the newest state."""
        self.tell()

    def tell(self) -> None:
        """What is known so far, newest facts last; the later half of a place's rows says how many come again."""
        rows = []
        for network in self._networks.values():
            for place, (calls, of_any, seen, again, marks) in network.places.items():
                first = max(((n, known) for n, known in marks if 2 * n <= seen), default=(0, 0))
                rows.append([list(place), calls, of_any, seen - first[0], again - first[1]])
        if rows:
            fact("frozen", rows=rows)


def _weights(module) -> tuple:
    """What changes when any of a module's first and last parameters on the host does, in place, past autograd or by another tensor."""
    every = [each for each in parameters_in(module) if _is_on_host(each) and each.numel()]
    return tuple((each._version, each.data_ptr(), each.detach().reshape(-1)[0].item()) for each in (*every[:2], *every[-2:]))


def _is_frozen(module) -> bool:
    """Whether it has parameters and none is trained, and all of it is in evaluation mode: no dropout, no statistics of the batch."""
    held = {id(each) for made in loop.clock.living() for group in getattr(made, "param_groups", ()) for each in group["params"]}
    parameters = list(parameters_in(module))
    trained = not held or any(each.requires_grad and id(each) in held for each in parameters)
    return bool(parameters) and not trained and not any(each.training for each in modules_in(module))


def signatures(values: object):
    """Bytes that tell rows apart, one for each row of the tensors in `values`; None where they cannot be looked at without waiting."""
    found = [tensor for tensor in tensors_in(values) if tensor.dim()]
    rows = max((tensor.shape[0] for tensor in found), default=0)
    found = [tensor for tensor in found if tensor.shape[0] == rows]
    if not rows or not all(map(_is_on_host, found)):
        return None
    return [b"".join(parts) for parts in zip(*(_few(tensor.detach()) for tensor in found))]


def _is_on_host(tensor) -> bool:
    """Whether it is a dense one on the host of torch's own kinds: to read a value of a distributed one takes all ranks."""
    torch = sys.modules["torch"]
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu" and tensor.layout == torch.strided


def _few(tensor) -> list:
    """Some values of each row as bytes."""
    for dim in range(1, tensor.dim()):
        size = tensor.shape[dim]
        if size > VALUES:
            tensor = tensor[(slice(None),) * dim + (slice(size // (2 * VALUES), None, size // VALUES),)]
    flat = tensor.reshape(tensor.shape[0], -1).contiguous()
    raw = memory_of(flat.float() if str(flat.dtype) == "torch.bfloat16" else flat).tobytes()
    width = len(raw) // flat.shape[0]
    return [raw[at * width : (at + 1) * width] for at in range(flat.shape[0])]
