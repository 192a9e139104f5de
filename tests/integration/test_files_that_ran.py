"""A diagnosis knows which of the owner's files ran, also those that were imported late, and no others."""

from __future__ import annotations

from probed import diagnosed

TRAIN = """
import importlib
import json

import torch
from models import net

model = net.make()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
importlib.import_module("late").report(model)
"""
FILES = {
    "models/__init__.py": "", "models/net.py": "import torch\n\ndef make():\n    return torch.nn.Linear(4, 1)\n",
    "models/other.py": "raise SystemExit(1)\n", "late.py": "def report(model):\n    print(type(model).__name__)\n",
}  # fmt: skip


def test_the_files_that_ran_are_known(tmp_path):
    (tmp_path / "models").mkdir()
    for name, text in {**FILES, "train.py": TRAIN}.items():
        (tmp_path / name).write_text(text)
    found = diagnosed(tmp_path, tmp_path / "train.py")
    assert sorted(found.imported) == ["late.py", "models/__init__.py", "models/net.py", "train.py"]
