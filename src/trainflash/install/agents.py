"""What each assistant reads, and where: rules, skills, MCP servers and permissions. Formats as the vendors document them (November 2026).

claude: code.claude.com/docs (permissions, mcp); cursor: cursor.com/docs/reference/permissions; copilot: code.visualstudio.com/docs/copilot;
codex: developers.openai.com/codex (config, rules); gemini: geminicli.com/docs/reference/policy-engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainflash import resources
from trainflash.errors import UsageError

SERVER = {"command": "trainflash", "args": ["mcp"]}
ASK_FIRST = ("Bash(trainflash writeback:*)", "Bash(*trainflash*writeback*)", "Bash(*trainflash*--approve*)")
ASK_CURSOR = (
    "`trainflash writeback` and any command with --approve write into the project: show the diff to the person and ask first, every time."
)
ASK_COPILOT = "/trainflash.*(writeback|--approve)/"
CURSOR_HEADER = "---\ndescription: Make this project's PyTorch training faster with trainflash, and prove it\nalwaysApply: true\n---\n\n"


@dataclass(frozen=True)
class Addition:
    """One value put into a JSON file: under `keys`, and where the last of them ends in `[]`, at the end of that list."""

    keys: tuple[str, ...]
    value: Any

    @property
    def is_item(self) -> bool:
        """Whether the value is an item of a list."""
        return self.keys[-1].endswith("[]")

    @property
    def path(self) -> tuple[str, ...]:
        """The keys without the sign of a list."""
        return (*self.keys[:-1], self.keys[-1].removesuffix("[]"))


@dataclass(frozen=True)
class Agent:
    """Where one assistant looks. `header` precedes the rules in a file that is ours alone; without one the file gets a marked block.

    `settings`: JSON files and what is added to them. `tables`: TOML files and the template of their marked block. `files`: files that are
    ours alone, and their template.
    """

    rules: str
    skills: str | None = None
    header: str = ""
    settings: tuple[tuple[str, tuple[Addition, ...]], ...] = ()
    tables: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()


AGENTS = {
    "claude": Agent(
        "CLAUDE.md",
        skills=".claude/skills",
        settings=(
            (".mcp.json", (Addition(("mcpServers", "trainflash"), SERVER),)),
            (".claude/settings.json", tuple(Addition(("permissions", "ask[]"), rule) for rule in ASK_FIRST)),
        ),
    ),
    "cursor": Agent(
        ".cursor/rules/trainflash.mdc",
        skills=".agents/skills",
        header=CURSOR_HEADER,
        settings=(
            (".cursor/mcp.json", (Addition(("mcpServers", "trainflash"), SERVER),)),
            (".cursor/permissions.json", (Addition(("autoRun", "block_instructions[]"), ASK_CURSOR),)),
        ),
    ),
    "copilot": Agent(
        ".github/copilot-instructions.md",
        skills=".github/skills",
        settings=(
            (".vscode/mcp.json", (Addition(("servers", "trainflash"), {"type": "stdio", **SERVER}),)),
            (
                ".vscode/settings.json",
                (Addition(("chat.tools.terminal.autoApprove", ASK_COPILOT), {"approve": False, "matchCommandLine": True}),),
            ),
        ),
    ),
    "codex": Agent(
        "AGENTS.md",
        skills=".agents/skills",
        tables=((".codex/config.toml", "codex-mcp.toml"),),
        files=((".codex/rules/trainflash.rules", "codex.rules"),),
    ),
    "gemini": Agent(
        "GEMINI.md",
        skills=".agents/skills",
        settings=((".gemini/settings.json", (Addition(("mcpServers", "trainflash"), SERVER),)),),
        files=((".gemini/policies/trainflash.toml", "gemini-policy.toml"),),
    ),
}
LEGACY_CURSOR = ".cursorrules"
CARRIED = ("claude", "codex", "cursor", "copilot")  # rendered into this repository, with LEGACY_CURSOR


def known(name: str) -> Agent:
    """The agent of that name. Raises `UsageError` when there is none."""
    if name not in AGENTS:
        raise UsageError(f"no assistant is called {name!r}", f"known: {', '.join(AGENTS)}")
    return AGENTS[name]


def template(name: str) -> str:
    """The text of `templates/instructions/<name>`."""
    return (resources.folder("templates") / "instructions" / name).read_text(encoding="utf-8")


def rules() -> str:
    """The rules for every assistant, from their one source."""
    return template("trainflash.md")


def skill_files() -> list[tuple[str, bytes]]:
    """Every file of the skills: path below the skills' folder, and content."""
    folder = resources.folder("skills")
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths]
