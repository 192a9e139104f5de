"""float32 in place of float64, in the whole program at once: its types, its networks, its data. One place alone would break the program."""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.formats import array_edges, spoiled
from trainflash.knobs.kinds import SinglePrecision
from trainflash.knobs.project import Project
from trainflash.knobs.reading import sources
from trainflash.knobs.reading.expressions import literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, dotted, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit, Splice

NAMES = {
    "torch.float64": "float32",
    "torch.double": "float32",
    "torch.DoubleTensor": "FloatTensor",
    "torch.cuda.DoubleTensor": "FloatTensor",
}
WORDS = {"torch.DoubleTensor": "torch.FloatTensor", "torch.cuda.DoubleTensor": "torch.cuda.FloatTensor", "torch.float64": "torch.float32"}
TRAINERS = {"Trainer", "Fabric"}
MODES: dict[Any, Any] = {64: "32", "64": '"32"', "64-true": '"32-true"'}  # of Lightning's `precision`
CHOSEN = {"float64": "float32", "double": "float", "fp64": "fp32", "torch.float64": "torch.float32"}


def single_precision(edit: SinglePrecision, scene: Scene) -> tuple[Target, ...]:
    """All places that make float64 of the network or its data. Raises `UsageError` where one is not known, or needs its digits."""
    project = scene.project
    spoiled.needs_no_digits(project)
    found = [each for file in project.parsed() for each in _named(project, file)]
    found += [each for file in project.parsed("double") for each in _called(file)]
    found += [each for file in project.parsed("precision") for each in _trainers(file)]
    edges = array_edges.single(project)
    if not found and not edges:
        raise refuse("the program's source does not say where its network gets float64 from")
    for file, node, _ in (*found, *edges):
        spoiled.no_clock(file, node)
    splices: list[Edit] = []
    for _, _, each in (*found, *edges):
        splices += [one for one in each if one not in splices]
    file, node, _ = (*found, *edges)[0]
    places = list(dict.fromkeys(str(where.location(at)) for where, at, _ in (*found, *edges)))
    shown = ", ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")
    return (Target(file.location(node), "float64", lambda value: tuple(splices), f"float64 at {shown}", "everywhere"),)


def _named(project: Project, file: PythonFile) -> list[array_edges.Place]:
    """Each mention of torch's float64, or what chooses it."""
    found: list[array_edges.Place] = []
    for node in file.nodes:
        if (
            isinstance(node, cst.SimpleString)
            and string_value(node) in WORDS
            and isinstance(file.parent(node), (cst.Arg, cst.AssignTarget))
        ):
            quote = node.quote
            start, end = file.span(node)
            found.append((file, node, (Splice(file.path, start, end, f"{quote}{WORDS[string_value(node) or '']}{quote}"),)))
        elif isinstance(node, cst.Call) and dotted(node.func) == "getattr" and node.args and file.full_name(node.args[0].value) == "torch":
            found += _by_word(project, file, node, node.args[1].value)
        elif isinstance(node, cst.Attribute) and file.full_name(node) in NAMES:
            found += _mention(project, file, node)
        elif isinstance(node, cst.Name) and file.imported.get(node.value) in NAMES and not _imports(file, node):
            raise refuse(f"{file.location(node)}: {node.value} is imported by name, its counterpart in float32 is not")
    return found


def _imports(file: PythonFile, node: cst.Name) -> bool:
    return any(isinstance(up, (cst.ImportFrom, cst.Import)) for up in file.ancestors(node))


def _mention(project: Project, file: PythonFile, node: cst.Attribute) -> list[array_edges.Place]:
    here, up = file.location(node), file.parent(node)
    if any(isinstance(each, cst.Comparison) for each in file.ancestors(node)):
        raise refuse(f"{here}: `{short(file.text(up))}` compares types" if up is not None else f"{here}: types are compared")
    if isinstance(up, cst.DictElement) and not str(literal(up.key)).endswith("dtype"):  # that would be an option
        return _table(project, file, file.parent(up))  # type: ignore[arg-type]
    if isinstance(up, cst.IfExp) or any(isinstance(each, cst.If) and file.inside(node, each.test) for each in file.ancestors(node)):
        raise refuse(f"{here}: float64 is one of several choices: `{short(file.text(up))}`")  # type: ignore[arg-type]
    if isinstance(up, (cst.Element, cst.Assert)):
        raise refuse(f"{here}: float64 is one of several types in `{short(file.text(file.parent(up) or up))}`")
    start, end = file.span(node.attr)
    return [(file, node, (Splice(file.path, start, end, NAMES[file.full_name(node) or ""]),))]


