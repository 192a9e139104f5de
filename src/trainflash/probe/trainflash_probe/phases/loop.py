"""The one training loop of this process, as the hooks see it: where a step ends, when an evaluation runs, who is told.

A step boundary is the first data fetch or training forward after the update that completes a step. Everything here runs on the training
thread (`tid`), which is the main thread until the first backward or optimizer step says otherwise.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext

from .. import codes
from ..guard import swallow
from ..writer import emit, emit_at, emit_two, fact, newest_event, set_steps, since_base
from . import rollouts
from .clock_of_steps import StepClock
from .evaluations import EvaluationFacts
from .loader_roles import LoaderRoles
from .observer import Observer, TrainFlashStop

EVERY_BOUNDARY_UNTIL = 3  # the roots of the model are learned in these first steps
RELEARN_EVERY = 512
NEVER = 1 << 62  # steps
INTERVAL_NS = 2_000_000_000  # a process that is killed loses the newest figures of so long; its events are complete
LOOK_EVERY = 8  # steps, where they are short: at other boundaries nobody looks whether there is something to do

_STATE = """
tid latched started in_fwd in_bwd in_data in_opt in_log in_ckpt eval_depth evaluating eval_by_forward rolling pending steps updates clock
last_serial last_loader train_serial roles train_loaders fresh_train_batch forwards fed_by_forward trains_in_eval_mode
last_root_training eval_root evaluation trained observers by_position position_ns began_ns plain_until gap trace_gap_at trace_gap due
due_at on_batch on_forward on_forward_end on_backward on_pass on_update_begin on_update on_boundary on_look on_interval interval_at
looked_at looked_ns on_eval on_rolling on_checkpoint on_log on_exit unseen around_data batch_from by_hand
in_vain on_found
"""


class Loop:
    """State of the loop. Hooks read and write the flags directly: an attribute access is all they can afford."""

    __slots__ = tuple(_STATE.split())  # next to each other in memory: the hooks find the processor's caches cold

    def __init__(self) -> None:
        self.tid = threading.main_thread().ident
        self.latched = False
        self.started = False  # files may be opened: this process trains, or at least loads data
        self.in_fwd = self.in_bwd = self.in_data = False
        self.in_opt = self.in_log = self.in_ckpt = self.eval_depth = 0
        self.evaluating = False  # an evaluation without a bracket of its own runs
        self.eval_by_forward = False
        self.rolling = False  # what is open as `evaluating` makes training data: its time is Data
        self.pending = False
        self.steps = self.updates = 0
        self.clock = StepClock()
        self.last_serial = 0  # iterator of the newest fetch
        self.last_loader = self.train_serial = -1
        self.roles = LoaderRoles()
        self.train_loaders = self.roles.train
        self.fresh_train_batch = self.trains_in_eval_mode = False
        self.forwards = 0  # since the last boundary
        self.fed_by_forward = False  # the root that runs now has parameters and is trained
        self.last_root_training = True
        self.eval_root = None  # weak reference to a root whose `.training` says when training resumes
        self.evaluation = None  # facts of the running one
        self.trained: dict = {}  # id -> weak reference of roots with parameters that ran a training forward
        self.observers: list = []
        self.by_position = False  # data comes from a generator that cannot be bracketed: the gap before the forward is Data,
        self.position_ns = 0  # or only its end, so long
        self.began_ns = 0  # time of a boundary whose phase has not begun yet
        self.plain_until = 0  # completed steps, up to which a boundary is a count and a word and nobody has to be told
        self.gap = None  # a traced window between update and forward; a loader's own work is not part of it
        self.trace_gap_at = NEVER  # completed steps, at which `trace_gap` is called right after the update
        self.trace_gap = None
        self.by_hand = False  # gradients were asked for by `autograd.grad`: the program may take any of them itself
        self.in_vain = None  # ids of parameters with gradients that no optimizer holds, once that is known
        self.around_data = None  # calls a data function in place of its bracket, while a census is taken
        self.due: dict = {}  # what is called once at a boundary -> at how many completed steps
        self.due_at = NEVER
        self.on_batch: list = []
        self.batch_from = None  # while these are told of a batch of a data function: that function, or the step of its generator
        self.on_forward: list = []
        self.on_forward_end: list = []
        self.on_backward: list = []
        self.on_pass: list = []
        self.on_update_begin: list = []
        self.on_update: list = []
        self.on_boundary: list = []
        self.on_look: list = []
        self.on_interval: list = []
        self.interval_at = 0  # nanoseconds, from which on the next look calls `on_interval`
        self.looked_at = self.looked_ns = 0  # steps and time of the newest look
        self.on_eval: list = []
        self.on_rolling: list = []
        self.on_checkpoint: list = []
        self.on_log: list = []
        self.on_exit: list = []
        self.on_found: list = []  # are told that steps end otherwise than so far
        self.unseen = nullcontext  # what observers ask of tensors is hidden in there

    def add(self, observer: Observer) -> None:
        """Tell `observer` from now on what it overrides."""
        self.observers.append(observer)
        self.plain_until = 0
        for name in vars(Observer):
            if name.startswith("on_") and getattr(type(observer), name) is not getattr(Observer, name):
                getattr(self, name).append(getattr(observer, name))
        if (self.on_look or self.on_interval) and self._look not in self.due:
            self.call_at(1, self._look)

    def listen(self, *methods) -> None:
        """Tell these bound methods of an observer again."""
        self.plain_until = 0
        for method in methods:
            self.remove(method)
            getattr(self, method.__name__).append(method)

    def remove(self, *methods) -> None:
        """Stop to tell these bound methods of an observer."""
        for name in {method.__name__ for method in methods}:
            setattr(self, name, [method for method in getattr(self, name) if method not in methods])

    def after_fork(self) -> None:
        """A child begins anew, on the thread that forked; what is due is due at its first boundary."""
        self.started = self.latched = self.evaluating = self.rolling = self.pending = self.by_position = False
        self.in_fwd = self.in_bwd = self.in_data = False
        self.in_opt = self.in_log = self.in_ckpt = self.eval_depth = 0
        self.steps = self.plain_until = self.looked_at = 0
        self.due = dict.fromkeys(self.due, 1)
        self.due_at = 1 if self.due else NEVER
        self.tid = threading.get_ident()

    def latch(self, ident: int) -> bool:
        """The first backward or update decides which thread trains; True when that is `ident`."""
        if not self.latched:
            self.latched = True
            self.tid = ident
        return self.tid == ident

    def tell(self, methods: list, *args) -> None:
        """Call observers; what they raise is counted."""
        with self.unseen():
            for method in methods:
                try:
                    method(*args)
                except Exception as error:
                    swallow(f"observer {getattr(method, '__qualname__', method)}", error)

    def call_at(self, steps: int, method) -> None:
        """Call `method()` once, at the boundary that completes so many steps or the next one; instead of what was said of it before."""
        self.due[method] = steps
        self.due_at = min(self.due.values())
        self.plain_until = 0

    def trace_gap_after(self, steps: int, method) -> None:
        """Call `method()` right after the update that completes so many steps."""
        self.trace_gap_at, self.trace_gap = steps, method
        self.plain_until = 0

    # --- step boundaries

    def boundary(self) -> None:
        """One more step is complete. Raises `TrainFlashStop` when an observer wants the program to end."""
        self.pending = False
        self.steps += 1
        self.forwards = 0
        since = newest_event() if self.by_position else None
        if since is None and emit is _emit_now:
            self.began_ns = since_base()
            emit_at(codes.STEP, self.began_ns)
        elif since is None:
            emit(codes.STEP)
        else:
            emit_at(codes.STEP, since)
            emit_at(codes.DATA, max(since, since_base() - self.position_ns) if self.position_ns else since)
            emit(codes.DATA_END)
        if self.steps >= self.due_at:
            self._call_due()
        if self.on_boundary:
            self._tell_boundary()
        told = self.on_boundary or self.by_position or self.gap is not None or emit is not _emit_now
        self.plain_until = 0 if told else min(self.due_at, self.trace_gap_at) - 1

    def _tell_boundary(self) -> None:
        with self.unseen():
            for method in self.on_boundary:
                try:
                    method(self.steps)
                except TrainFlashStop:
                    raise
                except Exception as error:
                    swallow(f"observer {getattr(method, '__qualname__', method)}", error)

    def _look(self) -> None:
        """Now and then: call those who look, and plan the next time; soon, where steps are long."""
        now = since_base()
        self.tell(self.on_look, self.steps)
        if now >= self.interval_at:
            self.interval_at = now + INTERVAL_NS
            self.tell(self.on_interval, self.steps)
        steps, self.looked_at, since, self.looked_ns = self.steps - self.looked_at, self.steps, now - self.looked_ns, now
        short = since * LOOK_EVERY < INTERVAL_NS * steps
        self.call_at((self.steps // LOOK_EVERY + 1) * LOOK_EVERY if short else self.steps + 1, self._look)

    def _call_due(self) -> None:
        now = [method for method, steps in self.due.items() if steps <= self.steps]
        for method in now:
            del self.due[method]
        self.due_at = min(self.due.values(), default=NEVER)
        self.tell(now)

    def passes(self, code: int) -> bool:
        """A fetch begins while a boundary is pending, of which nobody has to be told; False: somebody has to, and nothing was done."""
        if self.steps >= self.plain_until or self.evaluating or self.in_opt or self.in_fwd or self.in_bwd:
            return False
        if self.in_log or self.in_ckpt or self.eval_depth:
            return False
        self.pending = False
        self.steps += 1
        self.forwards = 0
        emit_two(1, code)  # codes.STEP, as a constant for speed
        return True

    def arrives(self) -> None:
        """A hook begins its bookkeeping: where that ends no other phase, the hook's phase begins now."""
        self.began_ns = 0 if self.pending or self.evaluating else since_base()

    def begin(self, code: int) -> None:
        """A phase begins; at the boundary or arrival, if there was one, so that what the probe did since lies inside the phase."""
        began, self.began_ns = self.began_ns, 0
        if began and emit is _emit_now:
            emit_at(code, began)
        else:
            emit(code)

    def mark_update(self) -> None:
        """A step's last update is done. The published count says so, should the process end before the boundary."""
        self.pending = True
        self.fresh_train_batch = False
        self.updates += 1
        if self.roles.asked:
            self.roles.updated(self.updates)
        set_steps(self.steps + 1)
        if self.steps + 1 >= self.trace_gap_at:
            self.tell([self.trace_gap])

    def _quiet(self) -> bool:
        return not (self.in_opt or self.in_fwd or self.in_bwd or self.in_data or self.in_log or self.in_ckpt or self.eval_depth)

    # --- data

    def fetch_begins(self, serial: int, loader: int) -> None:
        """A fetch on the training thread is about to begin (`serial` names its iterator, 0: a data function)."""
        self.started = True
        if self.gap is not None and loader >= 0:
            self.gap.fetched = True
            self.gap.pause()
        if self.evaluating and self._training_resumed(serial, loader):
            self.close_eval()
        if self.pending and not self.evaluating and self._quiet():
            self.clock.fetched = True
            self.boundary()

    def _training_resumed(self, serial: int, loader: int) -> bool:
        if serial and serial == self.train_serial:
            return True
        if self.eval_by_forward:
            return loader in self.train_loaders
        root = self.eval_root() if self.eval_root is not None else None
        return root is not None and root.training

    def fetch_ended(self, serial: int, loader: int, batch: object) -> None:
        """A batch reached the training thread."""
        self.last_serial, self.last_loader = serial, loader
        self.fresh_train_batch = serial == self.train_serial
        role = self.roles.fetched(loader, bool(self.evaluating or self.eval_depth))
        if self.on_batch:
            self.tell(self.on_batch, loader, batch, role)

    # --- forward, backward, update

    def forward_begins(self, module: object, owner: bool, grad: bool, args: tuple, kwargs: dict) -> None:
        """A root module is about to run; `owner`: it has parameters."""
        if grad:
            if owner:
                self.started = True
                self.last_root_training = module.training
                if self.evaluating and (module.training or self.trains_in_eval_mode):
                    self.close_eval()
                if self.pending and not self.evaluating and self._quiet() and self.clock.forward_ends_step():
                    self.boundary()
        elif owner and not self.in_data:
            self._forward_without_gradients(module, args)
        self.forwards += 1
        self.fed_by_forward = owner and grad and not self.in_bwd  # within a backward a checkpointed part runs again
        if self.evaluation is not None and owner:
            loader = -1 if self.last_loader in self.train_loaders else self.last_loader
            with self.unseen():
                self.evaluation.batch(grad, args, kwargs, loader)
        if self.on_forward:
            self.tell(self.on_forward, module, args, kwargs)

    def loose_forward_begins(self, grad: bool) -> None:
        """A forward that is no module's is about to run while an update is pending or an evaluation runs."""
        if not grad:
            return
        if self.evaluating and self._training_resumed(0, -2):
            self.close_eval()
        if self.pending and not self.evaluating and self._quiet() and self.clock.forward_ends_step():
            self.boundary()

    def _forward_without_gradients(self, module: object, args: tuple) -> None:
        if not self.last_serial and not self.steps and not self.pending:
            rollouts.note(module, args, self)
        if not self.started or not self._quiet():
            return
        announced = self.evaluating and not self.eval_by_forward and not self._training_resumed(0, -2)
        if not self.last_serial and not announced and (rollouts.feeds(module) or rollouts.teaches(module, self)):
            self.close_eval()
            if self.pending:
                self.boundary()
            return
        rolls = not self.last_serial and rollouts.makes_data(module, self.trained)
        if self.evaluating:
            if self.rolling != rolls:
                self.close_eval()
            if not rolls:
                if self.eval_by_forward:
                    rollouts.goes_on()
                return
        opens = not self.evaluating and not self._inside_step()
        rolls = rolls or (opens and rollouts.acts(module, args, self))
        if rolls and not self.evaluating:
            if self.pending:
                self.boundary()
            self.open_rollouts()
        elif opens:
            self.open_eval(by_forward=True)

    def _inside_step(self) -> bool:
        """A forward without gradients is part of the step (a teacher, a frozen encoder): its batch is the training batch."""
        return self.fresh_train_batch if self.last_serial else not self.pending and self.steps > 0

    def backward_begins(self, tensors: object, grad_tensors: object) -> None:
        """Backward is about to run."""
        self.started = True
        if self.evaluating:
            self.trains_in_eval_mode = self.trains_in_eval_mode or not (self.rolling or self.last_root_training)
            self.close_eval()
        if self.pending and self._quiet() and self.clock.forward_ends_step():
            self.boundary()  # a network without modules: nothing else has told that a step begins
        if self.last_serial != self.train_serial and self.last_serial:
            self.train_serial = self.last_serial
            self.fresh_train_batch = True
            self.roles.trains(self.last_loader)
            self.tell(self.on_pass)
        if self.on_backward:
            if not isinstance(tensors, tuple):
                tensors = tuple(tensors) if isinstance(tensors, list) else (tensors,)
            self.tell(self.on_backward, tensors, grad_tensors)

    def scores_with_gradients(self) -> bool:
        """A derivative that this evaluation asks for trains nothing: the network is in evaluation mode, an optimizer makes the steps."""
        other = self.rolling or self.eval_by_forward or self.last_root_training or self.trains_in_eval_mode
        return not other and self.clock.steps_by_optimizer()

    def update_begins(self, optimizer: object) -> None:
        """`optimizer.step` is about to run, outermost."""
        self.started = True
        if self.evaluating:
            self.trains_in_eval_mode = self.trains_in_eval_mode or self.scores_with_gradients()
            self.close_eval()
        if self.pending and self._quiet() and self.clock.update_ends_step(optimizer):
            self.boundary()
        if self.on_update_begin:
            self.tell(self.on_update_begin, optimizer)

    def update_ended(self, optimizer: object) -> None:
        """`optimizer.step` returned, outermost."""
        if self.on_update:
            self.tell(self.on_update, optimizer)
        if self.steps and not self.clock.steps_by_optimizer():
            fact("first_update", step=self.steps + 1)  # what counted as steps were gradients for something else, such as making data
            self.tell(self.on_found)
        if self.clock.updated(optimizer):
            self.mark_update()

    # --- evaluation

    def open_rollouts(self) -> None:
        """The model begins to make training data, until training resumes."""
        self.began_ns = 0
        self.evaluating = self.rolling = self.eval_by_forward = True
        emit(codes.DATA)
        self.tell(self.on_rolling, True)

    def open_eval(self, by_forward: bool, began: int = 0) -> None:
        """An evaluation begins here, or began at that time, and lasts until training resumes."""
        self.began_ns = began
        self.evaluating, self.eval_by_forward = True, by_forward
        self.roles.evaluates(self.last_loader)
        self.begin(codes.EVAL)
        self.begin_evaluation_facts()
        self.tell(self.on_eval, True)

    def close_eval(self, ended: int = 0) -> None:
        """Training resumes, or did so at that time; not while another span is open, since spans must nest."""
        if not self.evaluating or not self._quiet():
            return
        self.began_ns = 0 if self.rolling else ended
        self.evaluating = False
        if self.rolling:
            self.rolling = False
            emit(codes.DATA_END)
            self.tell(self.on_rolling, False)
            return
        self.eval_root = None
        self.begin(codes.EVAL_END)
        self.end_evaluation_facts()
        self.tell(self.on_eval, False)

    def close_eval_if_training(self, ended: int = 0) -> None:
        """Before a log call or a checkpoint: the model may be back in training mode already."""
        if self.evaluating and not self.eval_by_forward and self._training_resumed(0, -2):
            self.close_eval(ended)

    def begin_evaluation_facts(self) -> None:
        """Begin to collect what `end_evaluation_facts` writes."""
        self.evaluation = EvaluationFacts()

    def end_evaluation_facts(self) -> None:
        """Write the facts of the evaluation that ends."""
        if self.evaluation is not None:
            self.evaluation.write()
        self.evaluation = None


_emit_now = emit  # where a device is timed, `emit` is exchanged for one that records an event too, which can't be done afterwards
loop = Loop()
