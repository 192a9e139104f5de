"""Rules, skills, MCP servers and permissions for coding assistants: into a project, and out again without a trace.

A file that the owner may have (`CLAUDE.md`, `.claude/settings.json`, …) gets one marked block, or insertions into its JSON; everything else
in it stays byte for byte. Files that are ours alone are written whole. `.trainflash-install.json` remembers what was written, so that a
later version replaces only what nobody edited, and `uninstall` gives back what stood there.

All instruction files come from one source, `templates/instructions/trainflash.md`; `python -m trainflash.install --render DIR` writes those
that this repository carries.
"""

from trainflash.install.agents import AGENTS
from trainflash.install.installing import Change, Report, install, render
from trainflash.install.rendering import main, rendered
from trainflash.install.uninstalling import uninstall

__all__ = ["AGENTS", "Change", "Report", "install", "main", "render", "rendered", "uninstall"]
