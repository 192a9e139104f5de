"""Looks into some early steps for operators and frozen modules that do equal work again: masks, tables of positions, constant features.

From a step's begin to its backward the public functions of torch, the methods of tensors and the calls of modules are watched, for what
the owner's lines call without a gradient: digests of arguments and result, and the time; where equations are solved, of the matrix alone.
Passes over the data are looked at in the same places, because a frozen network sees equal batches again one pass later. Calls of one
module on the parts of a batch, one by one, are counted too. Never in a program that compiles.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from threading import get_ident

from ..guard import swallow
from ..nested import named_tensors, needs_grad, tensors_in
from ..objects import is_tensor
from ..parts import parameters_in
from ..phases import compiled, gaps
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from . import census, compiles
from .askers import asker, is_of_module
from .calls import function_number
from .digests import digest_of
from .entry_points import EntryPoints
from .watched import is_watched, watching

AT_STEPS = (11, 14, 16, 21)  # completed steps; other windows have 2 to 7, 9, 12, 19, 22, 24
MOST_WINDOWS = 10  # with those at the same places of later passes over the data
UNTIL = 4096  # completed steps; a pass that is longer shows nothing in a diagnosis
LEAST_NS = 2_000  # a faster call is not worth a row
MAX_ROWS = 2_000  # in one window
MAX_OVERHEAD_NS = 300_000_000  # our own work in one window
ALIKE = 0.8  # of those calls have inputs of one shape: what differs could not be one batch
NEAR = 64  # operators between a call's result and what the next one is given of it
PARTS = 4  # calls of one module in one step, from which on they may be parts of one batch

_OPERATIONS = """
add radd sub rsub mul rmul truediv rtruediv pow rpow matmul rmatmul floordiv mod neg invert and or xor lt le gt ge getitem
"""
_ARITHMETIC = tuple(f"__{name}__" for name in _OPERATIONS.split())
_NO_WORK = """
backward item tolist numpy cpu cuda detach data_ptr size dim ndimension numel nelement element_size stride type requires_grad_
register_hook register_post_accumulate_grad_hook retain_grad compile save load manual_seed seed initial_seed typename result_type
promote_types can_cast vmap cond while_loop handle_torch_function has_torch_function has_torch_function_unary has_torch_function_variadic
boolean_dispatch assert_int_or_pair untyped_storage storage storage_offset storage_type share_memory_ module_load resize refine_names
reinforce_type unify_type_list import_ir_module parse_ir parse_schema fork wait
"""
_LEFT_ALONE = frozenset(_NO_WORK.split())
_SOLVE = "linalg_solve"
_NOT_WORK = ("_", "is_", "get_", "set_", "use_", "empty", "new_empty", "as_", "sym_", "quantize", "cudnn_", "mkldnn_", "miopen_")

_clock = time.perf_counter_ns


class PureWork(Observer):
    """Plans the windows, opens one at a boundary, closes it at the step's first backward."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._points = EntryPoints(torch)
        self._work: list = []  # functions and methods of torch that compute
        self._plan = list(AT_STEPS)
        self._passes, self._pass_began, self._windows = -1, 0, 0  # passes before the one that runs
        self._positions: set = set()  # steps of a pass that were looked at
        self._rows: list = []
        self._parts: dict = {}  # (place, id of the module) -> shapes of its first input
        self._sizes: set = set()  # leading dimensions of the batch, and of what the roots are given
        self._open = self._inside = False
        self._call = None
        os.register_at_fork(after_in_child=self.on_exit)
        compiled.on_call.append(self.on_exit)
        self._began = self._overhead = 0

    # --- when

    def on_pass(self) -> None:
        """A pass over the data has begun in this step."""
        self._passes, self._pass_began = self._passes + 1, loop.steps + 1
        self.plan_next()

    def plan_next(self) -> None:
        """Say when a window may have to be opened or closed next; listen no more when all is seen."""
        step, wanted = loop.steps, [self._plan[0]] if self._plan else []
        if self._passes > 0:
            wanted += [self._pass_began + position for position in self._positions if self._pass_began + position > step]
        if self._open:
            wanted = [step + 1]
        elif self._windows >= MOST_WINDOWS or step > UNTIL:
            loop.remove(self.on_pass, self.on_exit)
            return
        if wanted:
            loop.call_at(max(min(wanted), step + 1), self._at_boundary)

    def _at_boundary(self) -> None:
        """Close a window without a backward; open a planned one."""
        step = loop.steps
        self._close(write=False)
        planned = bool(self._plan) and step >= self._plan[0]
        again = self._passes > 0 and step - self._pass_began in self._positions
        if (planned or again) and self._may_look():
            if planned:
                self._plan.pop(0)
                self._positions.add(step - self._pass_began)
            self._windows += 1
            self._begin(step)
        self.plan_next()

    def on_exit(self) -> None:
        """Put everything back."""
        self._close(write=False)

    def _may_look(self) -> bool:
        compiling = gaps._compiles or compiles.source.used
        counted = census.running is not None or census.showing or any(at <= loop.steps <= at + census.TRIES for at in census.AT_STEPS)
        quiet = sys.gettrace() is None and loop.gap is None and not compiling and not counted and loop.tid == get_ident()
        return quiet and not is_watched(self._torch)

    def _batch_came(self, loader_id: int, batch: object, role: str) -> None:
        self._sizes.update(int(tensor.shape[0]) for _, tensor in named_tensors(batch) if tensor.dim())

    def _backward_begins(self, tensors: tuple, grad_tensors: object) -> None:
        self._close(write=not loop.evaluating)

    # --- wrapping

    def _begin(self, step: int) -> None:
        self._work = self._work or list(self._of_torch())
        self._open, self._inside = True, False
        self._rows, self._parts, self._sizes, self._overhead = [], {}, set(), 0
        self._points.watch_all(self._work, self._timed)
        module = self._torch.nn.Module
        self._call = module.__call__, self._module(module.__call__)
        module.__call__ = self._call[1]
        loop.on_batch.append(self._batch_came)
        loop.on_backward.append(self._backward_begins)
        fact("slowed", step=step)
        self._began = _clock()

    def _close(self, write: bool) -> None:
        if not self._open:
            return
        self._open = False
        ns = max(0, _clock() - self._began - self._overhead)
        self._points.restore()
        module = self._torch.nn.Module
        if module.__call__ is self._call[1]:
            module.__call__ = self._call[0]
        loop.on_batch = [method for method in loop.on_batch if method != self._batch_came]
        loop.on_backward = [method for method in loop.on_backward if method != self._backward_begins]
        if write:
            fact("calls", where="operators", window_ns=ns, rows=self._rows)
            self._write_parts()

    def _of_torch(self):
        torch = self._torch
        for owner in (torch, torch.nn.functional, torch.linalg, torch.fft, torch.special, torch.Tensor):
            for name in dir(owner) if owner is torch.Tensor else vars(owner):
                if self._is_work(name, function := getattr(owner, name)) or (owner is torch.Tensor and name in _ARITHMETIC):
                    yield function

    @staticmethod
    def _is_work(name: str, function: object) -> bool:
        if name in _LEFT_ALONE or name.startswith(_NOT_WORK) or name.endswith("_") or not callable(function) or isinstance(function, type):
            return False
        return type(function).__name__ in ("function", "builtin_function_or_method", "method_descriptor", "wrapper_descriptor")

    def _timed(self, original, args: tuple, kwargs: dict, caller) -> object:
        updating = loop.in_opt and not loop.in_fwd  # a closure runs the network inside an update
        if self._inside or loop.in_data or loop.in_bwd or updating or "out" in kwargs:
            return original(*args, **kwargs)
        began = _clock()
        result = original(*args, **kwargs)
        ns = _clock() - began
        if ns >= LEAST_NS and self._open:
            self._note(original.__name__, caller, args, kwargs, result, ns)
        return result

    def _module(self, original):
        is_grad_enabled = self._torch.is_grad_enabled

        @functools.wraps(original)
        def __call__(module, *args, **kwargs):
            if self._inside or not self._open or loop.tid != get_ident() or loop.in_data or loop.in_bwd or loop.evaluating:
                return original(module, *args, **kwargs)
            part = self._count_parts(module, sys._getframe(1), args, kwargs)
            if is_grad_enabled() and (needs_grad((*args, *kwargs.values())) or _is_trained(module)):
                result = original(module, *args, **kwargs)  # what it calls is looked at by itself
                if part is not None:
                    part.made = result
                return result
            self._inside = True
            try:
                began = _clock()
                result = original(module, *args, **kwargs)
                ns = _clock() - began
            finally:
                self._inside = False
            self._note("call", sys._getframe(1), (module, *args), kwargs, result, ns)
            return result

        return watching(__call__)

    # --- what was seen

    def _note(self, name: str, frame, args: tuple, kwargs: dict, result: object, ns: int) -> None:
        began = _clock()
        if self._overhead > MAX_OVERHEAD_NS or len(self._rows) >= MAX_ROWS:
            return
        try:
            if name == _SOLVE and len(args) == 2 and not needs_grad(args[0]):
                args, result = args[:1], None  # that the matrix is factorised is the work, whatever it is solved for
            if not needs_grad(result) and not needs_grad(args) and not is_of_module(frame):
                place = asker(frame)
                given = digest_of((name, args, kwargs), by_identity=True) if place is not None else None
                made = digest_of(result, by_identity=False) if given is not None else None
                if made is not None:
                    self._rows.append([function_number(place, name), given, made, ns, -1, "operators", False, False, 0])
        except Exception as error:
            swallow("pure work", error)
        self._overhead += _clock() - began

    def _count_parts(self, module, frame, args: tuple, kwargs: dict) -> _Part | None:
        began, part = _clock(), None
        try:
            tensors = [value for value in (*args, *kwargs.values()) if is_tensor(value)]
            if tensors:
                if not loop.in_fwd and tensors[0].dim():
                    self._sizes.add(int(tensors[0].shape[0]))
                place = asker(frame)
                if place is not None:
                    part = _Part(tensors)
                    before = self._parts.setdefault((tuple(place), id(module)), [])
                    if before:
                        part.follows = before[-1].follows or _comes_of((args, kwargs), before[-1].made)
                        before[-1].made = None
                    before.append(part)
        except Exception as error:
            swallow("parts", error)
        self._overhead += _clock() - began
        return part

    def _write_parts(self) -> None:
        """The call that takes a batch in parts, of a root if there is one: their rows add up to a batch, or they are pieces of one tensor.

        Calls of which one is made of another's result are steps of a recurrence: those could not be one. A window may begin inside the
        first call of a root, so that a part of it was called once more.
        """
        found = []
        for (place, _), parts in self._parts.items():
            shapes = [part.shape for part in parts]
            usual = max(set(shapes), key=shapes.count)
            rows = usual[0] if len(usual) > 1 else 1
            size = sum(shape[0] if len(shape) > 1 else 1 for shape in shapes)
            if len(parts) < PARTS or shapes.count(usual) < ALIKE * len(parts) or size <= rows or parts[-1].follows:
                continue
            if size in self._sizes or (len({part.storage for part in parts}) == 1 and len({part.begin for part in parts}) == len(parts)):
                found.append((not parts[0].inside, list(place), rows, len(parts)))
        first = max(found, key=lambda each: each[0], default=None)
        fact("parts", part=None if first is None else [first[1], max(each[3] for each in found), first[2]])


