"""Attention written by hand in many forms: the one call that replaces it gives the same numbers and the same gradients."""

from __future__ import annotations

import pytest
import torch
from knob_runs import applied, candidate_here

HEAD = "import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
FORMS = {
    "softmax written out": """
def look(q, k, v, bias):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores + bias
    scores = scores - scores.amax(dim=-1, keepdim=True)
    weights = scores.exp()
    weights = weights / weights.sum(dim=-1, keepdim=True)  # here
    return weights @ v
""",
    "its parts in other words": """
def look(q, k, v, bias):
    scores = torch.matmul(q, k.mT) * q.size(-1) ** -0.5
    top = torch.max(scores, -1, keepdim=True)[0].detach()
    raised = torch.exp(scores - top)  # here
    weights = raised / torch.sum(raised, -1, True)
    return torch.matmul(weights, v)
""",
    "one maximum of all": """
def look(q, k, v, bias):
    scores = q.matmul(k.permute(0, 1, 3, 2))
    weights = (scores - scores.max()).exp()
    weights = weights / weights.sum(-1, keepdim=True)  # here
    return weights.matmul(v)
""",
    "without a maximum": """
def look(q, k, v, bias):
    weights = torch.exp(0.3 * (q @ k.mT))
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ v  # here
""",
    "heads behind the positions": """
def look(q, k, v, bias):
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    energy = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    weight = torch.exp(energy - energy.amax(-1, keepdim=True))
    weight = weight / weight.sum(-1, keepdim=True)  # here
    out = torch.einsum("bhqk,bkhd->bqhd", weight, v)
    return out.transpose(1, 2)
""",
    "letters in an order of their own": """
def look(q, k, v, bias):
    q, k = q.permute(3, 0, 1, 2), k.permute(1, 2, 3, 0)
    share = torch.einsum("dbhq,hkdb->bhqk", q, k).softmax(dim=-1)  # here
    return torch.einsum("bhkd,bhqk->dqbh", v, share).permute(2, 3, 1, 0)
""",
    "a bias and a mask": """
def look(q, k, v, bias):
    later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    scores = bias + q @ k.mT
    scores = scores.masked_fill(later, float("-inf"))
    return F.softmax(scores, -1) @ v  # here
""",
    "a bias taken away, and a mask": """
def look(q, k, v, bias):
    scores = (q @ k.mT).div(math.sqrt(q.shape[-1])) - bias * 2
    return scores.masked_fill(torch.triu(torch.ones(6, 6), diagonal=1).bool(), -torch.inf).softmax(3) @ v  # here
""",
    "a bias that is taken away": """
def look(q, k, v, bias):
    return torch.softmax(q @ k.transpose(2, 3) - bias, dim=-1) @ v  # here
""",
    "chosen by what is seen": """
def look(q, k, v, bias):
    seen = torch.ones(6, 6, dtype=torch.bool).tril()
    scores = torch.where(seen, q @ k.mT * 0.4, torch.tensor(float("-inf")))
    return scores.softmax(dim=-1) @ v  # here
""",
    "chosen by what is hidden, with a bias": """
def look(q, k, v, bias):
    later = torch.ones(6, 6, dtype=torch.bool).triu(1)
    scores = q @ k.mT + bias
    return torch.where(later, -torch.inf, scores).softmax(dim=-1) @ v  # here
""",
    "chosen by what is seen, with a bias": """
def look(q, k, v, bias):
    seen = bias.detach() > -1
    scores = torch.where(seen, q @ k.mT + bias, float("-inf"))
    return scores.softmax(dim=-1) @ v  # here
""",
    "the lowest number of the format": """
def look(q, k, v, bias):
    hidden = torch.arange(6)[:, None] > torch.arange(6)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1) @ v  # here
""",
    "a mask that hides a whole row": """
def look(q, k, v, bias):
    valid = torch.ones(2, 6, dtype=torch.bool)
    valid[1] = False
    p = torch.where(valid[:, None, None, :], torch.einsum("bhqd,bhkd->bhqk", q, k), -1e18).softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", p, v)  # here
""",
    "a scale of the sizes that heads are cut to": """
def attend(q, k, v, heads):
    b, n, d = q.shape
    q, k, v = (t.reshape(b, n, heads, d // heads) for t in (q, k, v))
    scores = torch.einsum("bnhd,bmhd->bhnm", q, k) / (d // heads) ** 0.5
    weights = torch.softmax(scores, dim=-1)
    out = torch.einsum("bhnm,bmhd->bnhd", weights, v)  # here
    return out.reshape(b, n, d)


def look(q, k, v, bias):
    return attend(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), 2)
""",
    "keys that lie turned already": """
def look(q, k, v, bias):
    turned = k.transpose(2, 3).contiguous()
    return torch.softmax((q @ turned).mul(0.2), dim=3) @ v  # here
""",
    "a bias where one is given": """
def look(q, k, v, bias, other=None):
    scores = torch.matmul(q, k.transpose(-1, -2))
    scores = scores / math.sqrt(q.size(-1))
    if bias is not None:
        scores = scores + bias
    weights = torch.softmax(scores, dim=-1)  # here
    return weights @ v
""",
    "a mask where one is given": """
def look(q, k, v, bias, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return torch.softmax(scores, dim=-1) @ v  # here
""",
    "a mask under a switch": """
def look(q, k, v, bias, late=True):
    later = torch.ones(6, 6, dtype=torch.bool).triu(1)
    scores = q @ k.mT
    if late:
        scores = torch.where(later, torch.finfo(scores.dtype).min, scores)
    return torch.softmax(scores, dim=-1) @ v  # here
""",
    "assignments with operators": """
def look(q, k, v, bias):
    scores = q @ k.mT
    scores *= 0.3
    scores -= bias
    weights = scores.softmax(-1)  # here
    return weights @ v
""",
    "a bias added in place where one is given": """
def look(q, k, v, bias):
    scores = q @ k.mT
    scores /= math.sqrt(q.shape[-1])
    if bias is not None:
        scores += bias
    return scores.softmax(-1) @ v  # here
""",
    "a buffer of what is seen, for all heads": """
class Look(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones(9, 9)).view(1, 1, 9, 9))

    def forward(self, q, k, v, bias):
        T = q.size(-2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)  # here
        return att @ v


look = Look()
""",
    "a corner of what is seen, turned round": """
class Look(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.ones(9, 9, dtype=torch.bool).tril(), persistent=False)

    def forward(self, q, k, v, bias):
        steps = q.shape[2]
        weights = q @ k.mT * k.shape[-1] ** -0.5
        weights = weights.masked_fill(~self.seen[:steps, :steps], float("-inf"))
        weights = torch.exp(weights - weights.amax(dim=-1, keepdim=True))
        return (weights / weights.sum(dim=-1, keepdim=True)) @ v  # here


look = Look()
""",
    "a softmax of the module's own": """
class Look(nn.Module):
    def __init__(self):
        super().__init__()
        self.share = nn.Softmax(dim=-1)
        self.size = 8

    def forward(self, q, k, v, bias):
        scores = 1 / math.sqrt(self.size) * q @ torch.transpose(k, -1, -2)
        weights = self.share(scores + bias)  # here
        return weights @ v


look = Look()
""",
}

