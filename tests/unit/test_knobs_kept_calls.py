"""Results of library calls whose arguments never change are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from knob_scenes import finding, program, repeated, summary

from trainflash.errors import UsageError

MESH = """import torch
from torch import nn


class Spectral(nn.Module):
    def __init__(self, laplacian, order):
        super().__init__()
        self.register_buffer("laplacian", laplacian)
        self.order = order
        self.mix = nn.Parameter(torch.ones(4, 4))

    def forward(self, h):
        values, vectors = torch.linalg.eigh(self.laplacian)
        return vectors @ (values[:, None] * h)


def main():
    Spectral(torch.eye(4), 3)(torch.ones(4, 2))


main()
"""
CALL = "torch.linalg.eigh(self.laplacian)"


def kept(tmp_path, source):
    made = program(tmp_path, train_py=source)
    at = made.line("train.py", "# here" if "# here" in source else "linalg.eigh(")
    work = replace(repeated(at, "Spectral.forward"), during="operators", hashable=False, result_bytes=0)
    return made, made.propose("memoize_function", summary(repeated=(work,)), findings=[finding("repeated_work", at)])


def test_a_call_on_what_the_object_keeps_is_made_once(tmp_path):
    made, candidate = kept(tmp_path, MESH)
    made.apply(candidate)
    above = "import functools\nimport torch\nfrom torch import nn\n\n\n_eigh = functools.cache(torch.linalg.eigh)\n\n\nclass Spectral"
    assert made.read("train.py") == MESH.replace("import torch\nfrom torch import nn\n\n\nclass Spectral", above).replace(
        "torch.linalg.eigh(self", "_eigh(self"
    )
    namespace = {"__name__": "train"}
    exec(compile(made.read("train.py"), "train.py", "exec"), namespace)
    assert namespace["_eigh"].cache_info().misses == 1
    with pytest.raises(UsageError, match="in no function and no call"):
        kept(tmp_path, made.read("train.py").replace("_eigh(self.laplacian)", "_eigh(self.laplacian)  # here"))


def test_a_number_of_the_object_may_be_of_two_types(tmp_path):
    source = MESH.replace("self.mix = nn", "self.scale = order\n        self.mix = nn").replace(
        CALL, "torch.full((4,), self.scale), h  # here"
    )
    made, candidate = kept(tmp_path, source)
    made.apply(candidate)
    assert "\n_full = functools.lru_cache(maxsize=None, typed=True)(torch.full)\n" in made.read("train.py")


def test_a_name_of_the_module_that_is_set_once_will_do(tmp_path):
    source = """import torch

POINTS = torch.rand(9, 2)


# What the field
# is at x.
def field(x):
    return torch.cdist(POINTS, POINTS, 2.0) @ x  # here
"""
    made, candidate = kept(tmp_path, source)
    made.apply(candidate)
    assert "_cdist = functools.cache(torch.cdist)\n\n\n# What the field\n# is at x.\ndef field" in made.read("train.py")
    assert "    return _cdist(POINTS, POINTS, 2.0) @ x  # here" in made.read("train.py")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (CALL, "torch.linalg.eigh(self.laplacian + 1)  # here", "may be another object"),
        (CALL, "torch.linalg.eigh(h)  # here", "may be another object"),
        (CALL, "torch.linalg.eigh(self.mix)  # here", "may be another object"),
        (CALL, "torch.linalg.eigh(*self.laplacian)  # here", "may be another object"),
        ("    return vectors", "    vectors.mul_(2)\n        return vectors", "is changed at"),
        (CALL, "torch.linalg.eigh(self.laplacian)[1].mul_(2), 0  # here", "is changed at"),
        ("        return vectors @", "        first = vectors[0]\n        first += 1\n        return vectors @", "is changed at"),
        ("def main():\n", "def main():\n    net.laplacian = torch.ones(4, 4)\n", "may be another object"),
        ("def main():\n", "def main():\n    net.laplacian.add_(1)\n", "may be another object"),
        (CALL, "torch.normal(self.laplacian, 1.0)  # here", "in no function and no call"),
        (CALL, "self.mix.eigh(self.laplacian)  # here", "in no function and no call"),
    ],
)
def test_what_may_change_is_not_kept(tmp_path, old, new, said):
    assert old in MESH
    with pytest.raises(UsageError, match=said):
        kept(tmp_path, MESH.replace(old, new))


def test_a_name_that_is_changed_or_set_again_is_not_kept(tmp_path):
    source = "import torch\n\nPOINTS = torch.rand(9, 2)\n\n\ndef field(x):\n    return torch.cdist(POINTS, POINTS) @ x  # here\n"
    for number, extra in enumerate(("POINTS = POINTS + 1\n", "POINTS.add_(1)\n", "POINTS[0] = 1\n")):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(UsageError, match="may be another object"):
            kept(folder, source + "\n\n" + extra)
