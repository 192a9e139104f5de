"""Profiles in three media: Markdown, the terminal, one offline HTML page with pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from markupsafe import Markup
from rich.console import Group
from rich.padding import Padding

from trainflash.report import figures, ink, pictures, profile_answers, profile_pictures, profile_sheets
from trainflash.report.op_names import readable
from trainflash.report.profile_sheets import Block, Sheet
from trainflash.report.rendering import template
from trainflash.schema.profile_changes import ProfileAnswer, ProfileAssessment, ProfileComparison, ProfileHistory
from trainflash.schema.profiles import ProfileSummary

CELL_WIDTH = 90
TERMINAL_WIDTH = 60
NAME_WIDTH = 24


Artefact = ProfileSummary | ProfileComparison | ProfileHistory | ProfileAnswer


def headline(summary: ProfileSummary) -> str:
    """The sentence at the top of a summary's report."""
    return profile_sheets.headline(summary)


def markdown(value: Artefact, assessment: ProfileAssessment | None = None, *, top_k: int = 10) -> str:
    """Deterministic Markdown; texts of others cannot break out of their cells."""
    sheet = _sheet(value, assessment, top_k)
    lines = [f"# {sheet.title}", "", f"**{_safe(sheet.headline)}**", ""]
    lines += [f"- {_safe(each)}" for each in sheet.facts] + [f"- **caution:** {_safe(each)}" for each in sheet.warnings]
    for block in sheet.blocks:
        lines += ["", f"## {_safe(block.title)}", *_markdown_table(block)]
        for place, item in enumerate(block.items, 1):
            lines += [*([""] if place == 1 else []), f"{place}. **{_safe(item.text)}**", *(f"   - {_safe(each)}" for each in item.details)]
        lines += [*([""] if block.notes else []), *(f"- {_safe(each)}" for each in block.notes)]
    return "\n".join([*lines, ""])


def terminal(value: Artefact, assessment: ProfileAssessment | None = None, *, top_k: int = 10) -> Group:
    """The same for a terminal."""
    sheet = _sheet(value, assessment, top_k)
    parts = [
        ink.ink(sheet.headline, "bold " + ink.STYLES.get(sheet.tone, "")),
        *ink.bullets(sheet.facts),
        *ink.bullets(sheet.warnings, "!"),
    ]
    for block in sheet.blocks:
        parts.append(ink.ink(f"\n{block.title}", "bold"))
        if block.rows:
            made = ink.table(*block.columns, right=_figures(block))
            made.columns[0].min_width = min(NAME_WIDTH, max(len(row[0]) for row in block.rows))
            for row in block.rows:
                made.add_row(*(ink.ink(figures.short(cell, TERMINAL_WIDTH)) for cell in row))
            parts.append(ink.explained(made))
        for place, item in enumerate(block.items, 1):
            parts += [
                Padding(ink.ink(f"{place}. {item.text}"), (0, 0, 0, 1)),
                *(Padding(each, (0, 0, 0, 3)) for each in ink.bullets(item.details)),
            ]
        parts += ink.bullets(block.notes)
    return Group(*parts)


def html(
    value: ProfileSummary | ProfileComparison | ProfileHistory, assessment: ProfileAssessment | None = None, *, top_k: int = 10
) -> str:
    """One page that loads nothing."""
    page = template("profile.html.j2", visible=figures.visible)
    return page.render(sheet=_sheet(value, assessment, top_k), charts=_charts(value), figures_of=_figures)


def _sheet(value: Artefact, assessment: ProfileAssessment | None, top_k: int) -> Sheet:
    return _for_people(_whole(value, assessment, top_k))


def _for_people(sheet: Sheet) -> Sheet:
    """The sheet with names of C++ shortened: whole ones stand in JSON."""
    blocks = [
        replace(
            block,
            rows=tuple(tuple(map(readable, row)) for row in block.rows),
            items=tuple(replace(item, text=readable(item.text), details=tuple(map(readable, item.details))) for item in block.items),
            notes=tuple(map(readable, block.notes)),
        )
        for block in sheet.blocks
    ]
    return replace(sheet, headline=readable(sheet.headline), blocks=tuple(blocks))


def _whole(value: Artefact, assessment: ProfileAssessment | None, top_k: int) -> Sheet:
    if isinstance(value, ProfileSummary):
        return profile_sheets.of_summary(value, top_k)
    if isinstance(value, ProfileComparison):
        return profile_sheets.of_comparison(value, assessment)
    if isinstance(value, ProfileHistory):
        return profile_sheets.of_history(value)
    return profile_answers.of_answer(value)


def _figures(block: Block) -> list[str]:
    """Columns in which every cell is a figure or missing."""
    return [name for place, name in enumerate(block.columns) if all(_is_figure(row[place]) for row in block.rows)]


def _is_figure(cell: str) -> bool:
    return cell == figures.DASH or cell == figures.MISSING or cell[:1] in "0123456789+-−<"


def _markdown_table(block: Block) -> list[str]:
    if not block.rows:
        return []
    numeric = set(_figures(block))
    rule = ["---:" if name in numeric else "---" for name in block.columns]
    rows = [block.columns, tuple(rule), *block.rows]
    return ["", *("| " + " | ".join(cell if row is rows[1] else _safe(cell) for cell in row) + " |" for row in rows)]


def _safe(text: str) -> str:
    short = figures.short(figures.visible(text), CELL_WIDTH * 3 if " " in text else CELL_WIDTH)
    for char in "\\|`*[":
        short = short.replace(char, f"\\{char}")
    return short.replace("&", "&amp;").replace("<", "&lt;")


def _charts(value: ProfileSummary | ProfileComparison | ProfileHistory) -> dict[str, Markup]:
    drawn: Sequence[tuple[str, Callable[[pictures.Size], str]]]
    if isinstance(value, ProfileSummary):
        drawn = [
            ("breakdown", lambda size: profile_pictures.breakdown(value, size)),
            ("steps", lambda size: profile_pictures.steps(value, size)),
            ("idle", lambda size: profile_pictures.idle(value, size)),
            ("waiting", lambda size: profile_pictures.waiting(value, size)),
            ("ops", lambda size: profile_pictures.hot_ops(value, size)),
        ]
        has = {"breakdown": True, "steps": len(value.step_time.steps) > 1, "idle": bool(value.idle and value.idle.causes),
               "waiting": value.alignment is not None, "ops": bool(value.hot_ops)}  # fmt: skip
        drawn = [(name, draw) for name, draw in drawn if has[name]]
    elif isinstance(value, ProfileComparison):
        drawn = [("change", lambda size: profile_pictures.change(value, size))]
    else:
        drawn = [("trend", lambda size: profile_pictures.trend(value, size))]
    return {name: Markup(f'<div class="wide">{draw("wide")}</div><div class="narrow">{draw("narrow")}</div>') for name, draw in drawn}
