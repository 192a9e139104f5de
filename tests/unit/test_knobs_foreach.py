"""Loops over tensors that become operations on lists: the changed program computes the same to the bit, or the change is refused."""

from __future__ import annotations

import pytest
import torch
from knob_runs import applied, candidate_here

from trainflash.errors import UsageError
from trainflash.knobs.edits.foreach.operations import ALONE, NO_METHOD, WITH_ONE, WITH_TWO

HEAD = """import math

import torch
from torch import nn


def net(seed):
    torch.manual_seed(seed)
    made = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3, bias=False), nn.Linear(3, 2))
    made(torch.randn(6, 5)).square().mean().backward()
    made[2].weight.grad = None if seed == 3 else made[2].weight.grad
    return made


def state(*nets):
    return [(name, value.clone()) for each in nets for name, value in each.state_dict().items()]


"""
FORMS = {
    "an average of weights": """
@torch.no_grad()
def update(average, model, decay=0.99):
    for a, m in zip(average.parameters(), model.parameters()):
        a.mul_(decay).add_(m, alpha=1 - decay)  # here


def work():
    average, model = net(1), net(2)
    update(average, model)
    return state(average, model)
""",
    "Adam of one's own with lists": """
class Adam:
    def __init__(self, params, lr=1e-3, b1=0.9, b2=0.99, eps=1e-8):
        self.params = list(params)
        self.lr, self.b1, self.b2, self.eps, self.t = lr, b1, b2, eps, 0
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        self.t += 1
        for i, p in enumerate(self.params):
            self.m[i] = self.b1 * self.m[i] + (1 - self.b1) * p.grad  # here
            self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * p.grad ** 2
            m_hat = self.m[i] / (1 - self.b1 ** self.t)
            v_hat = self.v[i] / (1 - self.b2 ** self.t)
            p -= self.lr * m_hat / (v_hat.sqrt() + self.eps)


def work():
    model = net(1)
    adam = Adam(model.parameters())
    adam.step()
    adam.step()
    return state(model) + list(enumerate(adam.m)) + list(enumerate(adam.v))
""",
    "an entry of the turn before": """
def work():
    model = net(1)
    params = list(model.parameters())[:2]
    m = [torch.ones_like(p) for p in params]
    with torch.no_grad():
        for i, p in enumerate(params):
            m[i] = 0.9 * m[i] + m[i - 1].sum()  # here
            p -= 0.1 * m[i]
    return state(model) + list(enumerate(m))
""",
    "momentum under names": """
def work():
    model, speed = net(1), {}
    speed = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    for _ in range(2):
        with torch.no_grad():
            for name, p in model.named_parameters():
                speed[name] = 0.9 * speed[name] + p.grad  # here
                p -= 0.1 * speed[name]
    return state(model) + list(speed.items())
""",
    "data of a target network": """
def work():
    target, model, tau = net(1), net(2), 0.05
    for tp, p in zip(target.parameters(), model.parameters()):  # here
        tp.data.copy_(tau * p.data + (1.0 - tau) * tp.data)
    return state(target, model)
""",
    "data set anew": """
def work():
    target, model = net(1), net(2)
    for tp, p in zip(target.parameters(), model.parameters()):
        tp.data = tp.data * 0.9 + p.data * (1. - 0.9)  # here
    return state(target, model)
""",
    "some values of a state": """
def work():
    average, model = net(1), net(2)
    msd = model.state_dict()
    with torch.no_grad():
        for k, v in average.state_dict().items():
            if v.dtype.is_floating_point:
                # towards the model
                v *= 0.9
                v += (1.0 - 0.9) * msd[k].detach()  # here
    return state(average, model)
""",
    "values of two states": """
def work():
    average, model = net(1), net(2)
    for a, m in zip(average.state_dict().values(), model.state_dict().values()):
        if not a.is_floating_point():
            continue
        a.lerp_(m, 0.25)  # here
    return state(average)
""",
    "descent": """
def work():
    model, lr = net(1), 0.1
    with torch.no_grad():
        for p in model.parameters():  # here
            p -= lr * p.grad
            p.grad.zero_()
    return state(model), [p.grad.clone() for p in model.parameters()]
""",
    "descent, gradients let go": """
def work():
    model, lr = net(1), 0.1
    for p in model.parameters():  # here
        p.data.sub_(p.grad.data, alpha=lr)
        p.grad = None
    return state(model), [p.grad for p in model.parameters()]
""",
    "an optimizer": """
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg = state["exp_avg"]
                # decay
                p.mul_(1 - group["lr"] * group["weight_decay"])  # here
                update = exp_avg * beta1 + grad * (1 - beta1)
                p.add_(torch.sign(update), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)


def work():
    model = net(3)
    optimizer = Lion([{"params": model[0].parameters()}, {"params": model[2:].parameters(), "lr": 0.05}])
    for _ in range(3):
        optimizer.step()
    return state(model), [kept["exp_avg"].clone() for kept in optimizer.state.values()]
""",
    "an optimizer with options and a step count": """
class Own(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, b1=0.9, b2=0.99, eps=1e-8, weight_decay=0.1, clip=True):
        super().__init__(params, dict(lr=lr, b1=b1, b2=b2, eps=eps, weight_decay=weight_decay, clip=clip))

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:  # here
                if p.grad is None:
                    continue
                g = p.grad.data
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["m"] = torch.zeros_like(p.data)
                    state["v"] = torch.zeros_like(p.data)
                m, v = state["m"], state["v"]
                state["step"] += 1
                b1, b2 = group["b1"], group["b2"]
                if group["weight_decay"] != 0:
                    g = g.add(p.data, alpha=group["weight_decay"])
                elif group["clip"]:
                    g = g.clamp(-1, 1)
                m.mul_(b1).add_(g, alpha=1 - b1)
                v.mul_(b2).addcmul_(g, g, value=1 - b2)
                bias1 = 1 - b1 ** state["step"]
                bias2 = 1 - b2 ** state["step"]
                denom = v.div(bias2).sqrt() + group["eps"]
                p.data.addcdiv_(m / bias1, denom, value=-group["lr"])


def work():
    model = net(3)
    optimizer = Own([{"params": model[0].parameters()}, {"params": model[2:].parameters(), "weight_decay": 0.0}])
    for _ in range(3):
        optimizer.step()
    return state(model)
""",
    "a method that is called": """
class Average:
    def __init__(self, model, decay):
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.decay = decay

    def update(self, model):
        for name, p in model.named_parameters():
            if p.requires_grad:
                self.shadow[name].mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)


def work():
    model, other = net(1), net(2)
    average = Average(model, 0.5)
    average.update(other)  # here
    return [(name, value.clone()) for name, value in average.shadow.items()]
""",
    "kept under a key": """
def work():
    model, momentum = net(1), {}
    for _ in range(3):
        for name, p in model.named_parameters():
            if name not in momentum:
                momentum[name] = torch.zeros_like(p)
            momentum[name] = momentum[name] * 0.9 + p.grad  # here
            p.data.add_(momentum[name], alpha=-0.01)
    return state(model)
""",
    "counted, without gradients": """
def work():
    torch.manual_seed(4)
    params = [torch.randn(3, requires_grad=True) for _ in range(3)]
    grads = torch.autograd.grad(sum((i + 1) * p.square().sum() for i, p in enumerate(params)), params)
    moments = [torch.ones(3) for _ in params]
    for i in range(len(params)):
        with torch.no_grad():
            moments[i].mul_(0.9).add_(grads[i] ** 2)  # here
            params[i].data.sub_(0.1 * grads[i] / (moments[i].sqrt() + 1e-8))
    return [p.detach().clone() for p in params]
""",
    "two loops with the same names": """
def work():
    model, other = net(1), net(2)
    for p in model.parameters():
        d = p.data
        d.mul_(0.5)
    for p, o in zip(model.parameters(), other.parameters()):
        d = p.data * 0.5  # here
        d = d - o.data
        p.data.add_(d, alpha=0.1)
    return state(model)
""",
    "a trust ratio": """
def work():
    model, lr, b1, b2 = net(1), 0.1, 0.9, 0.99
    ms, vs = [torch.ones_like(p) for p in model.parameters()], [torch.ones_like(p) for p in model.parameters()]
    with torch.no_grad():
        for p, m, v in zip(model.parameters(), ms, vs):
            m.mul_(b1).add_(p.grad, alpha=1 - b1)
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            update = m / (v.sqrt() + 1e-6)
            ratio = (p.norm() / update.norm().clamp(min=1e-12)).clamp(0.01, max=10)  # here
            scale = torch.where(ratio > 1, ratio, 0.5 * ratio)
            p.sub_(lr * scale * update)
    return state(model)
""",
    "a method for each parameter": """
class Trust(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99)):
        super().__init__(params, dict(lr=lr, betas=betas))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)

    def _update(self, parameter, group):
        \"\"\"One parameter.\"\"\"
        # what is kept
        state, gradient = self.state[parameter], parameter.grad
        if not state:
            state["step"], state["mean"] = 0, torch.zeros_like(parameter)
        first, second = group["betas"]
        state["step"] += 1
        state["mean"].mul_(first).add_(gradient, alpha=1 - first)
        mean = state["mean"] / (1 - first ** state["step"])
        size, length = parameter.norm(), mean.norm()
        ratio = size / length.clamp(min=second)
        parameter.add_(mean * ratio, alpha=-group["lr"])  # here


def work():
    model = net(3)
    optimizer = Trust(model.parameters())
    for _ in range(3):
        optimizer.step()
    return state(model)
""",
    "a function for each parameter": """
def exists(value):
    return value is not None


def update_fn(p, grad, exp_avg, lr, wd, beta1, beta2):
    p.data.mul_(1.0 - lr * wd)
    update = exp_avg.clone().mul_(beta1).add(grad, alpha=1.0 - beta1).sign_()
    p.add_(update, alpha=-lr)
    exp_avg.mul_(beta2).add_(grad, alpha=1.0 - beta2)


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in filter(lambda p: exists(p.grad), group["params"]):
                grad, lr, wd, b1, b2, state = p.grad, group["lr"], group["weight_decay"], *group["betas"], self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg = state["exp_avg"]
                update_fn(p, grad, exp_avg, lr, wd, *group["betas"])  # here


def work():
    model = net(3)
    optimizer = Lion(model.parameters())
    for _ in range(3):
        optimizer.step()
    return state(model)
""",
    "a count that goes up in between": """
def work():
    model, states = net(1), {}
    for p in model.parameters():
        state = states.setdefault(p, {"step": 0, "m": torch.zeros_like(p)})
        p.data.mul_(0.99)
        state["step"] += 1
        state["m"].mul_(0.9).add_(p.grad, alpha=0.1)
        p.data.sub_(state["m"] * 0.1 / state["step"])  # here
    return state_of(model)


def state_of(model):
    return state(model)
""",
    "gradients set anew": """
def work():
    model, other = net(1), net(2)
    for p, q in zip(model.parameters(), other.parameters()):
        p.grad = p.grad * 0.5
        p.data.add_(p.grad.data)  # here
        q.data.sub_(q.grad)
        q.data.mul_(0.9)
    return state(model, other)
""",
    "gradients set anew under a condition": """
def work(wd=0.0):
    model = net(1)
    for p in model.parameters():
        if (wd):
            p.grad = p.grad + wd * p.data
        p.data.sub_(0.1 * p.grad)  # here
        p.data.mul_(0.9)
    return state(model)
""",
    "another rate in each turn": """
def work():
    model, lr = net(1), 0.5
    for p in model.parameters():
        lr = lr * 0.9
        p.data.mul_(0.9).sub_(lr * p.grad)  # here
        p.data.mul_(1.1)
    return state(model)
""",
    "layers without parameters": """
def work():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 2))
    for layer in model:
        for p in layer.parameters():
            p.data.fill_(2.0).mul_(0.5)
            p.data.mul_(0.5).add_(1.0)  # here
    return state(model)
""",
    "lists of different lengths": """
def work():
    torch.manual_seed(1)
    some = [torch.randn(3) for _ in range(4)]
    few = [torch.ones(3) for _ in range(3)]
    for x, w in zip(some, few):
        x.mul_(0.5)  # here
        x.sub_(w)
    return some
""",
    "the loop's own name is used behind it": """
def work():
    model = net(1)
    for p in model.parameters():
        p.data.mul_(0.5).add_(1.0)  # here
    return state(model), p.shape
""",
    "a scale that is a number or a tensor": """
def work():
    model = net(1)
    for p in model.parameters():
        scale = 1.0
        if p.ndim > 1:
            scale = p.norm()
        p.grad.mul_(scale)  # here
        p.grad.mul_(0.5).add_(p.data, alpha=0.1)
    return [p.grad.clone() for p in model.parameters()]
""",
    "one in which the tensor is taken away": """
def work():
    model = net(1)
    for p in model.parameters():
        d = 1.0 - p.data
        p.data.mul_(0.5).add_(d)  # here
    return state(model)
""",
    "the last one is used": """
def work():
    model = net(1)
    for p in model.parameters():
        d = p.grad.mul(0.5)
        p.data.sub_(d)  # here
        p.data.mul_(0.9)
    return state(model), d
""",
    "gradients scaled in place": """
def work():
    model = net(1)
    for p in model.parameters():
        p.grad.mul_(0.5).clamp_(-0.1, 0.1)  # here
        p.grad += 1e-4 * p.detach()
    return [p.grad.clone() for p in model.parameters()]
""",
}  # fmt: skip


