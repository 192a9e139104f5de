"""Whether a line of a loop runs in every step."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading.python_source import PythonFile


def guarded_in(file: PythonFile, node: cst.CSTNode, loop: cst.CSTNode) -> bool:
    """Whether a condition inside the loop guards `node`."""
    below = node
    for up in file.ancestors(node):
        if up is loop:
            return below is not getattr(loop, "body", None) and isinstance(below, cst.Else)
        if isinstance(up, cst.If) and below is not up.test:
            return True
        below = up
    return True
