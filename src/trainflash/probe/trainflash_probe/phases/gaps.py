"""Finds the function that makes batches where no DataLoader does.

In a few early steps the time from the update to the next forward is traced. A function of the owner whose returned tensors, arrays or
lists are inputs of the model, or are made into them, is the data function: its calls are phase Data from then on. So is one that writes
into the memory of an input, and one that is called between forward and backward and returns the inputs of the next step. All forwards up
to the backward are asked: the first one may be another network's. A generator that runs already cannot be bracketed; there the end of the
time before the forward counts as Data, as much of it as the generator took in the traced steps, and samples of lines say what else was its
work.
"""

from __future__ import annotations

import weakref

from .. import own
from ..facts.calls import Window
from ..guard import swallow
from ..nested import plain, tensors_in
from ..parts import parameters_in
from ..writer import fact
from . import feeding, handed, own_updates, rhythm, rollouts
from .brackets import bracket_code, outermost
from .loop import NEVER, loop
from .matching import as_many, data_in, given_as_they_are, holds, is_batch, memory_of, same_kind, same_memory

_collects = False  # a function is known that collects rollouts
_compiles = False  # while Dynamo compiles what is called in a gap, a trace function of ours would be compiled too

TRACED_STEPS = (2, 3, 4, 19, 60)  # completed steps, after which the gap is traced
_GENERATOR = 0x20
MOSTLY = 0.6  # a generator that takes so much of the traced gaps is taken to fill all of it

_watch = None


def install(torch) -> None:
    """Plan the windows."""
    global _watch
    _watch = GapWatch()
    rhythm.Rhythm(_watch.expect_update)
    handed.install()


def prefetched(returned: list) -> None:
    """Calls seen between a forward and its backward: what they returned may be the inputs of the next forward."""
    if _watch is not None and loop.trace_gap_at <= loop.steps + 1:
        _watch.early = [call for call in returned if call.depth == 0 and data_in(call.value)]


def traced_forward(window: Window) -> None:
    """A window is open up to the backward: what is called in it may make an input of a later forward of this step."""
    if _watch is not None:
        _watch.later = window


def give_up() -> None:
    """The program compiles: never trace."""
    global _compiles
    _compiles = True


def collects() -> None:
    """A function is known that collects rollouts: what an evaluation behind an update acts on makes no training data."""
    global _collects
    _collects = True


def compiles() -> bool:
    """Whether the program compiles."""
    return _compiles