def values(source: str):
    names: dict = {"__name__": "made"}
    exec(compile(source, "train.py", "exec"), names)
    return names["work"]()


def same(one, other) -> bool:
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


@pytest.mark.parametrize("form", FORMS)
def test_the_numbers_stay_the_same_to_the_bit(tmp_path, form):
    source = HEAD + FORMS[form]
    candidate = candidate_here(tmp_path, "foreach_operations", source)
    after = applied(tmp_path, candidate.diff)["train.py"]
    assert "_foreach_" in after and after.count("# towards the model") == source.count("# towards the model")
    assert same(values(source), values(after)), after


@pytest.mark.parametrize("form", ["an average of weights", "an optimizer"])
def test_a_second_application_finds_no_loop(tmp_path, form):
    candidate = candidate_here(tmp_path, "foreach_operations", HEAD + FORMS[form])
    after = applied(tmp_path, candidate.diff)["train.py"]
    with pytest.raises(UsageError):
        candidate_here(tmp_path, "foreach_operations", after)


REFUSED = {
    "a count of the object that each turn raises": (
        """
class Adam:
    def __init__(self, params):
        self.params, self.t = list(params), 0
        self.m = [torch.zeros_like(p) for p in self.params]

    def step(self):
        for i, p in enumerate(self.params):
            self.t += 1
            self.m[i] = 0.9 * self.m[i] + p.grad  # here
            p -= 0.1 * self.m[i] / (1 - 0.9 ** self.t)
""",
        "may be another one in each turn",
    ),
    "an entry that two turns share": (
        """
params = list(model.parameters())
m = [torch.ones_like(p) for p in params]
for i, p in enumerate(params):
    m[i // 2] += p.grad  # here
    p -= 0.1 * m[i // 2]
""",
        "may be what another turn has set",
    ),
    "random numbers": (
        """
for p in model.parameters():
    p.data.add_(torch.randn_like(p), alpha=lr)  # here
""",
        "may have an effect of its own",
    ),
    "each reads the one before": (
        """
for before, after in zip(layers[:-1], layers[1:]):
    after.weight.data.mul_(0.5).add_(before.weight.data)  # here
""",
        "may have a part in more than one turn",
    ),
    "a list that may name a tensor twice": (
        """
for p in [first, second, first]:
    p.mul_(0.5).add_(1.0)  # here
""",
        "gives each tensor once is not known",
    ),
    "rows that others may pick": (
        """
for edge in edges:
    heights[edge].mul_(0.5).add_(1.0)  # here
""",
        "is not understood",
    ),
    "one sum for all": (
        """
for p in model.parameters():
    total.add_(p.grad.square().sum())  # here
""",
        "is not understood",
    ),
    "shared weights of a state": (
        """
model.head.weight = model.embedding.weight
for k, v in average.state_dict().items():
    v *= 0.9
    v += 0.1 * msd[k]  # here
""",
        "gives each tensor once is not known",
    ),
    "lists put together": (
        """
for p in shared + head:
    p.mul_(0.5).add_(1.0)  # here
""",
        "gives each tensor once is not known",
    ),
    "layers that come again": (
        """
layers = [a, b, a]
for layer in layers:
    layer.weight.data.mul_(0.5).add_(1.0)  # here
""",
        "gives each tensor once is not known",
    ),
    "the neighbour": (
        """
for i in range(1, len(params)):
    params[i].add_(params[i - 1]).mul_(0.5)  # here
""",
        "holds what other turns change",
    ),
    "all of them in each turn": (
        """
for p in params:
    total = sum(q.square().sum() for q in params)
    p.div_(total).mul_(2.0)  # here
""",
        "holds what other turns change",
    ),
    "an attribute that turns change": (
        """
class Own:
    def update(self):
        for p in self.net.parameters():
            self.k += 1
            p.data.mul_(self.k).add_(1.0)  # here
""",
        "is not understood|may be another one in each turn",
    ),
    "methods of its own": (
        """
for b in boxes:
    one = b.sample_noise()
    two = b.sample_noise()
    b.weight.add_(one).mul_(0.5)  # here
    b.weight.add_(two)
""",
        ".",
    ),
    "floats": (
        """
for k, v in sums.items():
    v /= n  # here
    out[k] = v
""",
        "is not understood",
    ),
    "compiled by TorchScript": (
        """
@torch.jit.script
def update(xs: list[torch.Tensor], ys: list[torch.Tensor], c: float):
    for x, y in zip(xs, ys):
        x.mul_(c).add_(y)  # here
""",
        "TorchScript compiles the loop",
    ),
    "an error that is caught": (
        """
try:
    for p in model.parameters():
        p.data.mul_(0.5).sub_(p.grad)  # here
except TypeError:
    pass
""",
        "is caught",
    ),
    "a comment inside": (
        """
for p in model.parameters():
    p.data.mul_(
        0.5  # half
    ).sub_(p.grad)  # here
""",
        "a comment stands where",
    ),
    "a number that is shown": (
        """
for p in model.parameters():
    p.grad.mul_(0.5)
    print(p.grad.norm())  # here
""",
        "is not understood",
    ),
    "left in between": (
        """
def update(model):
    for p in model.parameters():
        p.grad.mul_(0.5).add_(1.0)  # here
        if p.grad.isnan().any():
            return
""",
        "may be its last one",
    ),
    "what the turn before left": (
        """
last = 0.0
for p in model.parameters():
    scale = last * 0.5
    d = p.grad.mul(scale)  # here
    p.data.sub_(d)
    last = d
""",
        "is what the turn before has left",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_turns_that_depend_on_each_other_stay(tmp_path, form):
    source, reason = REFUSED[form]
    with pytest.raises(UsageError, match=reason):
        candidate_here(tmp_path, "foreach_operations", "import torch\n" + source)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", sorted(ALONE | WITH_ONE | WITH_TWO))
def test_an_operation_on_a_list_is_the_operation_on_each(name, kind):
    """What the knob rests on: to the bit, on a CPU, in place and not."""
    torch.manual_seed(5)
    tensors = [[torch.rand(shape, dtype=kind) + 0.1 for shape in ((3,), (4, 5), ())] for _ in range(3)]
    more = [] if name in ALONE else [[0.25] * 3] if name in ("pow", "clamp_min", "clamp_max") else tensors[1:]
    more = ([*more[:1], [0.25] * 3] if name == "lerp" else more[:1]) if name in WITH_ONE else more
    given = [each[0] if isinstance(each[0], float) else each for each in more]
    one = getattr(torch, name)
    expected = [one(*turn) for turn in zip(tensors[0], *more, strict=True)]
    assert same(list(getattr(torch, f"_foreach_{name}")(tensors[0], *given)), expected)
    if name not in NO_METHOD:
        getattr(torch, f"_foreach_{name}_")(tensors[0], *given)
        assert same(tensors[0], expected)


@pytest.mark.parametrize(("elements", "device", "refused"), [(600_000, "cpu", True), (600_000, "cuda:0", False), (900, "cpu", False)])
def test_large_tensors_on_a_cpu_are_left_one_after_the_other(tmp_path, elements, device, refused):
    seen = {"device": device, "updates__tensors": 10, "updates__elements": 10 * elements}
    source = HEAD + FORMS["an optimizer"]
    if refused:
        with pytest.raises(UsageError, match="600,000 elements in the mean take longer"):
            candidate_here(tmp_path, "foreach_operations", source, **seen)
    else:
        assert candidate_here(tmp_path, "foreach_operations", source, **seen).diff
