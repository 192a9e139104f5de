"""Resources (findings, knobs, sandboxes with their logs and reports) and prompts (the skills)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.prompts import Prompt
from pydantic import Field

from trainflash.errors import TrainFlashError
from trainflash.mcp_server.roots import Roots
from trainflash.workflow.explaining import answer, everything, explain
from trainflash.workflow.guides import Guide, skills
from trainflash.workflow.phases.sessions import state_folder
from trainflash.workflow.session import existing_session

JSON, YAML, HTML, MARKDOWN = "application/json", "application/yaml", "text/html", "text/markdown"
FILES = {"log": ("tuning_log.yaml", YAML), "report": ("report.html", HTML), "plan": ("plan.yaml", YAML)}
MOST_BYTES = 8 << 20
TOOLS = (
    "\n\nYou are connected to the trainflash MCP server: where this text shows a command, call the tool of that name instead "
    "(`trainflash optimize try` is `optimize_try`, `trainflash writeback` is `writeback`); options are arguments."
)


def register(server: MCPServer, roots: Roots) -> None:
    """Add all resources and prompts."""
    _explanations(server)
    _sandboxes(server, roots)
    for guide in skills():
        _prompt(server, guide)
        for name, text in guide.references.items():
            uri = f"trainflash://skills/{guide.name}/{name}"
            server.resource(uri, name=f"{guide.name}: {name}", mime_type=MARKDOWN)(_constant(text))


def _explanations(server: MCPServer) -> None:
    known = everything()
    server.resource("trainflash://findings", name="Findings", description="All findings, one line each.", mime_type=JSON)(
        _constant(json.dumps(known["findings"], indent=1))
    )
    server.resource("trainflash://knobs", name="Knobs", description="All knobs, one line each.", mime_type=JSON)(
        _constant(json.dumps(known["knobs"], indent=1))
    )

    server.resource("trainflash://patterns", name="Patterns", description="All patterns, one line each.", mime_type=JSON)(
        _constant(json.dumps(known["patterns"], indent=1))
    )

    def finding(name: str) -> str:
        return _explained(name)

    def knob(name: str) -> str:
        return _explained(name)

    def pattern(name: str) -> str:
        return _explained(name)

    server.resource("trainflash://findings/{name}", name="Finding", description="What a finding means.", mime_type=JSON)(finding)
    server.resource("trainflash://knobs/{name}", name="Knob", description="What a knob does and may change.", mime_type=JSON)(knob)
    server.resource("trainflash://patterns/{name}", name="Pattern", description="A rewrite for a patch.", mime_type=JSON)(pattern)


def _explained(name: str) -> str:
    try:
        return json.dumps(answer(explain(name)), indent=1)
    except TrainFlashError as unknown:
        raise ResourceNotFoundError(f"{unknown.message}; {unknown.mend}") from None


def _sandboxes(server: MCPServer, roots: Roots) -> None:
    def listing() -> str:
        return json.dumps([{"name": name, **_about(place)} for name, place in _known(roots).items()], indent=1)

    about = "Sandboxes of projects below the roots."
    server.resource("trainflash://sandboxes", name="Sandboxes", description=about, mime_type=JSON)(listing)
    for part, (file, kind) in FILES.items():
        server.resource(f"trainflash://sandboxes/{{name}}/{part}", name=f"Sandbox: {part}", mime_type=kind)(_reader(roots, file))

    def diagnosis(name: str) -> str:
        runs = sorted((_place(roots, name) / "runs").glob("diagnose-*/findings.json"))
        if not runs:
            raise ResourceNotFoundError(f"{name} has no diagnosis yet; use the tool diagnose")
        return _text(runs[-1])

    server.resource("trainflash://sandboxes/{name}/findings", name="Sandbox: newest findings", mime_type=JSON)(diagnosis)


def _reader(roots: Roots, file: str) -> Callable[[str], str]:
    def read(name: str) -> str:
        return _text(_place(roots, name) / file)

    return read


def _known(roots: Roots) -> dict[str, Path]:
    """Sandboxes whose project lies below the roots, by the name of their folder."""
    found = {}
    for document in sorted(state_folder().glob("*/sandbox.json")):
        try:
            directory = Path(existing_session(Path(), document.resolve().parent).sandbox.directory)
            roots.inside(_about(directory)["project"])
        except (TrainFlashError, OSError, ValueError, KeyError):
            continue
        found[document.parent.name] = directory
    return found


def _place(roots: Roots, name: str) -> Path:
    known = _known(roots)
    if name not in known:
        raise ResourceNotFoundError(f"there is no sandbox {name!r}; see trainflash://sandboxes")
    return known[name]


def _about(directory: Path) -> dict[str, Any]:
    written = json.loads((directory / "sandbox.json").read_text(encoding="utf-8"))
    return {key: written.get(key) for key in ("project", "directory", "created_utc", "protection")}


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ResourceNotFoundError(f"{path} has more than {MOST_BYTES >> 20} MiB: open it there")
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as bad:
        raise ResourceNotFoundError(f"{path}: {bad.strerror}; run the stage that writes it first") from None


def _constant(text: str) -> Callable[[], str]:
    return lambda: text


def _prompt(server: MCPServer, guide: Guide) -> None:
    def follow(
        command: Annotated[str, Field(description="The training command, such as python train.py.")] = "",
        wish: Annotated[str, Field(description="What the user asked for.")] = "",
    ) -> str:
        asked = "".join(f"\n{name}: {value}" for name, value in (("Training command", command), ("The user's wish", wish)) if value)
        return f"{guide.text}{TOOLS}{asked}"

    server.add_prompt(Prompt.from_function(follow, name=guide.name, title=guide.name, description=guide.description))
