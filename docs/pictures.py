"""The pictures of the documents, from a real tuning: `python docs/pictures.py SANDBOX` writes docs/pictures/*.svg.

SANDBOX is the directory that `trainflash tune` or `trainflash demo` names. Colours are those of the report, light or dark as the
reader's system.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from trainflash.report import pictures, step_pictures
from trainflash.schema import Diagnosis, Timeline, read_document

HERE = Path(__file__).resolve().parent
CSS = HERE.parent / "src/trainflash/report/templates/report.css"


def main(sandbox: Path) -> None:
    runs = sorted(path.parent for path in (sandbox / "runs").glob("diagnose-*/timeline.json"))
    if len(runs) < 2:
        sys.exit(f"{sandbox} holds no diagnosis before and after a change")
    first, last = runs[0], runs[-1]
    steps = step_pictures.Steps(*(read_document(Timeline, run / "timeline.json") for run in (first, last)))
    before, after = (read_document(Diagnosis, run / "findings.json") for run in (first, last))
    top = step_pictures.top_ms(steps)
    drawn = {
        "phases": pictures.phases(before, after),
        "tails": step_pictures.tails(steps),
        "timeline": beneath([step_pictures.timeline(shown, label, top) for label, shown in steps.named]),
    }
    for name, svg in drawn.items():
        (HERE / "pictures" / f"{name}.svg").write_text(coloured(svg) + "\n", encoding="utf-8")


def beneath(svgs: list[str]) -> str:
    """Several drawings of one width as one, each below the one before."""
    boxes = [[float(part) for part in re.search(r'viewBox="([^"]+)"', svg).group(1).split()] for svg in svgs]
    words = " ".join(re.search(r'aria-label="([^"]+)"', svg).group(1) for svg in svgs)
    inner, at = [], 0.0
    for svg, (_, _, width, height) in zip(svgs, boxes, strict=True):
        inner.append(svg.replace("<svg ", f'<svg y="{at:g}" width="{width:g}" height="{height:g}" ', 1))
        at += height
    namespace = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg role="img" aria-label="{words}" viewBox="0 0 {boxes[0][2]:g} {at:g}" {namespace}>{"".join(inner)}</svg>'


def coloured(svg: str) -> str:
    """The drawing with the report's colours inside it, on a ground of its own."""
    css = CSS.read_text(encoding="utf-8")
    light = re.search(r":root \{(.*?)\}", css, re.S).group(1)
    dark = re.search(r"prefers-color-scheme: dark\) \{\s*:root \{(.*?)\}", css, re.S).group(1)
    rules = f":root{{{light}}} @media (prefers-color-scheme: dark){{:root{{{dark}}}}} svg text{{font-family:var(--font) !important}}"
    squeezed = re.sub(r"\s+", " ", rules)
    ground = '<rect width="100%" height="100%" fill="var(--card)"/>'
    return re.sub(r"(<svg [^>]*>)", lambda opening: f"{opening.group(1)}<style>{squeezed}</style>{ground}", svg, count=1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
