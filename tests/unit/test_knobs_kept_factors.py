"""A matrix that never changes is factorised once, where it is solved with again and again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from knob_scenes import finding, program, repeated, summary

from trainflash.errors import UsageError

DIFFUSION = """import torch
from torch import nn


class Implicit(nn.Module):
    def __init__(self, laplacian):
        super().__init__()
        self.register_buffer("system", torch.eye(4) - 0.1 * laplacian)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, u):
        return torch.linalg.solve(self.system, u.T).T * self.scale


net = Implicit(torch.diag(torch.arange(4.0)))
given = torch.arange(8.0).reshape(2, 4).requires_grad_()
out = net(net(given))
out.sum().backward()
"""


def kept(tmp_path, source):
    made = program(tmp_path, train_py=source)
    at = made.line("train.py", "solve(")
    work = replace(repeated(at, "Implicit.forward"), during="operators", hashable=False, result_bytes=0)
    return made, made.propose("memoize_function", summary(repeated=(work,)), findings=[finding("repeated_work", at)])


def run(text):
    namespace = {"__name__": "train"}
    exec(compile(text, "train.py", "exec"), namespace)
    return namespace


def test_the_factors_are_kept_and_results_and_gradients_are_the_same(tmp_path):
    made, candidate = kept(tmp_path, DIFFUSION)
    assert candidate.risk == "close"
    made.apply(candidate)
    after = made.read("train.py")
    above = (
        "import functools\nimport torch\nfrom torch import nn\n\n\n_lu_factor = functools.cache(torch.linalg.lu_factor)\n\n\nclass Implicit"
    )
    assert after == DIFFUSION.replace("import torch\nfrom torch import nn\n\n\nclass Implicit", above).replace(
        "torch.linalg.solve(self.system, u.T)", "torch.linalg.lu_solve(*_lu_factor(self.system), u.T)"
    )
    old, new = run(DIFFUSION), run(after)
    assert new["_lu_factor"].cache_info().misses == 1
    for name in ("out", "given"):
        left, right = (each[name] if name == "out" else each[name].grad for each in (old, new))
        assert left.abs().sum() > 0 and (left - right).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("u.T).T", "u.unsqueeze(-1)).squeeze(-1)", "lu_solve(*_lu_factor(self.system), u.unsqueeze(-1)).squeeze(-1) * self.scale"),
        ("u.T).T", "u[..., None])[..., 0]", "lu_solve(*_lu_factor(self.system), u[..., None])[..., 0] * self.scale"),
        ("u.T).T", "u, left=False)", None),
        ("u.T).T", "u.unsqueeze(0))", None),
    ],
)
def test_only_what_the_source_shows_to_be_a_matrix_is_solved_for(tmp_path, old, new, line):
    source = DIFFUSION.replace(old, new)
    if line is None:
        with pytest.raises(UsageError, match="is no vector"):
            kept(tmp_path, source)
    else:
        made, candidate = kept(tmp_path, source)
        made.apply(candidate)
        assert f"        return torch.linalg.{line}\n" in made.read("train.py")
        assert (run(made.read("train.py"))["out"] - run(source)["out"]).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("self.scale = nn.Parameter(torch.ones(4))", "self.scale = 1.0\n        self.system = nn.Parameter(self.system)", "another matrix"),
        ("        return", "        self.system = self.system * 1.01\n        return", "another matrix"),
        ("        return", "        self.system.mul_(1.01)\n        return", "another matrix"),
        ("self.system, u.T", "self.system * self.scale, u.T", "another matrix"),
        ("(self.system, u.T)", "(*(self.system, u.T))", "not written out"),
        ("torch.eye(4) - 0.1 * laplacian)", "torch.stack([torch.eye(4)] * 4))", "is no vector"),
        ("torch.eye(4) - 0.1 * laplacian)", "laplacian)", "is no vector"),
        ("out.sum", "with torch.inference_mode():\n    net(given)\nout.sum", "made under inference_mode"),
    ],
)
def test_a_matrix_that_may_change_is_not(tmp_path, old, new, reason):
    assert old in DIFFUSION
    with pytest.raises(UsageError, match=reason):
        kept(tmp_path, DIFFUSION.replace(old, new))
