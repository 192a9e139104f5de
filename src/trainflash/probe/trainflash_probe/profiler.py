"""torch's own profiler over a few steps of an unmodified program: wait, warm up, record, write one trace per rank.

TRAINFLASH_PROFILE: JSON {"wait", "warmup", "active": steps; "shapes", "memory", "stacks": bool}. The traces stand in `profile/` of the run,
and appear whole.
"""

from __future__ import annotations

import json
import os
import sys

from . import own, process
from .environment import directory
from .guard import swallow
from .phases.loop import loop
from .phases.observer import Observer

FOLDER = "profile"
MOST_FILES = 1000
# What changes how a program computes on a device; values of other variables are nobody's business.
_SETTINGS = ("XLA_FLAGS", "CUDA_", "NCCL_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "OMP_", "MKL_", "HIP_", "HSA_", "RCCL_", "JAX_")
_NOT = ("TOKEN", "KEY", "SECRET", "PASSWORD", "_DIR", "_PATH", "_HOME", "_FILE")  # secrets, and places on this one machine


def observer(torch):
    """The observer that was asked for; None without a request."""
    asked = os.environ.get("TRAINFLASH_PROFILE")
    return Profiler(torch, json.loads(asked)) if asked else None


class Profiler(Observer):
    """Starts at the first step boundary, is over after wait + warmup + active steps, or with the program."""

    def __init__(self, torch, asked: dict) -> None:
        self._torch = torch
        self._asked = asked
        self._profile = None
        self._written = self._described = False
        self._boundaries = 0

    def on_boundary(self, step: int) -> None:
        if self._written:
            return
        if self._profile is None:
            self._start()
        else:
            self._profile.step()
        self._boundaries += 1
        if self._boundaries > self._asked["wait"] and not self._described and not self._written:
            self._described = True  # earlier the profiler takes no metadata
            self._profile.add_metadata_json("trainflash", json.dumps(self._provenance()))

    def on_exit(self) -> None:
        """The program ended inside the window: what was recorded is written."""
        if self._profile is not None and not self._written:
            self._profile.stop()

    def _start(self) -> None:
        profiler, asked = self._torch.profiler, self._asked
        self._profile = profiler.profile(
            schedule=profiler.schedule(wait=asked["wait"], warmup=asked["warmup"], active=asked["active"], repeat=1),
            on_trace_ready=self._write,
            record_shapes=asked["shapes"],
            profile_memory=asked["memory"],
            with_stack=asked["stacks"],
            with_modules=asked["stacks"],
        )
        self._profile.start()

    def _write(self, profile) -> None:
        self._written = True
        folder = os.path.join(directory, FOLDER)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"rank{process.rank()}.{os.getpid()}.pt.trace.json")
        beside = os.path.join(folder, f".{os.getpid()}.json")
        try:
            profile.export_chrome_trace(beside)
            os.replace(beside, path)
        except Exception as error:
            swallow("profile", error)
        loop.remove(self.on_boundary)

    def _provenance(self) -> dict:
        environment = {
            name: value[:1000]
            for name, value in os.environ.items()
            if name.startswith(_SETTINGS) and not any(word in name for word in _NOT)
        }
        return {
            "torch": self._torch.__version__,
            "python": sys.version.split()[0],
            "environment": dict(sorted(environment.items())),
            "window": self._asked,
            "rank": process.rank(),
            "world_size": process.world_size(),
            "own": _own_files(),
        }


def _own_files() -> list[str]:
    """The owner's files that are loaded, as torch's tracer names them: without the longest entry of `sys.path`."""
    entries = sorted((os.path.join(os.path.abspath(entry), "") for entry in sys.path), key=len, reverse=True)
    found = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and own.inside(file) is not None:
            path = own.absolute(file)
            found.add(next((path[len(entry) :] for entry in entries if path.startswith(entry)), path))
    return sorted(found)[:MOST_FILES]
