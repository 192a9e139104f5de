"""Optimizers written by hand that torch has: the exchanged program trains real parameters to the same values, and others are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from knob_runs import applied, candidate_here
from knob_scenes import added, removed

from trainflash.errors import UsageError

HEAD = "import math\n\nimport torch\nfrom torch import nn\nfrom torch.optim import Optimizer\n\n\n"
CLASSIC = """
class Own(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.98), eps=1e-8, weight_decay=0):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        super(Own, self).__init__(params, defaults)

    def step(self, closure=None):
        loss = None
        if closure is not None:
            loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p.data, memory_format=torch.preserve_format)
                    state["exp_avg_sq"] = torch.zeros_like(p.data)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                beta1, beta2 = group["betas"]
                state["step"] += 1
                if group["weight_decay"] != 0:
                    grad = grad.add(p.data, alpha=group["weight_decay"])
                exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)  # here
                exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                bias_correction1 = 1 - beta1 ** state["step"]
                bias_correction2 = 1 - beta2 ** state["step"]
                denom = (exp_avg_sq.sqrt() / math.sqrt(bias_correction2)).add_(group["eps"])
                p.data.addcdiv_(exp_avg, denom, value=-group["lr"] / bias_correction1)
        return loss
"""
DECOUPLED = """
class Own(torch.optim.Optimizer):
    def __init__(self, params, rate, decay=0.02):
        super().__init__(params, {"lr": rate, "weight_decay": decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            live = [p for p in group["params"] if p.grad is not None]
            for p in live:
                self._move(p, self.state[p], group)

    def _move(self, p, state, group):
        t = state["t"] = state.get("t", 0) + 1
        m = state.setdefault("m", torch.zeros_like(p))
        v = state.setdefault("v", torch.zeros_like(p))
        m.lerp_(p.grad, 1 - 0.9)  # here
        v.mul_(0.999).addcmul_(p.grad, p.grad, value=1 - 0.999)
        p *= 1 - group["lr"] * group["weight_decay"]
        hat = m / (1 - 0.9**t)
        p -= group["lr"] * hat / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8)
"""
HEAVY_BALL = """
class Own(Optimizer):
    def __init__(self, params, lr, mu=0.0, nesterov=False):
        super().__init__(params, {"lr": lr, "momentum": mu, "nesterov": nesterov})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad
                if group["momentum"]:
                    buffer = self.state[p].get("buffer")
                    if buffer is None:
                        buffer = torch.clone(g).detach()
                        self.state[p]["buffer"] = buffer
                    else:
                        buffer.mul_(group["momentum"]).add_(g)  # here
                    g = g.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
                p.add_(g, alpha=-group["lr"])
"""
ROOTS = """
class Own(Optimizer):
    def __init__(self, params, lr=0.01, alpha=0.9, eps=1e-8):
        super().__init__(params, dict(lr=lr, alpha=alpha, eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if "square" not in state:
                    state["square"] = torch.zeros_like(p)
                state["square"] = group["alpha"] * state["square"] + (1 - group["alpha"]) * p.grad.square()  # here
                p.sub_(group["lr"] * p.grad / (state["square"].sqrt() + group["eps"]))
"""
SUMS = """
class Own(Optimizer):
    def __init__(self, params, lr=0.05):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if not self.state[p]:
                    self.state[p]["sum"] = torch.zeros_like(p)
                self.state[p]["sum"] += p.grad * p.grad  # here
                p.copy_(p - group["lr"] * p.grad / (torch.sqrt(self.state[p]["sum"]) + 1e-10))
"""
CALLS = {
    "classic": (CLASSIC, "Own(net.parameters())", "torch.optim.Adam(net.parameters(), betas=(0.9, 0.98))"),
    "classic, with options": (
        CLASSIC,
        "Own(net.parameters(), 2e-3, weight_decay=0.1)",
        "torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.9, 0.98), weight_decay=0.1)",
    ),
    "decoupled": (DECOUPLED, "Own(net.parameters(), rate=3e-3)", "torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.02)"),
    "groups": (
        DECOUPLED,
        'Own([{"params": net[0].parameters(), "weight_decay": 0.3}, {"params": net[1].parameters()}], 3e-3)',
        'torch.optim.AdamW([{"params": net[0].parameters(), "weight_decay": 0.3}, {"params": net[1].parameters()}], '
        "lr=3e-3, weight_decay=0.02)",
    ),
    "momentum": (HEAVY_BALL, "Own(net.parameters(), 0.1, mu=0.9)", "torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)"),
    "nesterov": (
        HEAVY_BALL,
        "Own(net.parameters(), 0.1, 0.9, True)",
        "torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)",
    ),
    "roots": (ROOTS, "Own(params=net.parameters())", "torch.optim.RMSprop(net.parameters(), alpha=0.9)"),
    "sums": (SUMS, "Own(net.parameters())", "torch.optim.Adagrad(net.parameters(), lr=0.05)"),
    "sums, begun by an update of the state": (
        SUMS.replace('["sum"] = torch.zeros_like(p)', ".update(sum=torch.zeros_like(p))"),
        "Own(net.parameters())",
        "torch.optim.Adagrad(net.parameters(), lr=0.05)",
    ),
}


def program(source: str, call: str) -> str:
    return f"{HEAD}{source.strip()}\n\n\ndef build(net):\n    return {call}\n"


def trained(source: str) -> list[torch.Tensor]:
    """Parameters after some updates, with a schedule, by the program's own optimizer."""
    names: dict = {}
    exec(source, names)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)).double()
    optimizer = names["build"](net)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.3)
    for _ in range(12):
        optimizer.zero_grad()
        net(torch.randn(8, 3, dtype=torch.double)).square().mean().backward()
        optimizer.step()
        schedule.step()
    return list(net.parameters())


