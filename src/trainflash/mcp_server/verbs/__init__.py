"""The verbs of the command line as functions with plain arguments: each returns the document that the command prints with `--json`.

The first parameter is the `Call`; the others become the tool's arguments, described by their annotations (see `verbs.arguments`). They run
in a worker or a thread of the server, and import what they need when they are called.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from trainflash.errors import TrainFlashError, UsageError
from trainflash.mcp_server.roots import Roots
from trainflash.mcp_server.verbs import diagnose, gate, log, optimize, profile, sandbox, verify
from trainflash.mcp_server.verbs.arguments import Call, OnProgress, Verb

VERBS: tuple[Verb, ...] = (*sandbox.VERBS, *diagnose.VERBS, *optimize.VERBS, *verify.VERBS, *profile.VERBS, *gate.VERBS, *log.VERBS)


def answer(name: str, arguments: dict[str, Any], roots: Roots, on_progress: OnProgress) -> dict[str, Any]:
    """What the verb called `name` answers; every error becomes a document too, as on the command line."""
    verb = next(each for each in VERBS if each.name == name)
    return guarded(name, lambda: verb.function(Call(roots, on_progress), **arguments))


def guarded(name: str, do: Any) -> dict[str, Any]:
    """`do()`, or the document that says why not; a fault of ours is told on standard error, and only that it happened to the client."""
    from trainflash.workflow import answers

    try:
        return do()
    except TrainFlashError as problem:
        return answers.error(name, problem)
    except OSError as bad:
        where = f"{bad.filename}: " if bad.filename else ""
        return answers.error(name, UsageError(f"{where}{bad.strerror or bad}", "make room or give access there, then ask again"))
    except Exception:
        traceback.print_exc(file=sys.stderr)
        fault = TrainFlashError("a fault of trainflash itself; its standard error has the traceback", "report it, or use the command line")
        return answers.error(name, fault)
