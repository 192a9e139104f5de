"""How the program updates its parameters, seen in some early steps; afterwards nothing is listened to."""

from __future__ import annotations

import time
import weakref
from collections import Counter

from .. import own
from ..guard import swallow
from ..objects import is_tensor
from ..patches import like
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact

FROM_STEP, TO_STEP = 3, 27  # in these completed steps updates, backward calls and inputs are counted
ALL_KNOWN = 16  # steps looked at before gradients without an optimizer are counted: each optimizer has been made by then

_clock = time.perf_counter_ns


class UpdateFacts(Observer):
    """Counts, and writes the optimizer that took most time in the steps looked at."""

    def __init__(self) -> None:
        self.built: dict = {}  # id of an optimizer -> (weak reference, the owner's place)
        self.scalers: list = []
        self._ns: Counter = Counter()
        self._batches: Counter = Counter()
        self._zeroed: Counter = Counter()
        self._backwards = self._steps = 0
        self._began = 0
        self._updated = False
        self._unheld: tuple | None = None
        self._listening = True
        self._begun = False
        self._since = 0
        loop.on_found.append(self._begin_anew)

    def _begin_anew(self) -> None:
        """What was taken for steps may have been parts of them."""
        self._since, self._begun, self._listening = loop.steps, False, True
        self._backwards = self._steps = 0
        for counted in (self._ns, self._batches, self._zeroed):
            counted.clear()
        loop.listen(self.on_forward, self.on_backward, self.on_update_begin, self.on_update, self.on_boundary)

    # --- construction

    def constructed(self, original):
        """`Optimizer.__init__`, with the owner's line noted."""

        @like(original)
        def __init__(optimizer, *args, **kwargs):
            original(optimizer, *args, **kwargs)
            try:
                self.built[id(optimizer)] = (weakref.ref(optimizer), own.caller())
            except Exception as error:
                swallow("updates", error)

        return __init__

    def scaler(self, original):
        """`GradScaler.__init__`."""

        @like(original)
        def __init__(scaler, *args, **kwargs):
            original(scaler, *args, **kwargs)
            try:
                self.scalers.append(weakref.ref(scaler))
            except Exception as error:
                swallow("updates", error)

        return __init__

    # --- training

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """The leading dimension of the first input of a root that is trained."""
        if self._begun and loop.fed_by_forward and not loop.evaluating:
            for value in (*args, *kwargs.values()):
                shape = value.shape if is_tensor(value) else None
                if shape and type(shape[0]) is int:
                    self._batches[shape[0]] += 1
                    return

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """Count; the first one after an update shows how gradients were cleared."""
        if not self._begun:
            return
        self._backwards += 1
        if self._updated:
            self._updated = False
            parameter = next(self._trained(self._costliest()), None)
            if parameter is not None:
                self._zeroed[parameter.grad is None] += 1

    def on_update_begin(self, optimizer: object) -> None:
        """An update begins."""
        self._began = _clock()

    def on_update(self, optimizer: object) -> None:
        """An update is done."""
        self._updated = True
        if self._begun:
            self._ns[id(optimizer)] += _clock() - self._began
            if id(optimizer) not in self.built:
                self.built[id(optimizer)] = (weakref.ref(optimizer), getattr(optimizer, "place", None))
            if self._unheld is None and self._steps >= ALL_KNOWN:  # gradients are still there
                self._unheld = self._without_optimizer()

    def on_boundary(self, step: int) -> None:
        """Begin after the first steps, end some dozen later."""
        if self._begun:
            self._steps += 1
        step -= self._since
        self._begun = step >= FROM_STEP
        if step >= TO_STEP:
            loop.remove(self.on_forward, self.on_backward, self.on_update_begin, self.on_update, self.on_boundary)
            self.write()
            self._listening = False

    def _costliest(self):
        key = max(self._ns, key=lambda each: self._ns[each], default=None)
        return None if key is None or key not in self.built else self.built[key][0]()

    @staticmethod
    def _trained(optimizer):
        for group in getattr(optimizer, "param_groups", ()):
            for parameter in group["params"]:
                if parameter.requires_grad:
                    yield parameter

    def _without_optimizer(self) -> tuple:
        """Elements of the trained roots that have gradients, those that no optimizer holds, and the name of the first of these.

        None are told where no optimizer holds any parameter of the roots: it may train copies of them.
        """
        made = [optimizer for optimizer in (reference() for reference, _ in self.built.values()) if optimizer is not None]
        held = {id(each) for optimizer in made for group in optimizer.param_groups for each in group["params"]}
        roots = [root for root in (reference() for reference in loop.trained.values()) if root is not None]
        named = {id(each): (name, each) for root in roots for name, each in root.named_parameters()}
        if held.isdisjoint(named):
            loop.in_vain = frozenset()
            return 0, 0, None
        graded = {key: pair for key, pair in named.items() if pair[1].requires_grad and pair[1].grad is not None}
        loop.in_vain = frozenset(graded.keys() - held)
        unheld = [pair for key, pair in graded.items() if key in loop.in_vain]
        elements = (sum(each.numel() for _, each in pairs) for pairs in (graded.values(), unheld))
        return *elements, unheld[0][0] if unheld else None

    def write(self) -> None:
        """The figures so far."""
        optimizer = self._costliest() if self._listening else None
        if optimizer is None or not self._steps:
            return
        parameters = list(self._trained(optimizer))
        fact(
            "updates",
            optimizer=getattr(optimizer, "name", None) or type(optimizer).__name__,
            at=self.built[id(optimizer)][1],
            fused=_option(optimizer, "fused", False),
            foreach=_option(optimizer, "foreach", bool(parameters) and all(parameter.is_cuda for parameter in parameters)),
            tensors=len(parameters),
            elements=sum(parameter.numel() for parameter in parameters),
            optimizers=len(self._ns),
            backwards=self._backwards / self._steps,
            micro_batch=next((size for size, _ in self._batches.most_common(1)), None),
            zero_to_none=None if not self._zeroed else self._zeroed.most_common(1)[0][0],
            grad_scaler=any(_scales(reference()) for reference in self.scalers),
            package=_package(optimizer),
            unheld=self._unheld,
        )


def _option(optimizer, name: str, usual: bool):
    """The option of the first group; what torch takes where the program left it open, None where the class has no such option."""
    groups = getattr(optimizer, "param_groups", None) or [{}]
    if name not in groups[0]:
        return None
    chosen = groups[0][name]
    if chosen is None and name == "foreach" and groups[0].get("fused"):
        return False
    return usual if chosen is None else bool(chosen)


def _package(optimizer) -> "str | None":
    """The top-level package of the function that makes the update; hooks around it keep its module's name."""
    module = getattr(getattr(type(optimizer), "step", None), "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else None


def _scales(scaler) -> bool:
    return scaler is not None and bool(getattr(scaler, "_enabled", False)) and getattr(scaler, "_scale", None) is not None


def install(torch) -> UpdateFacts:
    """Note constructions, and listen for some steps."""
    source = UpdateFacts()
    optimizer = torch.optim.Optimizer
    optimizer.__init__ = source.constructed(optimizer.__init__)
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
    if scaler is not None:
        scaler.__init__ = source.scaler(scaler.__init__)
    loop.add(source)
    return source