@pytest.mark.parametrize("form", CALLS)
def test_trains_as_before(tmp_path: Path, form: str):
    source, old, new = CALLS[form]
    before = program(source, old)
    made = candidate_here(tmp_path, "torch_optimizer", before)
    assert (removed(made), added(made), made.risk) == ([f"    return {old}"], [f"    return {new}"], "close")
    for mine, theirs in zip(trained(before), trained(applied(tmp_path, made.diff)["train.py"]), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


REFUSED = {
    "eps in another place": (CLASSIC.replace("exp_avg_sq.sqrt() / math.sqrt(bias_correction2)", "exp_avg_sq.sqrt()"), "another way"),
    "no correction": (CLASSIC.replace("1 - beta1 ** state", "1 + 0 * state"), "another way"),
    "a norm": (DECOUPLED.replace("hat = m /", "hat = p.norm() * m /"), r"`p.norm\(\)` is not understood"),
    "a question about elements": (DECOUPLED.replace("t = state", "p = p if p.grad > 0 else p\n        t = state"), "is not understood"),
    "the rate as it was at first": (SUMS.replace('group["lr"] *', "0.05 *"), "another way"),
    "options of other names": (DECOUPLED.replace('"weight_decay"', '"decay"'), "another way"),
    "each other update": (
        SUMS.replace("p.copy_(", 'if len(self.state) > 0 and self.state[p].get("n"):\n                    p.copy_('),
        "another way",
    ),
    "a loop without end": (SUMS.replace('group["lr"] * p', "sum([1 for _ in range(100000)]) * p"), "is not understood"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_another_rule_is_refused(tmp_path: Path, form: str):
    source, reason = REFUSED[form]
    given = "net.parameters(), rate=3e-3" if "rate" in source.split("super")[0] else "net.parameters()"
    with pytest.raises(UsageError, match=reason):
        candidate_here(tmp_path, "torch_optimizer", program(source, f"Own({given})"))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("def other(net):\n    return Own(net.parameters())\n", "more than one call makes an object of Own"),
        ("def is_own(optimizer):\n    return isinstance(optimizer, Own)\n", "Own is used for something else"),
        ('def pace(optimizer, p):\n    return optimizer.state[p]["sum"]\n', "may be what Own at train.py:8 keeps"),
    ],
)
def test_more_is_asked_of_the_class(tmp_path: Path, more: str, reason: str):
    with pytest.raises(UsageError, match=reason):
        candidate_here(tmp_path, "torch_optimizer", program(SUMS, "Own(net.parameters())") + "\n\n" + more)


def test_a_method_of_its_own_is_called(tmp_path: Path):
    source = SUMS + "\n    def pace(self):\n        return 1\n"
    with pytest.raises(UsageError, match=r"`optimizer.pace` may be Own at train.py:8's own"):
        more = "\n\ndef shown(optimizer):\n    return optimizer.pace()\n"
        candidate_here(tmp_path, "torch_optimizer", program(source, "Own(net.parameters())") + more)


def test_arguments_that_are_not_written_out(tmp_path: Path):
    with pytest.raises(UsageError, match="not all written out"):
        candidate_here(tmp_path, "torch_optimizer", program(SUMS, "Own(net.parameters(), **net.options)"))


def test_no_class_at_the_line(tmp_path: Path):
    with pytest.raises(UsageError, match="no optimizer written by hand"):
        candidate_here(tmp_path, "torch_optimizer", "def step(p):\n    p.sub_(p.grad)  # here\n")


def test_from_the_line_that_makes_it(tmp_path: Path):
    source = program(SUMS.replace("  # here", ""), "Own(net.parameters())").replace("parameters())\n", "parameters())  # here\n")
    assert added(candidate_here(tmp_path, "torch_optimizer", source)) == [
        "    return torch.optim.Adagrad(net.parameters(), lr=0.05)  # here"
    ]