class GapWatch:
    """Opens a window after an update, closes it at the next root forward; listens to the loop from there to the backward."""

    def __init__(self) -> None:
        self._window = None
        self._closed = None  # the window, until the backward has come
        self._found: set = set()
        self._alike: dict = {}  # code -> step, of calls that gave as many numbers as an input has
        self._next = 0
        self._last_inputs: list = []
        self._running = None  # code of a generator that could not be bracketed
        self._watched = None
        self._buffers = None  # the inputs of the forward that was looked at last
        self._leaves: list = []
        self._parts: list = []  # (its time, length) of the gaps that were traced
        self.early: list = []
        self.later = None
        self._schedule()

    def _schedule(self) -> None:
        done = self._next >= len(TRACED_STEPS)
        loop.trace_gap_after(NEVER if done else TRACED_STEPS[self._next], self.completed)
        self._next += 1

    def expect_update(self, backwards: int, leaves: list) -> bool:
        """The parameters will change behind the backward that completes so many from the one that begins now. False: not a good time."""
        if loop.trace_gap != self.completed or self._window is not None:
            return False
        self._leaves = [weakref.ref(leaf) for leaf in leaves]
        self._next = min(self._next, len(TRACED_STEPS) - 1)
        loop.trace_gap_after(loop.steps + backwards, self.completed)
        return True

    def completed(self) -> None:
        """An update has completed a step that is to be followed by a window."""
        self._schedule()
        self._finish()
        if not _compiles:
            self._watched = self._parameters()
            self._buffers = _watchable([each() for each in self._last_inputs])
            window = Window("gap", keep=True, state=self._state)
            if window.begin():
                self._window = loop.gap = window
                handed.listen()
                loop.on_forward.append(self.on_forward)
                loop.on_backward.append(self.on_backward)
                loop.on_exit.append(self.on_exit)

    def _state(self) -> tuple:
        """Of the parameters, where the owner may update them, and of the last inputs."""
        return tuple([watched.state() if watched is not None else None for watched in (self._watched, self._buffers)])

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
        call = own_updates.changing(window.returned, 0)
        if call is None:
            used = {memory_of(plain(each)) for each in parameters} - {0}
            made = [call for call in window.returned if any(memory_of(tensor) in used for tensor in tensors_in(call.value))]
            call = outermost(made)
        if call is not None and call.code not in self._found:
            self._found.add(call.code)
            own_updates.bracket(call.code, call.namespace, watched.all)

    def _close(self) -> None:
        """The gap is over; what was called in it is kept up to the backward."""
        self._closed, self._window, loop.gap = self._window, None, None
        self._closed.end()
        handed.stop()

    def _finish(self) -> None:
        """Stop to listen, and let go of all that was seen."""
        if self._window is not None:
            self._close()
        if self._closed is not None:
            loop.remove(self.on_forward, self.on_backward, self.on_exit)
            self._time_generator(self._closed)
            self._closed.returned.clear()
            handed.seen.clear()
        self._closed = self._watched = self._buffers = self.later = None

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """The gap is over, or another network of the same step is about to run."""
        first = self._window is not None
        inputs = [tensor for value in (*args, *kwargs.values()) for tensor in tensors_in(value)]
        if first:
            self._close()
            self._find_update(self._closed, parameters_in(module))
            if loop.rolling or (loop.evaluating and _collects):
                self._finish()
                return
            self._note_inputs(inputs)
        self._match(self._closed, inputs, given_as_they_are((*args, *kwargs.values())))

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """All forwards of the step have been seen; in a loop without modules the gap ends here at the latest."""
        if self._window is not None:
            self._close()
            leaves = own_updates.leaves_of(tensors)
            self._leaves = [weakref.ref(leaf) for leaf in leaves]
            self._find_update(self._closed, leaves)
        self._finish()
        self.early = []

    def on_exit(self) -> None:
        """Do not trace the end of the program."""
        self._finish()

    def _note_inputs(self, inputs: list) -> None:
        if loop.fed_by_forward and inputs:
            rollouts.same_input(bool(self._last_inputs) and self._last_inputs[0]() is inputs[0])
            self._last_inputs = [weakref.ref(tensor) for tensor in inputs]
        elif loop.fed_by_forward:
            self._last_inputs = []

    def _match(self, window: Window, inputs: list, objects: list) -> None:
        """Bracket the outermost call that gave one of the inputs, by the surest way to tell that finds one.

        What was handed over by others is bracketed rather than a running generator around it, and beside a function around it.
        """
        for matched, given_over in self._ways(window, inputs, objects):
            for each in given_over:
                handed.learn(each)
            if self._running is not None and handed.waits_in(self._running):
                self._running, loop.by_position = None, False
            call = outermost(matched)
            self._found |= {each.code for each in matched if call is not None and each.depth < call.depth}  # stand around others, too
            if call is not None and not (given_over and call.code.co_flags & _GENERATOR):
                self._bracket(call.code, call.namespace, getattr(window, "fetched", False))
            if call is not None or given_over:
                return

    def _ways(self, window: Window, inputs: list, objects: list):
        """Calls that gave an input, and what others handed over that is one, by each way to tell; from the sure ones to the unsure."""
        during = [call for call in self.later.returned if not call.before] if self.later is not None else []  # outside of networks
        calls = [call for call in window.returned + during if call.code not in self._found]

        def giving(same, among: list, wanted: list = inputs) -> list:
            return [call for call in among if any(same(call.value, given) for given in wanted)]

        yield giving(holds, calls, objects), giving(holds, handed.seen, objects)
        yield giving(same_memory, calls), giving(same_memory, handed.seen)
        yield giving(same_memory, self.early), []
        yield self._written(inputs), []
        yield giving(same_kind, calls), giving(same_kind, handed.seen)
        yield self._twice(giving(as_many, calls)), self._twice(giving(as_many, handed.seen))
        yield self._twice([call for call in _advanced(window.returned) if call.code not in self._found]), []

    def _written(self, inputs: list) -> list:
        """The call that wrote into the memory of an input, where that is the one of the forward before."""
        before = self._buffers.all if self._buffers is not None else []
        if not {memory_of(plain(each)) for each in inputs} & {memory_of(plain(each)) for each in before} - {0}:
            return []
        call = own_updates.changing(self._closed.returned, 1)
        return [call] if call is not None and call.code not in self._found else []

    def _twice(self, calls: list) -> list:
        """Those of whose code calls matched in another step too; none where what runs is not trained."""
        return [call for call in calls if self._alike.setdefault(call.code, loop.steps) != loop.steps] if loop.fed_by_forward else []

    def _time_generator(self, window: Window) -> None:
        """How long before the forward the running generator begins; each traced gap says it again."""
        if self._running is None:
            return
        self._parts.append((sum(call.ns for call in window.returned if call.code is self._running), window.ns))
        its, whole = sorted(self._parts)[len(self._parts) // 2]
        loop.position_ns = its if its < MOSTLY * whole else 0

    def _bracket(self, code, namespace: dict, fetched: bool) -> None:
        self._found.add(code)
        if loop.fed_by_forward:
            rollouts.rule_out()
        try:
            bracket_code(code, namespace)
            if code.co_flags & _GENERATOR:
                feeding.running.add(code)
            # With a DataLoader or others who hand batches over behind it, its own time is known by samples only.
            if code.co_flags & _GENERATOR and not fetched and not handed.waits_in(code):
                loop.by_position = True
                loop.plain_until = 0
                self._running = code
            fact("data_function", at=own.place_of_code(code))
        except Exception as error:
            swallow("data function", error)


def _advanced(returned: list) -> list:
    """A generator that the training loop took one batch from, whatever was made of it since."""
    outer = [call.code for call in returned if call.depth == 0]
    return [
        call
        for call in returned
        if call.depth == 0 and call.code.co_flags & _GENERATOR and outer.count(call.code) == 1 and is_batch(call.value)
    ]


def _watchable(inputs: list):
    """What can be seen of writing into these tensors; None where none of them is left, or one that tells nothing of itself."""
    left = [tensor for tensor in inputs if tensor is not None]
    if not left or len(left) < len(inputs):
        return None
    try:
        watched = own_updates.Watched(left)
        watched.state()
        return watched
    except (RuntimeError, NotImplementedError):
        return None  # a sparse layout, or made in inference mode
