"""Which modules are roots, and their forward. The cost does not grow with the number of submodules.

`Module.__call__` is wrapped only while roots are learned: the first steps, one step in 512, an evaluation, and a step whose backward came
without a forward (in runs that record the training: always). From then on only the roots' own `_compiled_call_impl` slot is ours.
A program that puts its own function in place of `Module.__call__` keeps it; ours, which it may call, then does nothing.
"""

from __future__ import annotations

import functools
import sys
import weakref
from threading import get_ident

from .. import codes, own
from ..environment import capture, diagnose
from ..guard import swallow
from ..parts import modules_in, owns_parameters
from ..patches import Patch
from ..writer import emit, fact, since_base
from . import rollouts, stack
from .loop import EVERY_BOUNDARY_UNTIL, RELEARN_EVERY, loop
from .unseen import traced_by_fx

MAX_ROOTS = 64
MANY_GONE = 3  # trained roots: a program that makes its networks anew, as for each task or fold, goes on to do so
METRICS = "torchmetrics."  # of other libraries no metric is a module
fidelity = capture == "fidelity"

_torch = None
_call = None  # the patch of Module.__call__
_learning = False
_roots: dict = {}  # id -> (weak reference, has parameters)
_forwards: dict = {}  # code of a root's forward -> whether such a root has parameters
_told: list = []  # codes of forwards of roots without parameters, as they were written last
_slots: dict = {}  # id -> (our function in the slot, what was there before)
_trained = loop.trained
_next_relearn = 0
_backoff = 1
_found = False  # since it was last begun to learn: another root that is trained
_evaluations = 0
_switching = False  # a module is being put into another mode, with its parts
_evaluates = None  # code of the owner's that put the model into evaluation mode
_short_lived = 0  # roots that were trained and are gone


def install(torch) -> None:
    """Begin to learn; wrap `Module.train` and what makes script modules."""
    global _torch, _call
    _torch = torch
    module_class = torch.nn.Module
    _call = Patch(module_class, "__call__", _learning_call(module_class.__call__))
    module_class.train = _train(module_class.train, torch.compiler.is_compiling)
    scripting = sys.modules.get("torch.jit._recursive")
    if hasattr(scripting, "create_script_module"):
        scripting.create_script_module = _without_slots(scripting.create_script_module)
    loop.on_eval.append(_at_evaluation)
    loop.on_found.append(_look_anew)
    _learn()


