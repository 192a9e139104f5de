"""Updates that the owner wrote: a function that changes the parameters where no torch optimizer does is phase Opt, and ends a step.

In the traced gaps after backward each call of the owner's is told from the others by what it did to the parameters: their version, some
of their bytes (a change through `.data` has no version; bytes are read on the host only), or, in functional training, whether the next
forward uses tensors that the call returned. The function is bracketed then, as data functions are.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import weakref
from threading import get_ident

from .. import codes, own
from ..guard import swallow
from ..nested import plain, stands_in
from ..parts import parameters_in
from ..writer import emit, fact
from .brackets import exchange, functions_of
from .loop import loop

MAX_WATCHED = 8  # tensors, spread over all parameters
MAX_NODES = 5000  # of the graph, looked at for parameters that no module holds
PIECES = 4  # of a tensor's memory
PIECE = 64  # bytes


class OwnUpdate:
    """Stands for a function of the owner's where an optimizer is expected."""

    def __init__(self, place: list, parameters: list) -> None:
        self.place, self.name = place, place[2]
        self._parameters = [weakref.ref(parameter) for parameter in parameters]  # they may end before the program does

    @property
    def param_groups(self) -> list:
        """As an optimizer has them; those that live."""
        return [{"params": [parameter for parameter in (each() for each in self._parameters) if parameter is not None]}]


class Watched:
    """Some of the parameters, and what can be seen of their values without asking a device.

    Memory is read only while its storage, which is kept, still has it: `p.data = …` gives a parameter other memory, and sharding
    frees it.
    """

    def __init__(self, parameters: list) -> None:
        every = max(1, -(-len(parameters) // MAX_WATCHED))
        self.all = parameters
        self._some = [plain(parameter) for parameter in parameters[::every]]
        self._memory = [memory for memory in (_Memory.of(parameter) for parameter in self._some) if memory is not None]

    def state(self) -> tuple:
        """Equal as long as the parameters are; costs some 20 µs."""
        versions = tuple([(parameter._version, parameter.data_ptr()) for parameter in self._some])
        return versions, b"".join([memory.read() for memory in self._memory])


class _Memory:
    """A few pieces of one tensor's memory on the host."""

    def __init__(self, storage) -> None:
        self._storage = storage
        self._begin, self._size = storage.data_ptr(), storage.nbytes()
        length = min(PIECE, self._size)
        last = self._size - length
        self._pieces = sorted({(self._begin + last * piece // (PIECES - 1), length) for piece in range(PIECES)})

    @classmethod
    def of(cls, tensor):
        """None for a tensor without memory on the host."""
        try:
            return cls(tensor.untyped_storage()) if tensor.device.type == "cpu" and not stands_in(tensor) else None
        except (RuntimeError, NotImplementedError):
            return None

    def read(self) -> bytes:
        if (self._storage.data_ptr(), self._storage.nbytes()) != (self._begin, self._size):
            return b"moved"
        return b"".join([ctypes.string_at(*piece) for piece in self._pieces])


def parameters_of(trained: dict) -> list:
    """Those of the roots that are trained."""
    roots = [root for root in (reference() for reference in trained.values()) if root is not None]
    found = {id(parameter): parameter for root in roots for parameter in parameters_in(root) if parameter.requires_grad}
    return list(found.values())


def leaves_of(outputs: tuple) -> list:
    """Tensors that `backward` of these will give gradients."""
    todo, seen, found = [output.grad_fn for output in outputs if getattr(output, "grad_fn", None) is not None], set(), []
    while todo and len(seen) < MAX_NODES:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        todo += [following for following, _ in node.next_functions]
    return found


def nobody_else_updates() -> bool:
    """No optimizer of torch's has stepped."""
    return not loop.clock.steps_by_optimizer()


def changing(returned: list, which: int):
    """The call that made the whole change of what is watched as number `which`, as exact as can be.

    None where no one call did, or the same function did it piece by piece.
    """
    changed = [call for call in returned if call.before[which] != call.after[which]]
    if not changed:
        return None
    outermost = min(changed, key=lambda call: call.depth)
    whole = (outermost.before[which], outermost.after[which])
    exact = max((call for call in changed if (call.before[which], call.after[which]) == whole), key=lambda call: call.depth)
    return exact if sum(call.code is exact.code for call in changed) == 1 else None


def bracket(code, namespace: dict, parameters: list) -> bool:
    """Make every call of the functions with this code an update of `parameters`."""
    if code.co_flags & 0x2A0:  # generators and coroutines
        return False
    update = OwnUpdate(own.place_of_code(code), parameters)
    for function in functions_of(code, namespace):
        exchange(function, functools.partial(_span, update))
    loop.clock.constructed(update)
    kept.append(update)
    fact("update_function", at=update.place, step=loop.steps + 1)
    loop.tell(loop.on_found)
    return True


kept: list = []  # the clock knows optimizers by weak references


def _named(update: OwnUpdate):
    """A range as torch's optimizers make one, where a census of operators is taken."""
    census = sys.modules.get("trainflash_probe.facts.census")
    if census is None or census.running is None:
        return contextlib.nullcontext()
    return sys.modules["torch"]._C._profiler._RecordFunctionFast(f"Optimizer.step#{update.name}")


def _span(update: OwnUpdate, original):
    def step(*args, **kwargs):
        if loop.tid != get_ident() or loop.in_opt or loop.in_fwd or loop.in_bwd or loop.in_data:
            return original(*args, **kwargs)
        try:
            loop.arrives()
            loop.update_begins(update)
        except Exception as error:
            swallow("own update", error)
        loop.in_opt += 1
        loop.begin(codes.OPT)
        try:
            with _named(update):
                return original(*args, **kwargs)
        finally:
            loop.in_opt -= 1
            emit(codes.OPT_END)
            try:
                loop.update_ended(update)
            except Exception as error:
                swallow("own update", error)

    return step
