"""Run a training program with hooks and write what it did: python record.py --out FOLDER [--nudge X] [--seed N] -- train.py [args]

Independent of TrainFlash. Writes `record.json` (events in order) and `weights.pt` (weights after 20 updates and at the end).
"""

import argparse
import collections
import hashlib
import json
import os
import runpy
import sys

import torch
import torch.nn.functional as F
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

LOSSES = ("cross_entropy", "mse_loss", "smooth_l1_loss", "l1_loss", "huber_loss", "nll_loss", "binary_cross_entropy_with_logits")
EARLY = 20


def row_hashes(tensor):
    """One short hash per sample; trailing zeros of integer rows (padding) don't count."""
    hashes = []
    for row in tensor.detach().contiguous():
        if row.dtype == torch.int64 and row.dim() == 1:
            full = row.nonzero()
            row = row[: int(full[-1]) + 1] if len(full) else row[:0]
        row = row.float() if row.dtype == torch.bfloat16 else row
        hashes.append(hashlib.blake2b(row.contiguous().numpy().tobytes(), digest_size=6).hexdigest())
    return hashes


def tensors_in(values):
    return [v for v in values if isinstance(v, torch.Tensor)]


def graph_nodes(loss):
    seen, todo = set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo.extend(parent for parent, _ in node.next_functions)
    return seen


class Recorder:
    def __init__(self, nudge):
        self.events = []
        self.nudge = nudge
        self.depth = 0
        self.pending = collections.deque(maxlen=400)
        self.modules = []
        self.optimizers = []
        self.steps = []
        self.before = None
        self.weights = {}
        self.quiet = False

    @property
    def update(self):
        return self.steps[0] if self.steps else 0

    def add(self, **event):
        event["update"] = self.update
        self.events.append(event)
        return event

    def enter(self, module, args):
        self.depth += 1
        if self.depth == 1 and not any(m is module for m in self.modules):
            self.modules.append(module)
            if self.nudge:
                with torch.no_grad():
                    for i, p in enumerate(module.parameters()):
                        p.mul_(1 + (self.nudge if i % 2 else -self.nudge))

    def leave(self, module, args, kwargs, output):
        self.depth -= 1
        if self.depth or self.quiet or type(module).__name__.endswith("Loss"):
            return
        inputs = tensors_in(list(args) + list(kwargs.values()))
        outputs = tensors_in(output if isinstance(output, (tuple, list)) else [output])
        if not inputs or not outputs:
            return
        event = self.add(
            kind="forward",
            model=self.modules.index(module) if any(m is module for m in self.modules) else -1,
            rows=row_hashes(inputs[0]),
            shape=list(inputs[0].shape),
            dtypes=sorted({str(t.dtype) for t in inputs[:1] + outputs[:1]} | {str(p.dtype) for p in module.parameters()}),
            autocast=torch.is_autocast_enabled("cpu"),
            mode=sum(m.training for m in module.modules()),
            grad=torch.is_grad_enabled(),
            trained=False,
        )
        if len(inputs) > 1 and inputs[1].dtype == torch.int64:
            event["targets"] = row_hashes(inputs[1])
        for t in outputs:
            if t.grad_fn is not None:
                self.pending.append((t.grad_fn, event))

    def wrap_loss(self, name):
        original = getattr(F, name)

        def wrapped(input, target, *args, **kwargs):
            value = original(input, target, *args, **kwargs)
            if not self.quiet:
                options = {k: v for k, v in kwargs.items() if not isinstance(v, torch.Tensor) and v is not None}
                weight = kwargs.get("weight")
                event = self.add(
                    kind="loss",
                    name=name,
                    value=value.item() if value.numel() == 1 else value.mean().item(),
                    targets=row_hashes(target) if target.dim() else [],
                    count=target.numel(),
                    options={k: str(v) for k, v in sorted(options.items())},
                    weight=None if weight is None else row_hashes(weight.unsqueeze(0))[0],
                    trained=False,
                )
                if value.grad_fn is not None:
                    self.pending.append((value.grad_fn, event))
            return value

        setattr(F, name, wrapped)

    def wrap_backward(self):
        original = torch.autograd.backward

        def wrapped(tensors, *args, **kwargs):
            loss = tensors if isinstance(tensors, torch.Tensor) else tensors[0]
            nodes = graph_nodes(loss)
            for node, event in self.pending:
                if node in nodes:
                    event["trained"] = True
            self.add(kind="backward", value=loss.detach().float().sum().item(), dtype=str(loss.dtype))
            return original(tensors, *args, **kwargs)

        torch.autograd.backward = wrapped

    def before_step(self, optimizer, args, kwargs):
        parameters = [p for g in optimizer.param_groups for p in g["params"]]
        self.before = [p.detach().clone() for p in parameters]
        self.grads = [None if p.grad is None else p.grad.detach().float().norm().item() for p in parameters]

    def after_step(self, optimizer, args, kwargs):
        if optimizer not in self.optimizers:
            self.optimizers.append(optimizer)
            self.steps.append(0)
        k = self.optimizers.index(optimizer)
        parameters = [p for g in optimizer.param_groups for p in g["params"]]
        changed = [int((a != p).sum()) for a, p in zip(self.before, parameters, strict=True)]
        self.add(
            kind="step",
            optimizer=k,
            lr=[float(g["lr"]) for g in optimizer.param_groups for _ in g["params"]],
            decay=[float(g.get("weight_decay", 0)) for g in optimizer.param_groups for _ in g["params"]],
            sizes=[p.numel() for p in parameters],
            changed=changed,
            norm=sum(g * g for g in self.grads if g is not None) ** 0.5,
        )
        self.steps[k] += 1
        if k == 0 and self.steps[0] == EARLY:
            self.weights["early"] = self.snapshot()

    def snapshot(self):
        return [p.detach().float().clone() for m in self.modules for p in m.parameters()]

    def wrap_save(self):
        original = torch.save

        def wrapped(obj, f, *args, **kwargs):
            if isinstance(f, (str, os.PathLike)) and os.path.basename(f) != "weights.pt":
                self.add(kind="save", path=os.path.basename(f))
            return original(obj, f, *args, **kwargs)

        torch.save = wrapped

    def install(self):
        hooks = torch.nn.modules.module
        hooks.register_module_forward_pre_hook(self.enter)
        hooks.register_module_forward_hook(self.leave_hook, with_kwargs=True, always_call=True)
        for name in LOSSES:
            self.wrap_loss(name)
        self.wrap_backward()
        self.wrap_save()
        register_optimizer_step_pre_hook(self.before_step)
        register_optimizer_step_post_hook(self.after_step)

    def leave_hook(self, module, args, kwargs, output):
        self.leave(module, args, kwargs, output)

    def write(self, folder):
        self.weights["final"] = self.snapshot()
        torch.save(self.weights, os.path.join(folder, "weights.pt"))
        with open(os.path.join(folder, "record.json"), "w") as f:
            json.dump({"events": self.events, "steps": self.steps, "models": [type(m).__name__ for m in self.modules]}, f)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--nudge", type=float, default=0.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = [c for c in args.command if c != "--"] if args.command[:1] == ["--"] else args.command
    out = os.path.abspath(args.out)
    if args.seed is not None:
        torch.manual_seed(args.seed)
    recorder = Recorder(args.nudge)
    recorder.install()
    sys.argv = command
    sys.path[0] = os.path.dirname(os.path.abspath(command[0]))
    try:
        runpy.run_path(command[0], run_name="__main__")
    finally:
        recorder.write(out)


if __name__ == "__main__":
    main()
