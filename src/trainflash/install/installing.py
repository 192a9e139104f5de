"""Writing rules, skills and settings into a project. Everything is planned and every path checked before anything is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trainflash.install import agents, blocks, json_edits, places, record, tables
from trainflash.install.agents import Addition
from trainflash.install.json_edits import Span, Unfit
from trainflash.install.record import Record, Settings, digest

_SAME = "it is not as trainflash wrote it"


@dataclass(frozen=True)
class Change:
    """What happened, or would happen, to one file: `action` is create, update, remove, restore or keep (left alone, `reason` says why)."""

    action: str
    path: str
    reason: str = ""


@dataclass(frozen=True)
class Report:
    """All changes of one `install` or `uninstall`, in order; empty when everything was in place already."""

    changes: tuple[Change, ...]


@dataclass
class _Plan:
    """What will be written and removed below `root`; `record` is what will stand in the record afterwards."""

    root: Path
    record: Record
    writes: dict[Path, bytes] = field(default_factory=dict)
    removals: list[Path] = field(default_factory=list)
    changes: dict[str, Change] = field(default_factory=dict)

    def content(self, path: Path) -> bytes | None:
        """What the file will hold as planned so far; None: it is not there."""
        return self.writes[path] if path in self.writes else path.read_bytes() if path.exists() else None

    def write(self, relative: str, path: Path, content: bytes) -> None:
        self.writes[path] = content
        self.changes[relative] = Change("update" if path.exists() else "create", relative)

    def keep(self, relative: str, reason: str) -> None:
        self.changes[relative] = Change("keep", relative, reason)


def install(project: Path, names: tuple[str, ...], *, dry_run: bool = False) -> Report:
    """Write rules, skills, MCP settings and rules to ask first into `project` for the assistants `names`; again changes nothing.

    Raises `UsageError` for a missing or read-only project, an unknown agent, a damaged block or record, or a path that leads out of it.
    """
    plan = _Plan(root := places.root_of(project), record.read(root))
    for name in names:
        agent = agents.known(name)
        if agent.header:
            _file(plan, agent.rules, (agent.header + agents.rules()).encode())
        else:
            _block(plan, agent.rules, agents.rules())
        if agent.skills:
            _skills(plan, agent.skills)
        for relative, additions in agent.settings:
            _settings(plan, relative, additions)
        for relative, template in agent.tables:
            _table(plan, relative, agents.template(template))
        for relative, template in agent.files:
            _file(plan, relative, agents.template(template).encode())
    if plan.writes or plan.removals:
        places.require_writable(plan.root, [plan.root / record.FILE, *plan.writes, *plan.removals])
        if not dry_run:
            _carry_out(plan)
    return Report(tuple(plan.changes.values()))


def render(name: str) -> str:
    """The rule file of an agent as it stands in a project that had none. Raises `UsageError` for an unknown agent."""
    agent = agents.known(name)
    return agent.header + agents.rules() if agent.header else blocks.block(agents.rules(), agent.rules).decode()


def _carry_out(plan: _Plan) -> None:
    """The record first: whatever happens then, `uninstall` knows what to look for."""
    plan.record.folders = sorted({*plan.record.folders, *places.missing_folders(plan.root, plan.writes)})
    places.write(plan.root / record.FILE, plan.record.text())
    for path, content in plan.writes.items():
        places.write(path, content)
    for path in plan.removals:
        path.unlink(missing_ok=True)


def _block(plan: _Plan, relative: str, body: str) -> None:
    path = places.inside(plan.root, relative)
    old = plan.content(path) or b""
    new = blocks.put(old, body, relative)
    if blocks.split(old, relative)[1] is None:
        plan.record.blocks[relative] = path.exists()
    if new != old:
        plan.write(relative, path, new)


def _table(plan: _Plan, relative: str, body: str) -> None:
    path = places.inside(plan.root, relative)
    reason = tables.unfit(plan.content(path) or b"", body, relative)
    if reason:
        plan.keep(relative, reason)
    else:
        _block(plan, relative, body)


def _file(plan: _Plan, relative: str, content: bytes) -> None:
    path = places.inside(plan.root, relative)
    there = plan.content(path)
    if there == content:
        return
    if there is not None and plan.record.files.get(relative) != digest(there):
        plan.keep(relative, _SAME)
        return
    plan.record.files[relative] = digest(content)
    plan.write(relative, path, content)


def _skills(plan: _Plan, folder: str) -> None:
    """All skills, and away with files of an earlier version that no longer belong to them."""
    wanted = {f"{folder}/{relative}": content for relative, content in agents.skill_files()}
    for relative, content in wanted.items():
        _file(plan, relative, content)
    for relative in [name for name in plan.record.files if name.startswith(f"{folder}/") and name not in wanted]:
        path = places.inside(plan.root, relative)
        if not path.exists() or digest(path.read_bytes()) == plan.record.files[relative]:
            del plan.record.files[relative]
            plan.removals.append(path)
            plan.changes[relative] = Change("remove", relative)


def _settings(plan: _Plan, relative: str, wanted: tuple[Addition, ...]) -> None:
    path = places.inside(plan.root, relative)
    there = plan.content(path)
    before = plan.record.settings.get(relative)
    try:
        text = (there or b"").decode("utf-8")
        made, new = _extended(text, before, wanted)
    except UnicodeDecodeError:
        plan.keep(relative, "it is no UTF-8")
    except Unfit as unfit:
        places_in_it = " and ".join(dict.fromkeys(".".join(addition.path) for addition in wanted))
        plan.keep(relative, f"{unfit}; what belongs under {places_in_it} must be added by hand")
    else:
        if new == text:
            return
        made.created = before.created if before else there is None
        plan.record.settings[relative] = made
        plan.write(relative, path, new.encode())


def _extended(text: str, before: Settings | None, wanted: tuple[Addition, ...]) -> tuple[Settings, str]:
    """What will be recorded, and `text` with the additions; those of an earlier version that are wanted no more are taken out."""
    untouched = before is None or (before.spans is not None and digest(text.encode()) == before.after)
    earlier = [Addition(tuple(keys), value) for keys, value in before.additions] if before else []
    ours: list[Addition] = []
    if before and untouched:
        text = json_edits.take(text, [Span(*span) for span in before.spans or []])
    elif before:
        ours = [addition for addition in earlier if addition in wanted]
        outdated = [addition for addition in earlier if addition not in wanted]
        if outdated:
            text = json_edits.without(text, outdated)
    spans: list[tuple[int, str]] = []
    for addition in wanted:
        span = json_edits.insert(text, addition)
        if span is None:
            continue
        text = text[: span.at] + span.text + text[span.at :]
        spans.append((span.at, span.text))
        ours.append(addition)
    additions = [(list(addition.keys), addition.value) for addition in ours]
    return Settings(False, digest(text.encode()), additions, spans if untouched else None), text
