"""Known assistants: the documented flags with which each writes a patch without asking anybody, edits allowed, no plan mode.

In the words of a command `{brief}` stands for the path of BRIEF.md, `{dir}` for the folder to edit, `{files}` for the files of the brief
(one word each), `{dollars}` and `{minutes}` for what is left of the limits. All get the brief on standard input too. Where an assistant has
a sandbox of its own it is switched off: the room in which it runs keeps it from everything, and another sandbox would not start there.
`tests/integration/test_author_presets.py` checks the flags against the programs' own `--help`.
"""

from __future__ import annotations

from dataclasses import dataclass

_DO = "Do what the brief in {brief} asks: edit the files in {dir}, ask nothing, and end."


@dataclass(frozen=True)
class Preset:
    """One assistant. `state`: folders and files in HOME where it keeps its login and settings, which must outlive a room."""

    name: str
    argv: tuple[str, ...]
    get: str  # how to get the program
    source: str  # where its flags are documented
    state: tuple[str, ...]
    unset: tuple[str, ...] = ()  # variables by which it would take itself for a part of another session


PRESETS = (
    Preset(
        "claude",
        (
            "claude", "--print", "--output-format", "json", "--permission-mode", "acceptEdits", "--no-session-persistence",
            "--max-budget-usd", "{dollars}",
        ),
        "npm install -g @anthropic-ai/claude-code",
        "https://docs.claude.com/en/docs/claude-code/cli-reference",
        (".claude",),
        ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"),
    ),
    Preset(
        "codex",
        ("codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-"),
        "npm install -g @openai/codex",
        "https://developers.openai.com/codex/cli/reference",
        (".codex",),
    ),
    Preset(
        "gemini",
        ("gemini", "--prompt", _DO, "--output-format", "json", "--approval-mode", "auto_edit", "--skip-trust"),
        "npm install -g @google/gemini-cli",
        "https://geminicli.com/docs/cli/headless",
        (".gemini",),
    ),
    Preset(
        "copilot",
        (
            "copilot", "--prompt", _DO, "--output-format", "json", "--allow-all-tools", "--allow-all-paths", "--no-ask-user",
            "--no-auto-update",
        ),
        "npm install -g @github/copilot",
        "https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-programmatic-reference",
        (".copilot", ".config/gh", ".config/github-copilot"),
    ),
    Preset(
        "cursor",
        ("cursor-agent", "--print", "--output-format", "json", "--force", "--trust", _DO),
        "see https://cursor.com/cli for its installer",
        "https://cursor.com/docs/cli/headless",
        (".cursor", ".config/cursor"),
    ),
    Preset(
        "aider",
        (
            "aider", "--yes-always", "--no-git", "--no-pretty", "--no-stream", "--no-check-update", "--no-show-model-warnings",
            "--no-suggest-shell-commands", "--no-analytics", "--message-file", "{brief}", "{files}",
        ),
        "pip install aider-chat",
        "https://aider.chat/docs/config/options.html",
        (".aider", ".aider.conf.yml"),
    ),
    Preset(
        "opencode",
        ("opencode", "run", "--format", "json", "--auto", _DO),
        "npm install -g opencode-ai",
        "https://opencode.ai/docs/cli",
        (".local/share/opencode", ".config/opencode"),
    ),
    Preset(
        "mini",
        ("mini", "--yolo", "--exit-immediately", "--cost-limit", "{dollars}", "--task", _DO),
        "pip install mini-swe-agent",
        "https://mini-swe-agent.com/latest/usage/mini",
        (".config/mini-swe-agent",),
    ),
)  # fmt: skip
ACP = Preset(
    "acp",
    ("acpx", "--approve-all", "--format", "json", "--cwd", "{dir}", "{agent}", "exec", "--file", "-"),
    "npm install -g acpx",
    "https://github.com/openclaw/acpx",
    (".acpx",),
)
NAMES = (*(preset.name for preset in PRESETS), "acp:NAME", "manual")
STATE = tuple(dict.fromkeys(place for preset in (*PRESETS, ACP) for place in preset.state))
