"""Finds the function that makes batches where no DataLoader does.

In a few early steps the time from the update to the next forward is traced. A function of the owner whose returned tensors or arrays
are inputs of the model is the data function: its calls are phase Data from then on. So is one that is called between forward and
backward and returns the inputs of the next step. A generator that runs already cannot be bracketed; there the end of the time before
the forward counts as Data, as much of it as the generator took in the traced steps.
"""

from __future__ import annotations

import weakref

from .. import own
from ..facts.calls import Window
from ..guard import swallow
from ..nested import arrays_in, is_array, plain, tensors_in
from ..writer import fact
from . import own_updates, rollouts
from .brackets import bracket_code
from .loop import NEVER, loop

_compiles = False  # while Dynamo compiles what is called in a gap, a trace function of ours would be compiled too

TRACED_STEPS = (2, 3, 4, 19, 60)  # completed steps, after which the gap is traced
_GENERATOR = 0x20
MOSTLY = 0.6  # a generator that takes so much of the traced gaps is taken to fill all of it

_watch = None


def install(torch) -> None:
    """Plan the windows."""
    global _watch
    _watch = GapWatch()


def prefetched(returned: list) -> None:
    """Calls seen between a forward and its backward: what they returned may be the inputs of the next forward."""
    if _watch is not None:
        _watch.early = [call for call in returned if call.depth == 0 and _data_in(call.value)]


def give_up() -> None:
    """The program compiles: never trace."""
    global _compiles
    _compiles = True


class GapWatch:
    """Opens a window after an update, closes it at the next root forward. Listens to the loop only while one is open."""

    def __init__(self) -> None:
        self._window = None
        self._found: set = set()
        self._next = 0
        self._last_input = None
        self._running = None  # code of a generator that could not be bracketed
        self._watched = None
        self._leaves: list = []
        self._parts: list = []  # (its time, length) of the gaps that were traced
        self.early: list = []
        self._schedule()

    def _schedule(self) -> None:
        done = self._next >= len(TRACED_STEPS)
        loop.trace_gap_after(NEVER if done else TRACED_STEPS[self._next], self.completed)
        self._next += 1

    def completed(self) -> None:
        """An update has completed a step that is to be followed by a window."""
        self._schedule()
        if self._window is None and not _compiles:
            self._watched = self._parameters()
            window = Window("gap", keep=True, state=self._watched.state if self._watched is not None else None)
            if window.begin():
                self._window = loop.gap = window
                loop.on_forward.append(self.on_forward)
                loop.on_backward.append(self.on_backward)
                loop.on_exit.append(self.on_exit)

    def _parameters(self):
        """What an update of the owner's would change; None where torch's optimizers do that."""
        if not own_updates.nobody_else_updates():
            return None
        found = own_updates.parameters_of(loop.trained) or [leaf for leaf in (each() for each in self._leaves) if leaf is not None]
        return own_updates.Watched(found) if found else None

    def _find_update(self, window: Window, parameters) -> None:
        """A call that changed the parameters, or returned those that are used now."""
        watched, self._watched = self._watched, None
        if watched is None or not own_updates.nobody_else_updates():
            return
        call = own_updates.updating(window.returned)
        if call is None:
            used = {_memory_of(plain(each)) for each in parameters} - {0}
            made = [call for call in window.returned if any(_memory_of(tensor) in used for tensor in tensors_in(call.value))]
            call = min(made, key=lambda call: call.depth, default=None)
        if call is not None and call.code not in self._found:
            self._found.add(call.code)
            own_updates.bracket(call.code, call.namespace, watched.all)

    def _close(self):
        window, self._window, loop.gap = self._window, None, None
        window.end()
        loop.remove(self.on_forward, self.on_backward, self.on_exit)
        return window

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """The gap is over."""
        window = self._close()
        try:
            self._find_update(window, module.parameters())
            if not loop.rolling:
                self._match(window, args, kwargs)
                self._time_generator(window)
        finally:
            window.returned.clear()
            self.early = []

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """A loop without modules: the gap ends here at the latest."""
        window = self._close()
        try:
            leaves = own_updates.leaves_of(tensors)
            self._leaves = [weakref.ref(leaf) for leaf in leaves]
            self._find_update(window, leaves)
        finally:
            window.returned.clear()
            self.early = []

    def on_exit(self) -> None:
        """Do not trace the end of the program."""
        self._close()

    def _match(self, window: Window, args: tuple, kwargs: dict) -> None:
        inputs = [tensor for value in (*args, *kwargs.values()) for tensor in tensors_in(value)]
        if loop.fed_by_forward:
            self._compare_with_last(inputs)
        for same, calls in ((_same_memory, window.returned), (_same_memory, self.early), (_same_kind, window.returned)):
            matched = [
                call
                for call in calls
                if call.code not in self._found and any(same(made, given) for made in _data_in(call.value) for given in inputs)
            ]
            if matched:
                call = min(matched, key=lambda call: call.depth)
                self._bracket(call.code, call.namespace, getattr(window, "fetched", False))
                return

    def _time_generator(self, window: Window) -> None:
        """How long before the forward the running generator begins; each traced gap says it again."""
        if self._running is None:
            return
        self._parts.append((sum(call.ns for call in window.returned if call.code is self._running), window.ns))
        its, whole = sorted(self._parts)[len(self._parts) // 2]
        loop.position_ns = its if its < MOSTLY * whole else 0

    def _compare_with_last(self, inputs: list) -> None:
        if inputs and self._last_input is not None and self._last_input() is inputs[0]:
            rollouts.rule_out()  # the same tensor each time: nothing makes data between the steps
        self._last_input = weakref.ref(inputs[0]) if inputs else None

    def _bracket(self, code, namespace: dict, fetched: bool) -> None:
        self._found.add(code)
        if loop.fed_by_forward:
            rollouts.rule_out()
        try:
            bracket_code(code, namespace)
            if code.co_flags & _GENERATOR and not fetched:  # else a DataLoader is behind it, which says when it works
                loop.by_position = True
                loop.plain_until = 0
                self._running = code
            fact("data_function", at=[own.path_of(code), code.co_firstlineno, own.name_of(code)])
        except Exception as error:
            swallow("data function", error)


def _data_in(value: object) -> list:
    """Tensors and arrays; what part of the model made is no data."""
    return [tensor for tensor in tensors_in(value) if not tensor.requires_grad] + arrays_in(value)


def _same_memory(made, given) -> bool:
    """`torch.from_numpy` makes a tensor in the memory of its array."""
    if is_array(made):
        return given.device.type == "cpu" and made.__array_interface__["data"][0] == _memory_of(given) != 0
    return made is given or (made.device == given.device and _memory_of(made) == _memory_of(given) != 0)


def _memory_of(tensor) -> int:
    """Address of the values; 0 for a tensor that has none of its own."""
    try:
        return (tensor._values() if tensor.is_sparse else tensor).untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0  # another sparse layout, or a wrapper of torch.func


def _same_kind(made, given) -> bool:
    """A copy may have another type than the array that it was made of."""
    if is_array(made):
        return tuple(made.shape) == tuple(given.shape) and given.dim() > 1
    return made.shape == given.shape and made.dtype == given.dtype and made.dim() > 1
