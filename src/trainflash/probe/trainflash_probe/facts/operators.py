"""Reads what torch's recorder noted in one step: counts and times of operators."""

from __future__ import annotations

from ..guard import swallow
from .regions import PRODUCTS_OF_TWO, Regions

MAX_RECORDS = 400_000  # begin and end marks; more are not read
SMALL_NS = 20_000  # an operator below that is mostly the cost of calling it
RECORDED_NS = 1_700  # what recording one operator inside it adds to an operator's time: measured 1.7 to 2.3 µs
OF_ROWS = ("aten::select_backward", "aten::slice_backward")  # fill a whole tensor for the gradient of one row that a loop took
FIRST = 50  # marks in front of the clock's

MATMULS = frozenset(
    f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "mkldnn_linear", "_scaled_mm", "_addmm_activation")
)
CONVOLUTIONS = frozenset(f"aten::{name}" for name in ("convolution", "_convolution", "convolution_backward", "conv2d", "conv3d"))
COPIES = frozenset(f"aten::{name}" for name in ("copy_", "_foreach_copy_"))
WHOLE_TABLES = frozenset({"aten::embedding_dense_backward"})  # gradients of a few rows as large as all of them
CLASSES = (("matmul", MATMULS), ("conv", CONVOLUTIONS), ("copy", COPIES), ("table", WHOLE_TABLES))
THIN = 16  # rows, up to which a product with a matrix takes its time for the matrix rather than for the rows
ACCUMULATES = "torch::autograd::AccumulateGrad"
FIGURES = (
    "ops",
    "op_ns",
    "small_ns",
    "optimizer_ops",
    "matmul_ns",
    "conv_ns",
    "copy_ns",
    "mode_ns",
    "data_ns",
    "convs",
    "accumulated_ns",
    "double_ns",
    "table_ns",
)
BACKWARD = "autograd::engine::evaluate_function"
CLOCK = "trainflash_probe#clock"  # recorded when the spans' clock began
FETCH = "enumerate(DataLoader)"  # what torch names a fetch
MODE = "PythonDispatchMode"  # what torch names a mode's look at one operator
_NOT_OPERATORS = ("autograd::", "torch::autograd::")


class _Call:
    __slots__ = (
        "accumulates",
        "around",
        "backward",
        "began",
        "between",
        "data",
        "event",
        "fetched",
        "index",
        "inner",
        "inside_ns",
        "name",
        "ns",
        "operator",
        "outer",
        "sequence",
        "update",
    )

    def __init__(self, event, name: str, began: float, parent) -> None:
        self.event, self.name, self.began, self.ns = event, name, began, 0
        self.operator = "::" in name and not name.startswith(_NOT_OPERATORS)
        self.outer = None  # the outermost operator around it, itself included
        self.backward = name.startswith(BACKWARD)
        self.update = began if name.startswith("Optimizer.step#") else -1.0  # when the update around it began; negative: there is none
        self.fetched = name.startswith(FETCH) or (parent is not None and parent.fetched)
        self.data = self.fetched or (parent is not None and parent.data and parent.operator)  # other spans may begin there and go on
        self.between = False  # neither of the last backward nor of an update behind it: what the program does with gradients
        self.around: tuple = ()  # classes of operators around it
        self.accumulates = name.endswith(ACCUMULATES) or (parent is not None and parent.accumulates)
        self.sequence = -1
        self.index = -1
        self.inner = 0  # operators and other spans inside
        self.inside_ns = 0  # of what a mode calls, where it is one
        if parent is not None:
            self.outer = parent.outer
            self.backward |= parent.backward
            if self.update < 0 and not name.startswith(BACKWARD):  # one that a closure runs is no update
                self.update = parent.update
            self.around = parent.around
            for name, members in CLASSES:
                if parent.name in members:
                    self.around = (*self.around, name)
        if self.outer is None and self.operator:
            self.outer = self

    def shapes(self) -> list:
        return self.event.shapes()


def read(records: list, outside: list, since: float, double: "set | frozenset" = frozenset()):
    """Figures of one step, nanoseconds; None where there is too much to read. `double`: sequence numbers of what is computed in float64.

    `outside` are spans in µs from its begin in which only backward and update count: its batches are made there. Forward work is done
    between them, and behind the last one until `since` (negative: to the end), by a closure even inside an update. Behind `since`, the
    last backward's begin, it is no work of the network.
    """
    if sum(len(events) for events in records) > MAX_RECORDS:
        return None
    counted = _Counted(outside, since)
    clock = next((event for events in records for event in events[:FIRST] if event.kind() == "push" and event.name() == CLOCK), None)
    for events in records:
        counted.walk(events, clock)
    regions = Regions(counted.forward, counted.outers, counted.backward)
    found: dict = {"attention": [], "targets": []}
    for name, rows in (("attention", regions.attention), ("targets", regions.targets)):
        try:
            found[name] = rows()
        except Exception as error:
            swallow(name, error)
    counted.figures["double_ns"] = counted.in_double(double)
    return {**counted.figures, **found, "thin": sorted(counted.thin.items())}


