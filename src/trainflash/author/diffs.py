"""Changed files as a unified diff that `git apply` takes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from trainflash import git_runner
from trainflash.view import Change

_PLAIN = ("core.attributesFile=/dev/null", "core.quotePath=true", "diff.noprefix=false", "core.autocrlf=false", "color.ui=false")
_OPTIONS = ("--no-index", "--no-prefix", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--unified=3")


def unified(changes: Iterable[Change]) -> str:
    """The diff of `changes`, which are texts; permissions do not count. Paths as in `changes`."""
    with tempfile.TemporaryDirectory(prefix="trainflash-diff-") as folder:
        for side in ("a", "b"):
            Path(folder, side).mkdir()
        for change in changes:
            for side, content in (("a", change.before), ("b", change.after)):
                if content is not None:
                    path = Path(folder, side, change.path)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
        answer = git_runner.execute(["diff", *_OPTIONS, "a", "b"], folder, settings=_PLAIN)
    if answer.code not in (0, 1):  # 1: they differ
        answer.or_raise("diff", "install git 2.30 or newer")
    return answer.out.decode("utf-8", "surrogateescape")
