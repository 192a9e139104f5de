"""What a user names (a file, a directory, a W&B artifact or run) → `Profile`.

    load(Request(trace_file=(Path("rank0.pt.trace.json.gz"),)))

Raises `UsageError` (code 2, one line) for what is empty, missing, no trace, or out of reach. A trace that is damaged inside gives what is
readable; its `quality` says what is not.
"""

from __future__ import annotations

from trainflash.profile.sources.asked import Request
from trainflash.profile.sources.request import load

__all__ = ["Request", "load"]