def backwards(records: list):
    """(ns of each node of the graph that the engine came to, by its sequence number; how many; ns beside them, as in hooks).

    Adding up a parameter's gradient, which has no number, counts for the node in front of it. None where there is too much to read.
    """
    if sum(len(events) for events in records) > MAX_RECORDS:
        return None
    spent: dict = {}
    beside = nodes = 0
    for events in records:
        stack: list = []  # [handle, mark, sequence number, ns of the node itself] of what the engine is at, and of nodes
        newest = -1
        for event in events:
            if event.kind() == "push":
                name = event.name()
                if name.startswith(BACKWARD):
                    stack.append([event.handle(), event, None, 0])
                elif stack and event.scope() == 1:
                    stack.append([event.handle(), event, event.sequence_nr(), 0])
            elif event.kind() == "pop" and stack and event.handle() == stack[-1][0]:
                _, began, number, inside = stack.pop()
                ns = int(1000 * began.cpu_elapsed_us(event))
                if number is None:
                    nodes += 1
                    beside += max(0, ns - inside)
                else:
                    newest = number if number >= 0 else newest
                    spent[newest] = spent.get(newest, 0) + ns - inside
                if stack:
                    stack[-1][3] += ns
    spent.pop(-1, None)
    return spent, nodes, beside


class _Counted:
    def __init__(self, outside: list, since: float) -> None:
        self._outside, self._since = outside, since
        ends = [begin for begin, _ in outside[1:]] + [since if since >= 0 else float("inf")]
        self._forwards = [(begin, ends[number]) for number, (_, begin) in enumerate(outside)]
        self.figures = dict.fromkeys(FIGURES, 0)
        self.thin: dict = {}  # smallest side of products of matrices -> ns
        self.outers: list = []  # outermost operators of the forward pass, in order
        self.forward: list = []  # all operators of the forward pass
        self.backward: dict = {}  # sequence number -> ns of that function of the graph

    def walk(self, events: list, clock) -> None:
        """One thread's begin and end marks."""
        stack: list = []
        base = clock or (events[0] if events else None)
        for event in events:
            kind = event.kind()
            if kind == "push":
                call = _Call(event, event.name(), base.cpu_elapsed_us(event), stack[-1] if stack else None)
                if call.update >= 0 and any(call.update <= a <= call.began < b for a, b in self._forwards):
                    call.update = -1.0
                plain = not call.backward and call.update < 0
                call.data |= plain and any(a <= call.began < b for a, b in self._outside)
                call.between = plain and 0 <= self._since <= call.began
                self._began(call, event)
                stack.append(call)
            elif kind == "pop":
                handle = event.handle()
                ended = next((place for place in reversed(range(len(stack))) if stack[place].event.handle() == handle), None)
                if ended is None:
                    continue
                call = stack.pop(ended)  # seldom another one than the innermost: a dispatch mode's span ends when the mode is left
                if call.name.startswith(FETCH):  # a span that goes on is inside of it no more
                    for inner in stack[ended:]:
                        inner.fetched = inner.data = False
                call.ns = int(1000 * (base.cpu_elapsed_us(event) - call.began))
                if ended:
                    stack[ended - 1].inner += call.inner + 1
                if ended and stack[ended - 1].name == MODE:
                    stack[ended - 1].inside_ns += call.ns
                self._ended(call)

    def _began(self, call: _Call, event) -> None:
        if call.data or call.between or call.update >= 0:
            return
        if call.backward:
            if not call.operator and event.scope() == 1:
                call.sequence = event.sequence_nr()
        elif call.operator:
            call.sequence = event.sequence_nr()
            if call.outer is call:
                call.index = len(self.outers)
                self.outers.append(call)
            self.forward.append(call)

    def _ended(self, call: _Call) -> None:
        figures = self.figures
        if call.data:
            if call.outer is call:
                figures["data_ns"] += call.ns
            return
        if call.between:
            return
        if call.sequence >= 0 and call.backward:
            self.backward[call.sequence] = self.backward.get(call.sequence, 0) + call.ns
        if call.outer is call:
            figures["ops"] += 1
            figures["op_ns"] += call.ns
            work_ns = call.ns - RECORDED_NS * call.inner
            figures["small_ns"] += call.ns if work_ns < SMALL_NS or call.name in OF_ROWS else call.ns - work_ns
            if call.update >= 0:
                figures["optimizer_ops"] += 1
        if call.name == MODE:
            figures["mode_ns"] += call.ns - call.inside_ns
        if call.operator:
            if call.ns >= SMALL_NS and call.accumulates and call.outer is call:
                figures["accumulated_ns"] += call.ns
            if call.ns >= SMALL_NS and (rows := _rows(call)) is not None:
                self.thin[rows] = self.thin.get(rows, 0) + call.ns
            for name, members in CLASSES:
                if call.name in members and name not in call.around:
                    figures[f"{name}_ns"] += call.ns
                    figures["convs"] += name == "conv"

    def in_double(self, double) -> int:
        """Time of operators whose results are float64, and of their backward."""
        outers = {id(call.outer): call.outer.ns for call in self.forward if call.sequence in double}
        return sum(outers.values()) + sum(ns for number, ns in self.backward.items() if number in double)


def _rows(call: _Call):
    """The smallest side of a product of two matrices, where it is so small that a matrix takes the time, not its rows."""
    if call.name not in PRODUCTS_OF_TWO:
        return None
    sides = [shape for shape in call.shapes() if len(shape) == 2][-2:]
    least = min(*sides[0], sides[1][1]) if len(sides) == 2 else THIN + 1
    return least if least <= THIN else None