def _table(project: Project, file: PythonFile, table: cst.Dict) -> list[array_edges.Place]:
    """What is looked up in a table of types: `{"float64": torch.float64, …}[word]`, directly or by the table's name."""
    up = file.parent(table)
    names = [dotted(each.target) for each in file.parent(table).targets] if isinstance(up, cst.Assign) else []  # type: ignore[union-attr]
    reads = [each for where in project.parsed(*[name for name in names if name]) for each in _lookups(where, table, names)]
    if len(reads) != 1:
        raise refuse(f"{file.location(table)}: which type of this table is used cannot be told")
    where, word = reads[0]
    keys = {literal(each.key) for each in table.elements if isinstance(each, cst.DictElement)}
    found = _by_word(project, where, word, word)
    if found and not any(key in keys for key in CHOSEN.values()):
        raise refuse(f"{file.location(table)}: this table has no float32")
    return found


def _lookups(file: PythonFile, table: cst.Dict, names: list[str | None]) -> list[tuple[PythonFile, cst.BaseExpression]]:
    found = []
    for node in file.nodes:
        if isinstance(node, cst.Subscript) and (node.value is table or dotted(node.value) in names) and len(node.slice) == 1:
            index = node.slice[0].slice
            found += [(file, index.value)] if isinstance(index, cst.Index) else []
        asked = node.func if isinstance(node, cst.Call) and node.args else None
        if isinstance(asked, cst.Attribute) and asked.attr.value == "get" and (asked.value is table or dotted(asked.value) in names):
            found.append((file, node.args[0].value))  # type: ignore[attr-defined]
    return found


def _by_word(project: Project, file: PythonFile, node: cst.CSTNode, word: cst.BaseExpression) -> list[array_edges.Place]:
    """A type that a setting names: float32 is written where float64 is typed."""
    try:
        source = sources.Resolver(project).source(file, word)
    except UsageError as bad:
        raise refuse(f"{file.location(node)}: which type `{short(file.text(word))}` names is not known: {bad.message}") from None
    if source is None or not isinstance(source.value, str):
        raise refuse(f"{file.location(node)}: which type `{short(file.text(word))}` names is not known")
    if source.value not in CHOSEN:
        return []
    blocking = [use for use in source.readers if use.location != file.location(word)]
    if source.write is None or blocking:
        raise refuse(f"{file.location(node)}: {source.shown} has other readers" + (f", {blocking[0].location}" if blocking else ""))
    return [(file, node, source.write(CHOSEN[source.value]))]


def _called(file: PythonFile) -> list[array_edges.Place]:
    """`x.double()`, of networks and of tensors."""
    found: list[array_edges.Place] = []
    for call in file.calls:
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "double":
            if call.args:
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` is no change of the number format")
            start, end = file.span(call.func.attr)
            found.append((file, call, (Splice(file.path, start, end, "float"),)))
    if functions := [each for each in file.functions if each.name.value == "double"]:
        raise refuse(f"{file.location(functions[0])}: `double` is a function of the program's own")
    return found


def _trainers(file: PythonFile) -> list[array_edges.Place]:
    """Lightning's `precision=64`."""
    found: list[array_edges.Place] = []
    for call in file.calls:
        if (file.full_name(call.func) or "").split(".")[-1] in TRAINERS:
            for arg in call.args:
                if arg.keyword is not None and arg.keyword.value == "precision" and (value := literal(arg.value)) in MODES:
                    start, end = file.span(arg.value)
                    found.append((file, call, (Splice(file.path, start, end, MODES[value]),)))
    return found
