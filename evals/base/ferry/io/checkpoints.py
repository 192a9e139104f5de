"""Checkpoints: written beside and moved into place, the newest few kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch


class CheckpointStore:
    def __init__(self, folder: Path, keep: int) -> None:
        self.folder = folder
        self.keep = max(1, keep)
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, step: int, state: dict[str, Any]) -> Path:
        path = self.folder / f"step-{step:06d}.pt"
        self._write(path, state)
        for old in self.paths()[: -self.keep]:
            old.unlink(missing_ok=True)
        return path

    def save_final(self, state: dict[str, Any]) -> Path:
        path = self.folder / "final.pt"
        self._write(path, state)
        return path

    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("step-*.pt"))

    def latest(self) -> Path | None:
        final = self.folder / "final.pt"
        return final if final.is_file() else (self.paths() or [None])[-1]

    @staticmethod
    def _write(path: Path, state: dict[str, Any]) -> None:
        beside = path.with_suffix(".tmp")
        torch.save(state, beside)
        os.replace(beside, path)


def load_checkpoint(path: Path) -> dict[str, Any]:
    return torch.load(path, map_location="cpu", weights_only=True)
