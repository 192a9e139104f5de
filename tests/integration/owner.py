"""An owner with a project and a command line: a git repository, a training script, a private state folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SLOW_INPUT = '''
"""Fits a small network to points that a slow parser reads."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)


def parse(index):
    value = float(index)
    for power in range(30000):
        value = (value * 1.0001 + power) % 97.0
    return value


class Points(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        value = parse(index)
        return torch.full((8,), value / 97.0), torch.tensor([value / 50.0])


model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = DataLoader(Points(), batch_size=8, shuffle=True)
for epoch in range(40):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())
torch.save(model.state_dict(), "model.pt")
'''


@dataclass(frozen=True)
class Ran:
    """What one command left."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict:
        lines = self.out.strip().splitlines()
        assert len(lines) == 1, f"stdout is not one document: {self.out!r}; stderr: {self.err}"
        return json.loads(lines[0])


class User:
    """Types commands in `project`, with a home and a state folder of their own; `python` is the interpreter of these tests."""

    def __init__(self, home: Path, project: Path) -> None:
        self.project = project
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("TRAINFLASH", "GIT_"))},
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "OMP_NUM_THREADS": "1",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # as in an environment that is activated
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "trainflash", *arguments]

    def trainflash(self, *arguments: str, timeout: float = 280) -> Ran:
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=Owner", "-c", "user.email=owner@localhost")
        done = subprocess.run(["git", *identity, *arguments], cwd=self.project, capture_output=True, text=True, check=True)
        return done.stdout


def fingerprint(folder: Path) -> dict[str, tuple]:
    """Bytes, mode and modification time of everything below `folder`, our allowed traces in `.git` left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith((".git/objects", ".git/worktrees", ".git/refs/trainflash")) or name in {".git", ".git/refs"}:
            continue
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[name] = (status.st_mode, status.st_mtime_ns if path.is_file() else 0, content)
    return found
