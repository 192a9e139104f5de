"""Was a diagnosis right? Compares the findings with the manifest; pure functions over the stored results and the program's source."""

import ast
from dataclasses import dataclass

from programs import Program

NARROWER = {"host_code": "callback"}  # a kind that the manifests did not have: host code that torch calls back, such as hooks


@dataclass(frozen=True)
class Score:
    """`line` is None where the cause is no line or the first finding is wrong; `beside` is None where none is asked for."""

    first: str
    share: float | None
    place: str
    right: bool
    line: bool | None
    beside: bool | None
    note: str


def source_file(program: Program, path: str) -> str | None:
    """The program's own file that `path` (absolute or relative) names, relative to its folder."""
    own = [p.relative_to(program.folder).as_posix() for p in program.folder.rglob("*.py")]
    hits = [name for name in own if path == name or path.endswith("/" + name)]
    return max(hits, key=len) if hits else None


def function_lines(source: str, function: str) -> set[int]:
    """Line numbers of every function of that name, decorators included."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            lines.update(range(first, (node.end_lineno or node.lineno) + 1))
    return lines


def accepted_lines(program: Program) -> dict[str, set[int]]:
    """File → line numbers that count as the cause."""
    manifest = program.manifest
    accepted: dict[str, set[int]] = {}
    for path in sorted(program.folder.rglob("*.py")):
        name, source = path.relative_to(program.folder).as_posix(), path.read_text()
        markers = list(manifest["lines_also_right"])
        lines: set[int] = set()
        if name == manifest["file"]:
            markers += [manifest["line_marker"]] if manifest["line_marker"] else []
            if manifest["function"]:
                lines |= function_lines(source, manifest["function"])
        for number, text in enumerate(source.splitlines(), 1):
            if any(marker in text for marker in markers):
                lines.add(number)
        accepted[name] = lines
    return accepted


def line_right(program: Program, location: dict | None) -> bool | None:
    """None where the program's cause is no line of Python."""
    if program.manifest["healthy"] or not program.manifest["line_marker"]:
        return None
    if not location or not location.get("file") or not location.get("line"):
        return False
    name = source_file(program, str(location["file"]))
    return name is not None and int(location["line"]) in accepted_lines(program).get(name, set())


def score(program: Program, result: dict) -> Score:
    """A failed run, an abstention and an empty list count as wrong."""
    manifest = program.manifest
    blank = None if program.manifest["healthy"] or not manifest["line_marker"] else False
    if result.get("error"):
        return Score("error", None, "", False, blank, None, result["error"].strip().splitlines()[-1][:100])
    findings = result.get("findings") or []
    if result.get("abstained") or not findings:
        first = findings[0]["kind"] if findings else "nothing"
        return Score(f"abstained ({first})", None, "", False, blank, None, str(result.get("abstained") or "no finding")[:100])
    first, kinds = findings[0], {f["kind"] for f in findings}
    wanted = {"compute"} if manifest["healthy"] else {manifest["kind"], *manifest["also_right"]}
    right = first["kind"] in wanted | {NARROWER[kind] for kind in wanted & set(NARROWER)}
    location = first.get("location")
    place = f"{location.get('file')}:{location.get('line')}" if location else ""
    missing = [kind for kind in manifest["beside"] if kind not in kinds]
    second = manifest.get("second")
    notes = [f"lacks {', '.join(missing)}"] if missing else []
    if second:
        notes.append(f"second cause {second} {'seen' if second in kinds else 'not seen'}")
    return Score(
        first=first["kind"],
        share=first.get("share"),
        place=place,
        right=right,
        line=line_right(program, location),
        beside=None if not manifest["beside"] else not missing,
        note="; ".join(notes),
    )
