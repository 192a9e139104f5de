"""Every call of torch in one step: its line and the stack above, its time, and that of its own backward.

The calls are watched (see `entry_points`) while torch's recorder is on. A call's backward is found by the sequence numbers of the nodes
that it added to the graph: the recorder names them when the engine comes to them. Of calls that take long it is told what they were given
and made: shapes, types, layouts, plain arguments.
"""

from __future__ import annotations

from ..guard import swallow
from ..phases.loop import loop
from ..runqueue import clock
from ..writer import fact
from . import call_trials, stacks
from .entry_points import EntryPoints

MOST_CALLS = 100_000
MOST_ROWS = 4_000
LARGE_NS = 50_000  # shorter calls are not described
MOST_TENSORS = 12
SAMPLED_FROM = 65_536  # elements; what smaller tensors hold is not looked at
SAMPLED = 4_093  # elements of a tensor, evenly
MOSTLY, NOTICED = 0.95, 0.1  # own: parts of a sample


class OperatorLines:
    """The calls of one step, by stack and name; told together with the times of their backwards."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._nodes = torch._C._autograd._get_sequence_nr
        self._points = EntryPoints(torch)
        self._rows: dict = {}  # (stack, phase, name, what it was given) -> [calls, ns, row's number]
        self._made: list = []  # (first node, node behind the last, number of the row) in order
        self._calls = 0

    def begin(self) -> None:
        """Watch all calls of torch."""
        self._points.watch_everything(self._noted)

    def _noted(self, original, args: tuple, kwargs: dict, caller) -> object:
        if self._calls >= MOST_CALLS:
            return original(*args, **kwargs)
        self._calls += 1
        first, began = self._nodes(), clock()
        made = original(*args, **kwargs)
        ns, last = max(1, clock() - began), self._nodes()  # the kernel may tell of waiting after the call that it belongs to
        try:
            self._note(original, args, kwargs, caller, made, ns, first, last)
        except Exception as error:
            swallow("calls of torch", error)
        return made

    def _note(self, original, args, kwargs, caller, made, ns: int, first: int, last: int) -> None:
        if loop.in_bwd:
            phase = "Bwd"
        elif loop.in_fwd or last > first:  # also of a closure inside an update
            phase = "Fwd"
        else:
            phase = "Opt" if loop.in_opt else "Data" if loop.in_data else ""
        described = None
        if ns >= LARGE_NS and phase != "Opt":
            with self._torch._C.DisableTorchFunction():
                described = _described(self._torch, args, kwargs, made)
        name = _name(original)
        if described is not None and loop.in_fwd:
            call_trials.remember(original, name, args, kwargs, described, ns)
        key = (stacks.number(caller), phase, name, described)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= MOST_ROWS:
                return
            row = self._rows[key] = [0, 0, len(self._rows)]
        row[0] += 1
        row[1] += ns
        if last > first:
            self._made.append((first, last, row[2]))

    @property
    def count(self) -> int:
        """Calls that were watched."""
        return self._calls

    def end(self) -> None:
        """Watch no more."""
        self._points.restore()

    def write(self, step: int, ns: int, backward: dict, nodes: int, beside_ns: int) -> None:
        """Tell the rows; `ns` of the step up to its last update, the others as `operators.backwards` counts them."""
        spent = [0] * len(self._rows)
        unowned = _distributed(self._made, backward, spent)
        rows = [
            [stack, phase, name, calls, took, spent[number], described]
            for (stack, phase, name, described), (calls, took, number) in self._rows.items()
        ]
        fact("op_lines", step=step, ns=ns, unowned_ns=unowned, nodes=nodes, beside_ns=beside_ns, rows=rows)


def _distributed(made: list, backward: dict, spent: list) -> int:
    """Gives each node's time to the row that made it; a node between two calls, as of a function of the owner's, to the call behind it.

    What is left, for nodes that were made before the step, is returned.
    """
    order = sorted(backward)
    at = unowned = 0
    for node in order:
        while at < len(made) and made[at][1] <= node:
            at += 1
        if at < len(made):
            spent[made[at][2]] += backward[node]
        else:
            unowned += backward[node]
    return unowned


def _name(function: object) -> str:
    name = str(getattr(function, "__name__", "") or type(function).__name__)
    if name in ("__get__", "__set__", "__delete__"):
        owner = getattr(function, "__self__", None)
        name = f"{getattr(owner, '__name__', '')}.{name}"
    return name


def _described(torch, args: tuple, kwargs: dict, made: object):
    """(tensors given, tensors made, plain arguments), as far as they are tensors, plain, or short sequences of those."""
    given: list = []
    plain: list = []
    for index, value in enumerate(args):
        _sort(torch, value, str(index), given, plain)
    for name, value in kwargs.items():
        _sort(torch, value, name, given, plain)
    results: list = []
    _sort(torch, made, "", results, [])
    return tuple(given[:MOST_TENSORS]), tuple(results[:MOST_TENSORS]), tuple(plain[:MOST_TENSORS])


def _sort(torch, value: object, name: str, tensors: list, plain: list, deep: int = 0) -> None:
    kind = type(value)
    if isinstance(value, torch.Tensor):
        tensors.append(_of_tensor(torch, value))
    elif kind in call_trials.PLAIN:
        if value is not None:
            plain.append((name, value if kind is not str else value[:40]))
    elif kind in (tuple, list, torch.Size) and deep < 2 and len(value) <= 64:
        if all([type(each) in call_trials.PLAIN for each in value]):
            plain.append((name, str(list(value))[:60]))
        else:
            for each in value:
                _sort(torch, each, name, tensors, plain, deep + 1)
    elif kind is torch.dtype:
        plain.append((name, str(value)))


def _of_tensor(torch, tensor) -> tuple:
    """(shape, type, layout, needs a gradient, device, what most of its values are)."""
    if tensor.layout is not torch.strided:
        layout = str(tensor.layout).replace("torch.", "")
    elif tensor.is_contiguous():
        layout = "contiguous"
    elif tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        layout = "channels_last"
    else:
        layout = "expanded" if 0 in tensor.stride() else "strided"
    kind = str(tensor.dtype).replace("torch.", "")
    values = _values(torch, tensor) if layout == "contiguous" and tensor.device.type == "cpu" else ""
    return tuple(tensor.shape), kind, layout, tensor.requires_grad, tensor.device.type, values


def _values(torch, tensor) -> str:
    """zeros or ones, where a sample holds little else, or subnormal, where it holds many such numbers."""
    size = tensor.numel()
    if size < SAMPLED_FROM or not (tensor.dtype is torch.bool or tensor.dtype.is_floating_point):
        return ""
    if torch._C._len_torch_dispatch_stack() or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return ""  # what the program counts or transforms, we do not add to
    sample = tensor.detach().view(-1)[:: size // SAMPLED]
    filled = int(sample.count_nonzero()) / len(sample)
    if filled <= 1 - MOSTLY:
        return "zeros"
    if tensor.dtype is torch.bool:
        return "ones" if filled >= MOSTLY else ""
    least = torch.finfo(tensor.dtype).tiny
    small = int(((sample.abs() < least) & (sample != 0)).count_nonzero()) / len(sample)
    return "subnormal" if small >= NOTICED else ""
