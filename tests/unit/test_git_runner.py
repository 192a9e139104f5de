"""Git in a checkout: no hook of the owner's runs, and no index is written."""

from __future__ import annotations

import os
import subprocess

from trainflash.fidelity.reuse import git
from trainflash.gate.machines.checkout import is_dirty


def test_no_hook_runs_and_the_index_stays_as_it_is(tmp_path):
    def plain(*words: str) -> None:
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)

    plain("init", "--quiet")
    (tmp_path / "train.py").write_text("pass\n")
    plain("add", ".")
    plain("commit", "-qm", "first")
    told = tmp_path.parent / "hook-ran"
    for name in ("post-index-change", "fsmonitor"):
        hook = tmp_path / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {told}\n")
        hook.chmod(0o755)
    plain("config", "core.fsmonitor", str(tmp_path / ".git" / "hooks" / "fsmonitor"))
    os.utime(tmp_path / "train.py", ns=(0, 0))  # what would make `git status` refresh the index
    before = (tmp_path / ".git" / "index").read_bytes()
    assert git(str(tmp_path), "status", "--porcelain").out == b""
    assert is_dirty(tmp_path) is False
    assert not told.exists() and (tmp_path / ".git" / "index").read_bytes() == before
    subprocess.run(["git", "-C", tmp_path, "status"], check=True, capture_output=True)
    assert told.exists(), "the hook would have run"