class _Part:
    """The input of one call: its shape, and which piece of which memory it is. With a second tensor, a state say, it is no piece alone."""

    __slots__ = ("begin", "follows", "inside", "made", "shape", "storage")

    def __init__(self, tensors: list) -> None:
        first = tensors[0]
        self.made, self.follows = None, False  # the call's result until the next one, and whether that or one before was made of it
        self.shape, self.inside = tuple(first.shape), loop.in_fwd
        self.begin = self.storage = id(self)
        if len(tensors) == 1 and first.is_contiguous() and not first.requires_grad:
            with contextlib.suppress(RuntimeError, NotImplementedError):  # a wrapper of torch.func, or a tensor without memory
                self.begin, self.storage = first.data_ptr(), first.untyped_storage().data_ptr()


def _comes_of(given: tuple, made: object) -> bool:
    """Whether what a call is given holds a tensor of `made`, or one that was computed of it a few operators ago."""
    results = tensors_in(made)
    origins = [tensor.grad_fn for tensor in results if tensor.grad_fn is not None]  # kept: a node's object is its own while it lives
    found = [tensor for value in (*given[0], *given[1].values()) for tensor in tensors_in(value)]
    if any(tensor is result for tensor in found for result in results):
        return True
    todo = [tensor.grad_fn for tensor in found if tensor.grad_fn is not None] if origins else []
    for _ in range(NEAR):
        if not todo:
            break
        node = todo.pop(0)
        if any(node is origin for origin in origins):
            return True
        todo += [below for below, _ in node.next_functions if below is not None]
    return False


def _is_trained(module) -> bool:
    return next((True for each in parameters_in(module) if each.requires_grad), False)


def install(torch) -> None:
    """Plan the windows."""
    watch = PureWork(torch)
    loop.add(watch)
    watch.plan_next()
