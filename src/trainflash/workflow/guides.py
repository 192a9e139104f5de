"""The skills as texts: what an assistant reads that has no folder of skills of its own."""

from __future__ import annotations

from dataclasses import dataclass

from trainflash import resources
from trainflash.schema import load_yaml_documents


@dataclass(frozen=True)
class Guide:
    """One skill: its name, when to use it, its text without the header, and its references by file name."""

    name: str
    description: str
    text: str
    references: dict[str, str]


def skills() -> tuple[Guide, ...]:
    """All skills of this installation, by name."""
    found = []
    for path in sorted(resources.folder("skills").glob("*/SKILL.md")):
        _, header, text = path.read_text(encoding="utf-8").split("---\n", 2)
        (about,) = load_yaml_documents(header, str(path))
        references = {each.name: each.read_text(encoding="utf-8") for each in sorted(path.parent.glob("references/*.md"))}
        found.append(Guide(str(about["name"]), str(about["description"]), text.strip() + "\n", references))
    return tuple(found)
