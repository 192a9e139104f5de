"""Worktrees of the owner's current state: create, inspect, change, discard. The original is only read.

A sandbox holds two git worktrees, `baseline/` (the owner's state, never edited) and `worktree/` (what experiments change), beside
everything that runs and reports write.
"""

from trainflash.sandbox.history import (
    Status,
    changed_files,
    checkout,
    commit_diff,
    commit_nothing,
    commit_worktree,
    content,
    diff,
    dirty,
    drifted,
    head,
    original_changes,
    project_in,
    status,
)
from trainflash.sandbox.lifecycle import create, discard, hold, load, newest, state_folder

__all__ = [
    "Status",
    "changed_files",
    "checkout",
    "commit_diff",
    "commit_nothing",
    "commit_worktree",
    "content",
    "create",
    "diff",
    "dirty",
    "discard",
    "drifted",
    "head",
    "hold",
    "load",
    "newest",
    "original_changes",
    "project_in",
    "state_folder",
    "status",
]
