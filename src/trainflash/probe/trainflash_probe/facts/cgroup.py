"""Files of the control group that this process belongs to, version 2 or 1."""

from __future__ import annotations

import os

UNIFIED = "/sys/fs/cgroup"
OF_CPU = "/sys/fs/cgroup/cpu"
OF_MEMORY = "/sys/fs/cgroup/memory"


def paths(root: str, controller: str) -> list:
    """The process's own group first, then the root of the mount (inside a container both may be the same)."""
    for line in (read("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if (controller in controllers.split(",")) if controller else not controllers:
            return [os.path.join(root, path.lstrip("/")), root]
    return [root]


def read(path: str):
    """The text of a small file without its ends; None where it cannot be read."""
    try:
        with open(path, encoding="utf-8") as text:
            return text.read().strip()
    except OSError:
        return None
