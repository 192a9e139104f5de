"""Write-back over the protocol: the person is shown exactly one diff and asked by elicitation; without that nothing is written."""

import unicodedata
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp_types import CallToolResult, ToolAnnotations
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, Field

from trainflash.errors import ApprovalNeeded, Rejected, TrainFlashError, UsageError
from trainflash.mcp_server.roots import Roots
from trainflash.mcp_server.tools import result
from trainflash.mcp_server.verbs import guarded
from trainflash.mcp_server.verbs.arguments import Project, Sandbox
from trainflash.workflow.session import silent

SCREENS = 60_000  # characters; nobody reads a longer diff in a dialog
_PLAIN = "\n\t"


class Approve(BaseModel):
    """What the person answers."""

    approve: bool = Field(
        default=False, title="Write exactly this diff into the project", description="Nothing is written unless this is set."
    )


@dataclass(frozen=True)
class Shown:
    """What the person is asked about: one proposal. `problem`: why nobody is asked."""

    session: Any
    experiment: int | None
    digest: str = ""
    message: str = ""
    problem: TrainFlashError | None = None


Answer = ElicitationResult[Approve]
ASKED_IN_THE_ANSWER = "2026-07-28"  # from this version of the protocol on, the question is part of the call's own answer


def register(server: MCPServer, roots: Roots) -> None:
    """Add the tool `writeback`."""

    def look(project: str | None, sandbox: str | None, experiment: int | None) -> Shown:
        try:
            return _proposal(roots.session(project, sandbox, silent), experiment)
        except TrainFlashError as problem:
            return Shown(None, experiment, problem=problem)
        except OSError as bad:
            return Shown(None, experiment, problem=UsageError(f"{bad.filename}: {bad.strerror}", "give access there, then ask again"))

    def ask(shown: Annotated[Shown, Resolve(look)], context: Context) -> Elicit[Approve] | Approve:
        if shown.problem is not None or not _can_ask(context):
            return Approve(approve=False)
        return Elicit(shown.message, Approve)

    async def writeback(
        shown: Annotated[Shown, Resolve(look)],
        answer: Annotated[Answer, Resolve(ask)],
        context: Context,
        project: Annotated[str | None, Field(description=Project.__metadata__[0])] = None,
        sandbox: Annotated[str | None, Field(description=Sandbox.__metadata__[0])] = None,
        experiment: Annotated[
            int | None, Field(ge=1, description="This accepted experiment, with those it was built on. Default: all accepted ones.")
        ] = None,
    ) -> CallToolResult:
        """Write a proven change into the project, after the person at the client has approved exactly the diff shown to them.

        The person is asked by elicitation. A client that cannot ask changes nothing: the owner then runs `trainflash writeback`.
        """
        asked = _can_ask(context)
        return result(await anyio.to_thread.run_sync(lambda: guarded("writeback", lambda: _settle(shown, answer, asked))))

    hints = ToolAnnotations(title="Write an approved change into the project", read_only_hint=False, destructive_hint=True)
    server.add_tool(writeback, title=hints.title, annotations=hints)


def _proposal(session: Any, experiment: int | None) -> Shown:
    from trainflash.workflow import approving

    with session.locked():
        made = approving.propose(session, experiment)
    if not made.approvable:
        return Shown(session, experiment, made.digest, problem=Rejected(f"this cannot be approved: {made.reason}", "see the tool log"))
    if len(made.diff) > SCREENS:
        long = ApprovalNeeded(
            f"the diff has {len(made.diff)} characters, too many to be read in a dialog",
            f"the owner runs `trainflash writeback --sandbox {session.sandbox.directory}` on a terminal",
        )
        return Shown(session, experiment, made.digest, problem=long)
    also = f"From then on start the training as: {visible(made.run_as)}\n" if made.run_as else ""
    message = (
        f"TrainFlash asks to write this change into {visible(session.sandbox.project)}.\n"
        f"Files: {visible(', '.join(made.files))}\nDigest: {made.digest}\n{also}\n{visible(made.diff)}"
    )
    return Shown(session, experiment, made.digest, message)


def _settle(shown: Shown, answer: Answer, asked: bool) -> dict[str, Any]:
    from trainflash.workflow import answers, approving

    if shown.problem is not None:
        raise shown.problem
    session = shown.session
    if not asked:
        approving.refuse(session, shown.digest, "no elicitation")
        raise ApprovalNeeded(
            "this client cannot ask the owner, so nothing was changed",
            f"the owner runs `trainflash writeback --sandbox {session.sandbox.directory}` on a terminal",
        )
    if not (isinstance(answer, AcceptedElicitation) and answer.data.approve):
        approving.refuse(session, shown.digest, "elicitation")
        raise ApprovalNeeded("not approved; nothing was changed", "the experiment stays in the sandbox")
    with session.locked():
        given = approving.write_back(session, shown.experiment, approved_digest=shown.digest, how="elicitation")
    return answers.approval(given)


def _can_ask(context: Context) -> bool:
    """Whether the client said that it can show a form, and can be reached while the call runs."""
    capabilities = context.client_capabilities
    told = capabilities.elicitation if capabilities is not None else None
    if told is None or (told.form is None and told.url is not None):
        return False
    return is_version_at_least(context.protocol_version or "", ASKED_IN_THE_ANSWER) or context.session.can_send_request


def visible(text: str) -> str:
    """Text as it may be shown to somebody who decides on it: what a screen would hide or reorder stands as an escape."""
    shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(each if each in _PLAIN or unicodedata.category(each)[0] != "C" else ascii(each)[1:-1] for each in shown)
