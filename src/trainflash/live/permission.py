"""Why stacks of a process could not be read, and the way out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trainflash.schema.live import Lack
from trainflash.telemetry.reading import HOST, text

STACKS = "stacks of the program"
DEEPEST = 4096  # py-spy 0.4: it reads no deeper stack
_SYS_PTRACE = 1 << 19


def no_spy() -> Lack:
    """py-spy is not installed."""
    return Lack(STACKS, "py-spy was not found beside trainflash or on PATH", f"{sys.executable} -m pip install 'py-spy>=0.4,<0.5'")


def unread(pid: int, lost: int, samples: int) -> Lack:
    """py-spy read some stacks and lost others."""
    return Lack(
        STACKS,
        f"py-spy lost {lost} of {lost + samples} stacks of process {pid}: they changed meanwhile or were deeper than {DEEPEST:,} frames",
        "take the shares as those of the stacks that it could read; watch longer with --seconds",
    )


def refused(pid: int, said: str, root: Path = HOST, platform: str = sys.platform, uid: int | None = None) -> Lack:
    """py-spy answered `said` instead of stacks."""
    again = f"trainflash diagnose --pid {pid}"
    denied = "permission denied" in said.lower() or "not permitted" in said.lower()
    if not denied:
        mend = f"check that its Python is CPython 3.8 to 3.14 and recurses no deeper than {DEEPEST:,} frames; the rest stands"
        return Lack(STACKS, f"py-spy could not read process {pid}: {said}", mend)
    if platform == "darwin":
        return Lack(STACKS, "macOS lets only root read the memory of another process", f"sudo {again}")
    scope = text(root / "proc/sys/kernel/yama/ptrace_scope")
    user = os.geteuid() if uid is None else uid
    if scope == "3":
        return Lack(
            STACKS, "kernel.yama.ptrace_scope is 3: nobody may read another process", "set kernel.yama.ptrace_scope=1 and boot again"
        )
    if user == 0 and not _may_trace(root):
        return Lack(
            STACKS,
            "this container lacks the capability SYS_PTRACE",
            "start it with `--cap-add SYS_PTRACE` (Kubernetes: securityContext.capabilities.add: [SYS_PTRACE])",
        )
    if scope in ("1", "2"):
        switch = f", or once: `sudo sysctl kernel.yama.ptrace_scope=0`{_in_container(root)}" if scope == "1" else _in_container(root)
        return Lack(STACKS, f"kernel.yama.ptrace_scope is {scope}: only root may read another process", f"sudo {again}{switch}")
    return Lack(STACKS, f"the kernel does not let user {user} read process {pid}", f"sudo {again}{_in_container(root)}")


def _may_trace(root: Path) -> bool:
    for line in (text(root / "proc/self/status") or "").splitlines():
        name, _, mask = line.partition(":")
        if name == "CapEff":
            return bool(int(mask, 16) & _SYS_PTRACE)
    return True


def _in_container(root: Path) -> str:
    inside = (root / ".dockerenv").exists() or (root / "run/.containerenv").exists()
    return "; in a container also `--cap-add SYS_PTRACE`" if inside else ""
