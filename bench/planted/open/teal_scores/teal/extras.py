import contextlib
import os

import torch


def profiler(on, folder):
    if not on:
        return contextlib.nullcontext()
    ready = torch.profiler.tensorboard_trace_handler(folder)
    return torch.profiler.profile(schedule=torch.profiler.schedule(wait=5, warmup=1, active=2), on_trace_ready=ready)


def watch(model, on):
    def note(module, inputs, output):
        if not torch.isfinite(output).all():
            raise FloatingPointError(type(module).__name__)

    return [m.register_forward_hook(note) for m in model.modules()] if on else []


class Average:
    def __init__(self, model, decay, every):
        self.weights = [p.detach().clone() for p in model.parameters()]
        self.decay, self.every = decay**every, every

    @torch.no_grad()
    def after(self, step, model):
        if step % self.every == 0:
            torch._foreach_lerp_(self.weights, list(model.parameters()), 1 - self.decay)


class Saver:
    def __init__(self, folder, every, keep):
        self.folder, self.every, self.keep, self.names = folder, every, keep, []

    def after(self, step, model):
        if step % self.every == 0:
            self.names.append(os.path.join(self.folder, f"{step}.pt"))
            torch.save(model.state_dict(), self.names[-1])
            for old in self.names[: -self.keep]:
                os.remove(old)