def _at_boundary() -> None:
    """Place the slots after the first steps; look again now and then."""
    if not _learning:
        _learn()
    elif fidelity:
        pass  # a root that is called once in a while, such as an average that is evaluated, must not be missed
    elif loop.steps < EVERY_BOUNDARY_UNTIL:  # a forked child counts its steps anew
        loop.call_at(EVERY_BOUNDARY_UNTIL, _at_boundary)
    else:
        _stop_learning()
        loop.call_at((loop.steps // RELEARN_EVERY + 1) * RELEARN_EVERY, _at_boundary)


def _at_evaluation(begin: bool) -> None:
    """Evaluations may call other roots: look during the first ones and now and then."""
    global _evaluations
    if begin and loop.steps >= EVERY_BOUNDARY_UNTIL:
        _evaluations += 1
        if _evaluations <= 2 or _evaluations % 16 == 0:
            _learn()


def backward_without_forward() -> None:
    """The roots of this step are unknown (or there are none): look again, ever more rarely where that finds none."""
    global _next_relearn, _backoff
    if not _learning and loop.steps >= _next_relearn:
        _backoff = 1 if _found else min(2 * _backoff, 1024)
        _learn()
        _next_relearn = loop.steps + _backoff


def _look_anew() -> None:
    """What was taken for steps was none: that no forward was found there says nothing."""
    global _next_relearn, _backoff
    _next_relearn, _backoff = 0, 1


def _learn() -> None:
    """For one whole step at least: the one that runs now may have its forward behind it."""
    global _learning, _found
    if _learning:
        return
    _learning, _found = True, False
    loop.call_at(max(loop.steps + 2, EVERY_BOUNDARY_UNTIL), _at_boundary)
    _call.on()


def _learning_call(original):
    is_compiling, is_grad_enabled = _torch.compiler.is_compiling, _torch.is_grad_enabled
    tracing = _torch._C._get_tracing_state  # torch.jit.trace writes down what is done with tensors, and names them by our variables

    @functools.wraps(original)
    def __call__(self, *args, **kwargs):
        if is_compiling() or not _learning or loop.in_fwd or loop.tid != get_ident() or tracing() is not None:
            return original(self, *args, **kwargs)
        if traced_by_fx() or _is_metric(type(self)):
            return original(self, *args, **kwargs)
        grad, owner = is_grad_enabled(), False
        try:
            owner = _remember(self)
            loop.forward_begins(self, owner, grad, args, kwargs)
        except Exception as error:
            swallow("forward", error)
        if loop.rolling or not loop.started:
            result = _without_parts(original, self, *args, **kwargs)
            if rollouts.asked == id(self):
                _give(self, result)
            if loop.on_forward_end and not loop.rolling:
                loop.tell(loop.on_forward_end, self, result)
            return result
        if grad and owner:
            _note_trained(self)
        loop.in_fwd = True
        loop.begin(codes.FWD)
        try:
            result = original(self, *args, **kwargs)
            if loop.on_forward_end:
                loop.tell(loop.on_forward_end, self, result)
            return result
        finally:
            loop.in_fwd = False
            emit(codes.FWD_END)

    return __call__


@functools.lru_cache(maxsize=1024)
def _is_metric(kind: type) -> bool:
    """Whether a class of modules measures what a network gives: that is no forward, wherever it is called."""
    return any(f"{base.__module__}.".startswith(METRICS) for base in kind.__mro__)


def _give(module, result) -> None:
    try:
        rollouts.gave(module, result, loop)
    except Exception as error:
        swallow("rollouts", error)


def _note_trained(module) -> None:
    global _short_lived, _found
    known = _trained.get(id(module))
    if known is None or known() is not module:
        _found = True
        _short_lived += known is not None  # another one, whose place in memory it has
        _trained[id(module)] = weakref.ref(module)


def _telling(module, run):
    """`run`, whose result is told to those who asked for it."""

    def told(*args, **kwargs):
        result = run(*args, **kwargs)
        loop.tell(loop.on_forward_end, module, result)
        return result

    return told


def _without_parts(run, *args, **kwargs):
    """A forward in an open span of Data, or before the training: it and its parts are no forwards of a step, its parts no roots."""
    loop.in_fwd = True
    try:
        return run(*args, **kwargs)
    finally:
        loop.in_fwd = False


def _stop_learning() -> None:
    global _learning
    _forget_what_is_gone()
    if _short_lived >= MANY_GONE:
        return
    _learning = False
    _call.off()
    _tell_forwards()
    for key, (reference, owner) in list(_roots.items()):
        module = reference()
        if module is not None and not _has_slot(key, module) and not isinstance(module, _torch.jit.ScriptModule):
            _place(key, module, owner)


def _forget_what_is_gone() -> None:
    global _short_lived
    for key in [key for key, (reference, _) in _roots.items() if reference() is None]:
        del _roots[key]
        _slots.pop(key, None)
    for key in [key for key, reference in _trained.items() if reference() is None]:
        del _trained[key]
        _short_lived += 1


def _has_slot(key: int, module) -> bool:
    return key in _slots and module.__dict__.get("_compiled_call_impl") is _slots[key][0]


def _remember(module) -> bool:
    """True when `module` owns parameters; notes it as a root."""
    known = _roots.get(id(module))
    if known is not None and known[0]() is module:
        return known[1]
    owner = owns_parameters(module)
    if len(_roots) < MAX_ROOTS:
        _roots[id(module)] = (weakref.ref(module), owner)
        code = getattr(getattr(type(module), "forward", None), "__code__", None)
        _forwards[code] = _forwards.get(code, False) or owner
    return owner


def _tell_forwards() -> None:
    """Which roots only arrange or measure what networks give, such as losses and miners of pairs."""
    global _told
    bare = [code for code, owner in _forwards.items() if code is not None and not owner]
    if diagnose and bare != _told:
        _told = bare
        fact("bare_modules", forwards=[[own.path_of(code), code.co_firstlineno, own.name_of(code), own.is_own(code)] for code in bare])


class _Slot:
    """What stands in a root's slot. A copy of the module's `__dict__` takes it along, so it runs the module that it is called for."""

    def __deepcopy__(self, memo):
        return None

    def __reduce__(self):
        return type(None), ()


def _place(key: int, module, owner: bool) -> None:
    reference = weakref.ref(module)
    previous = module.__dict__.get("_compiled_call_impl")
    in_dynamo, is_compiling, tracing = _torch.compiler.is_dynamo_compiling, _torch.compiler.is_compiling, _torch._C._get_tracing_state
    is_grad_enabled, references, (alone, alone_by_name) = _torch.is_grad_enabled, sys.getrefcount, _references_of_one()

    def call(slot, *args, **kwargs):
        module = reference()
        if references(slot) != (alone_by_name if kwargs else alone) or module is None or module._compiled_call_impl is not slot:
            module = _called(module)
        run = previous or module._call_impl
        if in_dynamo() or loop.in_fwd or loop.tid != get_ident():
            return run(*args, **kwargs)
        if loop.pending or loop.evaluating or loop.on_forward or (owner and (loop.eval_depth or not is_grad_enabled())):
            if is_compiling() or tracing() is not None or traced_by_fx():
                return run(*args, **kwargs)
            try:
                loop.arrives()
                loop.forward_begins(module, owner, is_grad_enabled(), args, kwargs)
            except Exception as error:
                swallow("forward", error)
            if loop.rolling:
                return _without_parts(run, *args, **kwargs)
            loop.begin(20)  # codes.FWD, as a constant for speed
            if loop.on_forward_end:
                run = _telling(module, run)
        else:
            loop.forwards += 1
            emit(20)
        loop.in_fwd = True
        try:
            return run(*args, **kwargs) if kwargs else run(*args)
        finally:
            loop.in_fwd = False
            emit(21)

    slot = type("Slot", (_Slot,), {"__call__": call})()
    _slots[key] = (slot, previous)
    module.__dict__["_compiled_call_impl"] = slot


def _called(module):
    """The module whose call led to that of a slot, by its frame; `module` where a function of the program's stands in between."""
    caller = sys._getframe(2)
    return caller.f_locals["self"] if caller.f_code is _torch.nn.Module._wrapped_call_impl.__code__ else module


def _references_of_one() -> list:
    """How many references a slot has while it runs, if we and one module hold it; with arguments by name, too.

    A copy of the module's `__dict__` holds it besides.
    """
    if sys.version_info >= (3, 14):
        return [-1, -1]  # what runs need not hold a reference any more: always ask the frame
    counts: list = []
    kind = type("Slot", (_Slot,), {"__call__": lambda slot, *args, **kwargs: counts.append(sys.getrefcount(slot))})
    module = _torch.nn.Identity()
    module.__dict__["_compiled_call_impl"] = kind()
    held = (module.__dict__["_compiled_call_impl"], None)
    _torch.nn.Module._wrapped_call_impl(module)
    _torch.nn.Module._wrapped_call_impl(module, named=None)
    del held
    return counts


def _remove_slots() -> None:
    for key, (reference, _) in _roots.items():
        module = reference()
        if module is not None and _has_slot(key, module):
            module.__dict__["_compiled_call_impl"] = _slots[key][1]
    _slots.clear()


def _without_slots(original):
    """Not around torch.jit.script itself: that finds the names of a class by counting frames."""

    @functools.wraps(original)
    def create_script_module(*args, **kwargs):
        _remove_slots()
        try:
            return original(*args, **kwargs)
        finally:
            if not _learning:
                _stop_learning()

    return create_script_module


def _train(original, is_compiling):
    """`eval()` is `train(False)`; a module calls it on its parts, of which nobody has to be told.

    Switching to evaluation is part of it; back again only where the function that evaluates does so itself.
    """

    @functools.wraps(original)
    def train(self, mode=True):
        global _switching, _evaluates
        if _switching or not loop.started or loop.tid != get_ident() or is_compiling():
            return original(self, mode)
        at = since_base() if loop.evaluating or not mode else 0
        _switching = True
        try:
            root = None if mode else _about_to_be_evaluated(self)
            result = original(self, mode)
        finally:
            _switching = False
        if mode and loop.evaluating:
            still = any(frame.f_code is _evaluates for frame in stack.frames())
            loop.close_eval_if_training(0 if still else at)
        elif root is not None and root.training is False and loop._quiet():
            if loop.rolling:
                loop.close_eval()
                at = 0
            loop.open_eval(by_forward=False, began=at)
            loop.eval_root = weakref.ref(root)
            _evaluates = next((frame.f_code for frame in stack.frames()), None)
        return result

    return train


def _about_to_be_evaluated(module):
    if (loop.evaluating and not loop.rolling) or loop.eval_depth:
        return None
    try:
        return _trained_root_in(module)
    except Exception as error:
        swallow("eval", error)
        return None


def _trained_root_in(container):
    """A root in training mode that `container` is, holds, or is the inner module of; None: not the model that is trained."""
    trained = {}
    for key, reference in list(_trained.items()):
        root = reference()
        if root is not None and root.training:
            trained[key] = root
    if not trained:
        return None
    for module in modules_in(container):
        if id(module) in trained:
            return trained[id(module)]
    for root in trained.values():
        inner = getattr(root, "module", None) or getattr(root, "_orig_mod", None)
        if inner is container:
            return container
    return None