FLAT = {  # tensors of three dimensions; masks of two, three and of one that stretches
    "no mask": """
def look(q, k, v, bias):
    return torch.softmax(q @ k.transpose(1, 2) / 2.5, dim=2) @ v  # here
""",
    "a mask for each pair": """
def look(q, k, v, bias):
    scores = torch.bmm(q, k.mT).masked_fill(torch.eye(6, dtype=torch.bool), float("-inf"))
    return torch.bmm(scores.softmax(-1), v)  # here
""",
    "a mask of keys": """
def look(q, k, v, bias):
    seen = torch.arange(6)[None, None, :] < torch.tensor([6, 4])[:, None, None]
    scores = torch.where(seen, torch.einsum("bqd,bkd->bqk", q, k), -torch.inf)
    return torch.einsum("bqk,bkd->bqd", torch.softmax(scores, dim=-1), v)  # here
""",
    "a bias that is given to what calls give": """
def look(q, k, v, bias):
    scores = q.tanh() @ k.sin().mT
    if bias is not None:
        scores = scores - bias
    return torch.softmax(scores, -1) @ v  # here
""",
    "causal": """
def look(q, k, v, bias):
    scores = q @ k.mT * q.shape[-1] ** -0.5
    scores = scores.masked_fill(torch.triu(torch.ones_like(scores), 1).bool(), -1e9)
    return torch.softmax(scores, -1) @ v  # here
""",
}


def outcome(source, bias=True, heads=(3,), learned=True):
    """What the program's attention gives, with a bias or None for it, and the gradients of all that it was given."""
    space: dict = {}
    exec(compile(source, "train.py", "exec"), space)
    draw = torch.Generator().manual_seed(3)
    given = [torch.randn(2, *heads, 6, 8, generator=draw, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    third = torch.randn(*(heads or (2,)), 6, 6, generator=draw, dtype=torch.float64, requires_grad=learned) if bias else None
    made = space["look"](*given, third)
    made.square().sum().backward()
    return [made, *(each.grad for each in (*given, third) if each is not None and each.grad is not None)]


@pytest.mark.parametrize("form", FORMS)
def test_the_one_call_computes_the_same(tmp_path, form):
    source = HEAD + FORMS[form].lstrip("\n")
    change = candidate_here(tmp_path, "fused_attention", source)
    changed = applied(tmp_path, change.diff)["train.py"]
    assert "scaled_dot_product_attention" in changed and "softmax(" not in changed and ".sum(" not in changed
    before, after = outcome(source), outcome(changed)
    if form == "a mask that hides a whole row":  # its gradient was cut off; the candidate says so
        assert "pass on its gradient" in change.why and change.risk == "numerics"
        before, after = before[:1], after[:1]
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", FLAT)
def test_three_dimensions_get_one_more_for_the_fused_kernel(tmp_path, form):
    source = HEAD + FLAT[form].lstrip("\n")
    changed = applied(tmp_path, candidate_here(tmp_path, "fused_attention", source, attention__shape=(2, 6, 6)).diff)["train.py"]
    for one, other in zip(outcome(source, heads=()), outcome(changed, heads=()), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profile:
        outcome(changed, heads=(), learned=False)  # no kernel learns a bias
    assert any("flash_attention" in event.key for event in profile.key_averages())


@pytest.mark.parametrize("form", [form for form in FORMS if "is given" in form])
def test_the_one_call_computes_the_same_where_none_is_given(tmp_path, form):
    source = HEAD + FORMS[form].lstrip("\n")
    changed = applied(tmp_path, candidate_here(tmp_path, "fused_attention", source).diff)["train.py"]
    for one, other in zip(outcome(source, bias=False), outcome(changed, bias=False), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
