"""The record of a training in fidelity runs: one JSON line an update, in `training-<pid>.jsonl`.

Written for comparison, not for speed: these runs are never timed. The recorder draws from no random stream, changes no value and
keeps no graph alive. Lines are written whole and at once, so a killed program leaves all updates that it completed.

Lines have a key `k`:
  `start`       process, rank, world size (first line)
  `update`      losses, samples, inputs, modes, settings of one `optimizer.step`; its gradient and what it changed, as signed sums
  `weights`     after updates 1, 2, 5, 10, 20 and each 50th of one optimizer, and after the last: hash, sketch, what changed, random streams
  `evaluation`  forwards whose result never reached a backward, by the number of updates done before (`n`)
  `checkpoint`  contents of one saved object, as it is handed over
  `stored`      contents of a saved file, read back before it is overwritten or at the end
  `load`        a file that the program loads
  `written`     a file as large as the weights that nobody looked into
  `end`         orderly exit
Values that JSON cannot hold exactly are `float.hex()` strings. With TRAINFLASH_NUDGE=1 the initial weights are changed by about one
unit in the last place (2, 3: in other ways): the distance of such a run from an untouched one is the program's own rounding noise. With
TRAINFLASH_NUDGE=bfloat16 it is a unit in the last place of that type: the noise to expect of a lower precision. With
TRAINFLASH_NUDGE=evaluations only evaluations see changed weights.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import weakref

from .. import inside, seeding
from ..files import Kept
from ..nested import plain
from ..phases import losses
from ..phases.loop import loop
from ..phases.matching import memory_of
from ..phases.observer import Observer
from . import aims, averages, contents, drawn, inline, making, projected, saves, scaled, scores, state, tensors, values, variation, workers
from .epochs import Epochs
from .evaluations import Evaluations
from .forwards import Forward, Forwards

SCHEMA = "training-record.v1"
EARLY = (1, 2, 5, 10, 20)
EVERY = 50
_KNOWN = 4  # updates whose inputs are known when the evaluations around them are written


class Recorder(Observer):
    """Observer of one training process; `run_dir` must exist."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._file = None
        self._scaled = scaled.watch(tensors.torch_module())
        self._epochs = Epochs(tensors.torch_module(), lambda loader: self._try(self._makes, loader))
        torch, vary = tensors.torch_module(), variation.wanted()
        self._seeds = variation.Seeds(torch, offset=vary[1] if vary and vary[0] == "seed" else 0)
        self._drawn = drawn.Drawn(torch)
        workers.install(torch, run_dir, lambda names: self._write({"k": "draws", "drew": names}))
        self._watch_targets(torch)
        self._fresh()
        self._saves = saves.Saves(torch, self._saved_elsewhere, self._write, lambda: self._updates, run_dir)
        os.register_at_fork(after_in_child=self._fresh)

    def _fresh(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None
        self._full = False
        self._swallowed: dict = {}
        self._updates = 0
        self._forwards = Forwards()
        self._evaluations = Evaluations()
        self._evaluating = False
        self._running = None  # the newest forward, until it has returned
        self._newest = None  # the newest forward of a model, if it may be an evaluation: what is scored next is what it returned
        self._given: dict = {}  # update -> hashes of its inputs
        self._losses: list = []
        self._loss_types: set = set()
        self._batches: list = []
        self._keys: list = []  # (loader, keys of one batch)
        self._makers: set = set()  # hashes of the code that makes batches
        self._logs = 0
        self._optimizers: list = []  # (weak reference, steps, last settings, what its steps change)
        self._results: dict = {}  # of networks that other optimizers may train, since the last update: address -> tensor, which keeps it
        self._foreign: list = []  # forwards of the newest update whose networks other optimizers train
        self._line: dict | None = None  # of the newest update, until it is known which one follows
        self._last = None  # (optimizer, ordinal): alive until the end, for the last weights
        self._last_weights = 0
        self._roots: dict = {}
        self._before = None
        self._inline = None  # updates that no optimizer makes
        nudge = os.environ.get("TRAINFLASH_NUDGE")
        self._nudged: set | None = set() if nudge and nudge != "evaluations" else None
        self._elsewhere = state.EvaluatedElsewhere() if nudge == "evaluations" else None

    # ---------------------------------------------------------------- occasions

    def on_batch(self, loader_id, batch, role):
        self._look()
        keys = self._try(self._drawn.batch)
        if role == "eval":
            self._epochs.other()
            return
        self._epochs.batch(loader_id)
        self._keys.append((loader_id, keys))
        found = [tensor for _, tensor in tensors.leaves(batch)]
        self._batches.append([loader_id, [[tensors.describe(tensor), self._try(tensors.digest, [tensor])] for tensor in found]])

    def on_forward(self, module, args, kwargs):
        self._look()
        self._running = None
        if loop.in_bwd or not callable(getattr(module, "parameters", None)):
            return  # inside a backward it is done again, to have what was not kept: it is no forward of its own
        first = next(iter(module.parameters()), None)
        if values.dry_run(first):
            return
        owns = first is not None
        if owns and self._nudged is not None and tensors.torch_module().is_grad_enabled():
            state.nudge(module, self._nudged)
        if owns and self._elsewhere is not None:
            self._elsewhere.end() if tensors.torch_module().is_grad_enabled() else self._elsewhere.begin(module)
        forward = self._try(Forward, module, args, kwargs, owns, self._evaluating, self._updates, self._results)
        if forward is None:
            return
        if owns:
            self._roots[id(module)] = weakref.ref(module)
            if forward.free:
                if forward.marker is not None and self._try(self._unheld, module):
                    forward.unheld = weakref.ref(module)
                else:
                    forward.others = self._try(self._of_one, module) or frozenset()
            forward.net = self._try(self._evaluations.net, module) or forward.net
            self._newest = forward if forward.may_evaluate and not forward.others else None
        elif forward.marker is not None and type(module).__module__ != "torch.nn.modules.loss":  # these call a function that is watched
            forward.look = self._try(self._look_at, args, kwargs)
        self._running = forward
        if forward.marker is not None:
            self._forwards.add(forward)
            if owns and not forward.mode[1] and not any(each.requires_grad for each in module.parameters()):
                self._weigh_evaluated(forward, module)  # an average of weights, evaluated without no_grad
        elif owns:
            self._evaluations.add(forward)
            if not forward.others:  # else its weights are told where they are trained
                self._weigh_evaluated(forward, module)

    def on_forward_end(self, module, result):
        if self._elsewhere is not None:
            self._elsewhere.end()
        forward, self._running = self._running, None
        if forward is None or not forward.may_evaluate:
            return
        self._try(forward.returned, result)
        if forward.others:
            self._results.update({place: tensor for _, tensor in tensors.leaves(result) if (place := memory_of(tensor))})

    def on_backward(self, tensors_, grad_tensors):
        self._look()
        self._newest = None
        if any(values.dry_run(tensor) for tensor in tensors_):
            return
        grads = grad_tensors if isinstance(grad_tensors, (tuple, list)) else (grad_tensors,) * len(tensors_)
        total = 0.0
        for index, tensor in enumerate(tensors_):
            self._loss_types.add(str(tensor.dtype).replace("torch.", ""))
            total += self._loss(tensor, grads[index])
        self._losses.append(total)
        self._forwards.use(self._try(state.graph_numbers, tensors_))
        if self._inline is None and not self._updates:
            self._inline = self._try(inline.of, tensors_)
            if self._inline is not None:
                self._begin_inline()

    def _loss(self, tensor, grad):
        scaled = self._scaled.get(id(tensor))
        if scaled is not None and scaled[0]() is tensor:
            tensor = scaled[1]
        with tensors.torch_module()._C._DisableFuncTorch():  # of a loss under vmap the sum over all that it was mapped over
            value = plain(tensor).detach().double()
            if grad is not None and value.numel() > 1:
                value = value * plain(grad).detach().double()
            return float(value.sum())

    def _look(self):
        """Something of the next update begins: lines of the program may have made one since."""
        self._settle()
        if self._inline is None:
            return
        if loop.clock.knows_optimizers():
            self._optimizers = [entry for entry in self._optimizers if entry[0]() is not self._inline]
            self._inline = None
        elif self._try(self._inline.has_updated):
            self.on_update(self._inline)
            self._begin_inline()

    def _begin_inline(self):
        self.on_update_begin(self._inline)
        self._gradients = None  # these are of the update before

    def on_update_begin(self, optimizer):
        if self._tries_out(optimizer):
            return
        self._settle(optimizer)
        entry, parameters = self._optimizers[self._ordinal(optimizer)], self._parameters(optimizer)
        self._gradients = self._try(state.gradients, optimizer, parameters)
        self._try(entry[3].begin, parameters)
        self._before = self._try(state.Before, parameters) if _sampled(entry[1] + 1) else None

    def on_update(self, optimizer):
        if self._tries_out(optimizer):
            return
        self._updates += 1
        self._newest = None
        self._results = {}
        ordinal = self._ordinal(optimizer)
        entry = self._optimizers[ordinal]
        entry[1] += 1
        line = {"k": "update", "n": self._updates, "optimizer": ordinal, "class": type(optimizer).__name__, "epoch": self._epochs.count}
        line.update(self._begun_line())
        settings = self._try(state.settings, optimizer)
        if settings != entry[2]:
            entry[2] = line["settings"] = settings
        norm, count, elements, vector = getattr(self, "_gradients", None) or (None, None, None, None)
        line["gradient"], line["step"] = vector, self._try(entry[3].end, self._parameters(optimizer))
        if self._updates == 1:
            line["seeded"], line["given"] = self._seeds.seen, seeding.made.own
        line.update(grad_norm=None if norm is None else norm.hex(), grads=count, grad_elements=elements)
        self._line, self._last = line, (optimizer, ordinal)
        own = _parameter_ids(optimizer)
        self._foreign = [each for each in self._forwards.maybe_in_vain if each.others.isdisjoint(own)]
        if not self._foreign:
            self._settle()
        if _sampled(entry[1]):
            self._weigh(optimizer, ordinal)
        self._before = self._gradients = None
        for forward in self._forwards.expired(self._updates):
            self._evaluations.add(forward)
        self._flush(self._updates - 2)

    def on_eval(self, begin):
        self._evaluating = bool(begin)

    def on_checkpoint(self, obj, target):
        self._save(obj, target)

    def _saved_elsewhere(self, obj, target):
        self._save(obj, target, thread="other")

    def _save(self, obj, target, **more):
        live = self._try(saves.live, state.parameters(self._last[0])) if self._last else {}
        found = self._try(contents.checkpoint, obj, live or {}) if obj is not None else None
        self._write({"k": "checkpoint", "n": self._updates, "target": _base(target), **more, **(found or {})})

    def on_log(self, source):
        self._logs += source != "progress" and not (source == "logging" and _of_torch(sys._getframe(1)))

    def on_exit(self):
        self._look()
        if self._file is None:
            return
        self._saves.finish()
        for forward in self._forwards.all():
            self._evaluations.add(forward)
        self._flush(self._updates)
        if self._last and self._last_weights != self._updates:
            self._weigh(*self._last)
        self._write({"k": "end", "n": self._updates, "logs": self._logs, "swallowed": self._swallowed})
        with contextlib.suppress(OSError):
            self._file.close()
        self._file = None

    # ---------------------------------------------------------------- parts

    def _makes(self, loader):
        found = making.code(loader)
        if found not in self._makers:
            self._makers.add(found)
            self._write({"k": "making", "code": found})

    def _held(self):
        return set().union(*map(_parameter_ids, loop.clock.living()))

    def _unheld(self, module):
        """Whether optimizers train something, and no parameter of the module."""
        held = self._held()
        return bool(held) and all(id(each) not in held for each in module.parameters())

    def _of_one(self, module):
        """Ids of the trained parameters of the module, where one of several optimizers trains it and another has no part in it."""
        several = [made for made in loop.clock.living() if getattr(made, "param_groups", None)]
        if len(several) < 2:
            return frozenset()
        trained = frozenset(id(each) for each in module.parameters() if each.requires_grad)
        parts = [trained & _parameter_ids(made) for made in several]
        return trained if any(parts) and not all(parts) else frozenset()

    def _set_aside(self):
        """Forwards that backward reaches in vain are none of the update, where the optimizers hold parameters of other networks."""
        found = self._forwards.in_vain
        held = self._held() if found else set()
        if not any(id(each) in held for root in self._living() for each in root.parameters()):
            return  # they hold copies
        self._forwards.set_aside(found)
        for forward in found:
            self._evaluations.add(forward)
            if (module := forward.unheld()) is not None:
                self._weigh_evaluated(forward, module)

    def _settle(self, optimizer=None):
        """The newest update is told, now that it is known what comes behind it: a step of `optimizer`, or anything else.

        Forwards of networks that other optimizers train are none of it, unless one of these steps next, for the same backward.
        """
        line, self._line = self._line, None
        if line is None:
            return
        found = [each for each in self._foreign if optimizer is None or each.others.isdisjoint(_parameter_ids(optimizer))]
        self._forwards.set_aside(found)
        for forward in found:
            self._evaluations.add(forward)
        line.update(self._forwards.taken())
        self._write(line)
        self._given = {n: each for n, each in self._given.items() if n > line["n"] - _KNOWN} | {line["n"]: self._forwards.given}

    def _begun_line(self):
        self._try(self._set_aside)
        line = {
            "losses": [loss.hex() for loss in self._losses],
            "loss_types": sorted(self._loss_types),
            "batches": self._batches,
            "keys": self._trained_keys(),
            "logs": self._logs,
        }
        self._losses, self._loss_types, self._batches, self._keys, self._logs = [], set(), [], [], 0
        self._scaled.clear()
        return line

    def _watch_targets(self, torch):
        """Targets are what loss functions are given beside something that depends on weights, inside a module or not."""
        for name in losses.NAMES:
            function = getattr(torch.nn.functional, name, None)
            if function is not None:
                names = function.__code__.co_varnames[: function.__code__.co_argcount]
                self._try(inside.hook, function, *self._aiming(name, names, torch), names, True)

    def _aiming(self, name, names, torch):
        def enter(given, target, *settings):
            if torch.compiler.is_compiling():
                return None
            named = dict(zip(names[2:], settings))
            with loop.unseen():
                trains = isinstance(target, torch.Tensor) and getattr(given, "requires_grad", False) and torch.is_grad_enabled()
                if trains and not self._evaluating and not values.dry_run(target):
                    self._try(self._aim, name, target, named)
            return given, target, named, trains

        def leave(call, result):
            given, target, settings, trains = call
            if result is not None and self._newest is not None and not (trains and self._newest.without_gradients):
                with loop.unseen():
                    self._try(scores.add, self._newest.line, name, given, target, settings, result)

        return enter, leave

    def _aim(self, name, target, settings):
        self._forwards.aim(target.detach(), scores.ignored(name, target, settings), self._updates)

    def _look_at(self, args, kwargs):
        """What a criterion is given beside what depends on weights."""
        return aims.look([tensor for _, tensor in tensors.leaves([args, kwargs]) if not tensor.requires_grad], self._updates)

    def _trained_keys(self):
        """Of the loaders that train: which do is known once a backward has followed."""
        drawn = [keys for loader_id, keys in self._keys if loader_id in loop.train_loaders]
        return "".join(key for keys in drawn for key in keys) if drawn and None not in drawn else None

    def _weigh(self, optimizer, ordinal):
        names = self._names()
        every = self._parameters(optimizer)
        line = {"k": "weights", "n": self._updates, "optimizer": ordinal, "step": self._optimizers[ordinal][1]}
        line.update(self._try(state.weights, every, self._buffers()) or {})
        line["random"] = self._try(state.random_streams)
        line["averages"] = self._try(averages.weigh, every, loop.clock.living()) or []
        changed = self._try(self._before.changed) if self._before is not None else None
        if changed is not None:
            same = sorted(set(range(len(every))) - set(changed[0]))
            line["parameters"], line["updated"], line["changed_values"] = len(every), len(changed[0]), changed[1]
            line["untouched"] = [names.get(id(every[index]), f"parameter {index}") for index in same]
        self._write(line)
        self._last_weights = self._updates

    def _tries_out(self, optimizer):
        return values.dry_run(next((each for group in optimizer.param_groups for each in group["params"]), None))

    def _weigh_evaluated(self, forward, module):
        if self._evaluations.wants_weights(forward, module):
            found = self._try(state.weights, list(module.parameters()), state.buffers(module))
            forward.line["weights"].append(found)

    def _living(self):
        return [module for module in (reference() for reference in self._roots.values()) if module is not None]

    def _names(self):
        return {id(parameter): state.plain_name(name) for module in self._living() for name, parameter in module.named_parameters()}

    def _parameters(self, optimizer):
        return self._try(state.parameters, optimizer, self._living()) or []

    def _buffers(self):
        seen = {id(buffer): buffer for module in self._living() for buffer in state.buffers(module)}
        return list(seen.values())

    def _ordinal(self, optimizer):
        for index, entry in enumerate(self._optimizers):
            if entry[0]() is optimizer:
                return index
        self._optimizers.append([weakref.ref(optimizer), 0, None, projected.Steps()])
        return len(self._optimizers) - 1

    def _flush(self, until):
        for line in self._evaluations.finished(until, self._given, self._forwards.trained):
            self._write(line)

    def _try(self, function, *args):
        """The result, or None for a signal that could not be measured; what was swallowed is counted and written at the end."""
        try:
            return function(*args)
        except Exception as bad:
            name = f"{getattr(function, '__name__', 'signal')}: {type(bad).__name__}"
            self._swallowed[name] = self._swallowed.get(name, 0) + 1
            return None

    def _write(self, line):
        if self._full:
            return
        try:
            self._append(line)
        except OSError:  # a full disk: what was written so far is whole lines but for the last, and nothing may follow a gap
            self._full = True

    def _append(self, line):
        if self._file is None:
            path = os.path.join(self._run_dir, f"training-{os.getpid()}.jsonl")
            self._file = Kept(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._file.write(json.dumps(_start()).encode() + b"\n")
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


def _parameter_ids(optimizer):
    return {id(each) for group in getattr(optimizer, "param_groups", ()) for each in group["params"]}


def _start():
    torch = tensors.torch_module()
    return {
        "k": "start",
        "schema": SCHEMA,
        "pid": os.getpid(),
        "start_ns": time.monotonic_ns(),
        "rank": int(os.environ.get("RANK", "0")),
        "world_size": int(os.environ.get("WORLD_SIZE", "1")),
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
    }


_WAYS_TO_LOG = ("", "logging", "functools", __name__.partition(".")[0])


def _sampled(steps):
    return steps in EARLY or steps % EVERY == 0


def _base(target):
    return os.path.basename(str(target)) if isinstance(target, (str, os.PathLike)) else type(target).__name__


def _of_torch(frame):
    """Whether torch itself logs, as it does when it compiles: that is no line of the training's."""
    package = ""
    while frame is not None and package in _WAYS_TO_LOG:
        package, frame = str(frame.f_globals.get("__name__", "")).partition(".")[0], frame.f_back
    return package == "torch"
