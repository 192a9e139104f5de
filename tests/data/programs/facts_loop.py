"""A small loop with one habit planted by name. Arguments: plant=…, steps=…; prints the loss of each step to the last bit."""

import contextlib
import gc
import os
import signal
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

OPTIONS = {"plant": "none", "steps": "40"} | dict(argument.split("=", 1) for argument in sys.argv[1:])
PLANT, STEPS = OPTIONS["plant"], int(OPTIONS["steps"])
WIDTH, HEADS, LENGTH, BATCH = 32, 4, 24, 8
DISTANT = torch.linspace(1, 2, 5, dtype=torch.float64)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.inputs(x).view(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        if PLANT == "fused":
            mixed = F.scaled_dot_product_attention(q, k, v)
        elif PLANT == "math":
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)
        elif PLANT == "einsum":
            scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
            mixed = torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), v)
        elif PLANT == "exponentials":
            scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
            chances = (scores - scores.amax(-1, keepdim=True)).exp() * torch.ones(t, t).tril()
            mixed = torch.einsum("bhqk,bhkd->bhqd", chances, v) / chances.sum(-1, keepdim=True)
        elif PLANT == "kernel":  # exponentials of scores that nothing divides by their sum
            mixed = (q @ k.transpose(-2, -1) / 100).exp() @ v
        elif PLANT == "pointer":  # where the weights point to is a result too
            points = torch.softmax(q @ k.transpose(-2, -1) / 4, dim=-1)
            return self.output((points @ v).transpose(1, 2).reshape(b, t, d)) + points.amax(-1).mean()
        else:
            scores = q @ k.transpose(-2, -1) / (d // HEADS) ** 0.5
            scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
            mixed = F.dropout(torch.softmax(scores, dim=-1), 0.1) @ v
        return self.output(mixed.transpose(1, 2).reshape(b, t, d))


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class Experts(nn.Module):
    """A gate over experts and a softmax over classes: neither is attention."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 6)
        self.experts = nn.Parameter(torch.randn(6, WIDTH, WIDTH) / 10)

    def forward(self, x):
        weights = torch.softmax(self.gate(x), dim=-1)
        every = torch.einsum("btd,edf->btef", x, self.experts)
        return (weights.unsqueeze(-1) * every).sum(2)


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, 256), nn.GELU(), nn.Linear(256, WIDTH)) for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=PLANT == "reentrant")
        return x


class Readouts(nn.Module):
    """Three heads on what one encoder makes of the same input, which is asked for each of them."""

    def __init__(self):
        super().__init__()
        noise = 0.1 if PLANT == "again with noise" else 0.0
        self.encoder = nn.Sequential(nn.Dropout(noise), nn.Linear(WIDTH, 256), nn.GELU(), nn.Linear(256, WIDTH))
        self.heads = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        return sum(head(self.encoder(x)) for head in self.heads)


def slim(blocks):
    from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrapping

    wrapping.apply_activation_checkpointing(blocks, check_fn=lambda module: module is not blocks and isinstance(module, nn.Sequential))
    return blocks


class Taught(nn.Module):
    """A frozen network is asked twice about each batch: for the training here, and for a figure behind the update."""

    def __init__(self):
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(WIDTH, 1024), nn.GELU(), nn.Linear(1024, WIDTH)).requires_grad_(False)
        self.student = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.student(x) - self.teacher(x)


class Wide(nn.Module):
    """Products of few rows with a large frozen matrix, which make up most of a step, and with smaller ones."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(WIDTH, 1024), nn.Linear(1024, WIDTH)
        self.square = nn.Linear(1024, 1024).requires_grad_(False)

    def forward(self, x):
        return x + self.outer(self.square(self.inner(x[0, :2]))).mean(0)


class Swept(nn.Module):
    """Convolutions over a length that grows with each call, or not."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.convolutions = nn.Sequential(nn.Conv1d(WIDTH, 48, 5, padding=2), nn.GELU(), nn.Conv1d(48, WIDTH, 7, padding=3))

    def forward(self, x):
        self.calls += PLANT == "new shapes"
        return self.convolutions(F.pad(x.transpose(1, 2), (0, self.calls)))[..., :LENGTH].transpose(1, 2)


def body():
    if PLANT in ("new shapes", "one shape", "counted"):
        return Swept()
    if PLANT in ("hand", "closure", "fused", "math", "einsum", "exponentials", "kernel", "pointer"):
        return Attention()
    if PLANT == "weights":
        return Weighted()
    if PLANT == "experts":
        return Experts()
    if PLANT in ("checkpoint", "reentrant"):
        return Checkpointed()
    if PLANT == "wide":
        return Wide()
    if PLANT in ("taught twice", "taught the same"):
        return Taught()
    if PLANT == "encoded before":
        return nn.Sequential(nn.Linear(WIDTH, 1024), nn.GELU(), nn.Linear(1024, WIDTH))
    if PLANT.startswith("again"):
        return Readouts()
    if PLANT == "wrapped":
        return slim(nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, 256), nn.GELU(), nn.Linear(256, WIDTH)) for _ in range(3))))
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())


def stepped(optimizer, model, x):
    """One update by a closure, as Lightning makes it."""

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return optimizer.step(closure)


def distance(made):
    """Of outputs to each other, or from zero."""
    if PLANT == "double distances":
        rows = made.flatten(0, 1).to(torch.float64)
        return torch.cdist(rows, rows).mean().float()
    if PLANT == "double constant":
        return (made * DISTANT).square().mean().float()
    return made.square().mean()


def pulled(model, x):
    """The encoding is made without a graph, and again with one to take the gradient that the rest asks for."""
    with torch.no_grad():
        code = model[0](x)  # for nothing
    (pull,) = torch.autograd.grad(distance(model[1:](code.requires_grad_())), code)
    return (model[0](x) * pull).sum()


def clean_up():
    gc.collect()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if PLANT == "double by default":
        torch.set_default_dtype(torch.float64)
    model = nn.Sequential(body(), nn.Dropout(0.1), nn.Linear(WIDTH, 5), nn.Softmax(-1))
    if PLANT == "doubled":
        model = model.to("cpu").to(torch.float64)
    trained = model[2] if PLANT == "head alone" else model
    optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-3, foreach=False)
    x = torch.randn(BATCH, LENGTH, WIDTH, dtype=next(model.parameters()).dtype)
    for step in range(STEPS):
        if PLANT == "taught twice":
            x = torch.randn(BATCH, LENGTH, WIDTH)
        if PLANT == "closure":
            print(step, stepped(optimizer, model, x).item().hex())
            continue
        for _ in range(2 if PLANT in ("accumulate", "walk twice") else 1):
            inputs = x.requires_grad_() if PLANT == "reentrant" else x
            if PLANT.startswith("walk"):  # a batch made value by value
                for at in range(400):
                    inputs[0, 0, 0] = inputs[at % BATCH, 0, 1]
            counted = FlopCounterMode(display=False) if PLANT == "counted" else contextlib.nullcontext()
            with torch.autocast("cpu", torch.bfloat16, enabled=PLANT == "autocast"), counted as counter:
                loss = pulled(model, inputs) if PLANT == "encoded before" else distance(model(inputs).float())
            with torch.autograd.profiler.profile() if PLANT == "profiled_inside" and step == 6 else contextlib.nullcontext():
                loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=PLANT != "zeros")
        if PLANT == "taught twice":
            print(model[0].teacher(x).argmax(-1).sum().item())  # as often as in the training
        if PLANT == "gc":
            clean_up()
        if PLANT == "counted":
            print(step, counter.get_total_flops())
        if PLANT == "empty_cache":
            torch.cuda.empty_cache()
        if PLANT == "profiled" and step == 6:
            with torch.autograd.profiler.profile():
                model(x)
        if PLANT == "killed" and step == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        print(step, loss.item().hex())


if __name__ == "__main__":
    main()
