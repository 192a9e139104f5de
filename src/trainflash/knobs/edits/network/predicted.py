"""What leads from the last layer to a loss: the names and the forms that predictions have on their way."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from trainflash.knobs.reading.expressions import is_name, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, sole

FLAT = ("view", "reshape", "flatten")  # positions in a row
CLASSES_LAST = {  # dimensions exchanged, so that classes come second, as losses want them
    "transpose": ((1, 2), (2, 1), (-1, -2), (-2, -1)),
    "swapaxes": ((1, 2), (2, 1), (-1, -2), (-2, -1)),
    "permute": ((0, 2, 1), (0, 3, 1, 2)),
    "movedim": ((-1, 1), (2, 1), (3, 1)),
}
CASTS = ("float", "double")


@dataclass
class Predicted:
    """What leads from the last layer to the loss: what is done with what the layer gives, from the loss back to it."""

    file: PythonFile
    line: cst.SimpleStatementLine  # of the loss
    readable: list[cst.CSTNode]  # where what the layer gives may be read
    assigns: list[cst.Assign] = field(default_factory=list)  # statements that give it a name, the last one first
    taken: str = ""  # what is taken of its positions, such as "[:, :-1]"
    pairs: bool = False  # of two dimensions, where only the targets tell that these are no classes
    casts: str = ""  # methods that change the format of numbers, such as ".float()"
    flat: bool = False  # positions are put in a row
    turned: bool = False  # classes come second

    @property
    def rows(self) -> list[cst.CSTNode]:
        """The statements of the block in which the loss stands."""
        return list(self.file.parent(self.line).body)  # type: ignore[union-attr]

    @property
    def begin(self) -> cst.SimpleStatementLine:
        """The statement that calls the last layer."""
        return self.file.parent(self.assigns[-1]) if self.assigns else self.line  # type: ignore[return-value]

    def follow(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The call of the last layer, from what the loss is given. Raises `UsageError` where it cannot be followed."""
        here = self.line
        while True:
            if isinstance(node, cst.Name):
                here = self.made(node, here)
                node = self.assigns[-1].value
            elif isinstance(node, cst.Subscript):
                self._take(node)
                node = node.value
            elif (done := form(node)) is not None:
                if done in ("flat", "turned") and (self.taken or self.turned):
                    raise refuse(f"{self.file.location(node)}: positions are taken of the predictions in another form than the layer's")
                self.flat |= done == "flat"
                self.turned |= done == "turned"
                self.casts = f"{done if done.startswith('.') else ''}{self.casts}"
                node = node.func.value if isinstance(node, cst.Call) else node.value  # type: ignore[attr-defined]
            else:
                break
        for name in {assign.targets[0].target.value for assign in self.assigns}:  # type: ignore[attr-defined]
            self._read_here_alone(name)
        return node

    def made(self, node: cst.Name, before: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
        """The statement that gives a name the value that it has at the statement `before`."""
        rows = self.rows
        found = [
            (line, small)
            for line in rows[: rows.index(before)]
            if isinstance(small := sole(line), cst.Assign) and [dotted(each.target) for each in small.targets] == [node.value]
        ]
        if not found:
            raise refuse(
                f"{self.file.location(node)}: where `{node.value}` comes from cannot be told, or it is made under another condition"
            )
        line, assign = found[-1]
        self.assigns.append(assign)
        self.readable.append(assign.value)
        return line  # type: ignore[return-value]

    def _take(self, node: cst.Subscript) -> None:
        parts = [each.slice for each in node.slice]
        dots = [at for at, part in enumerate(parts) if isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis)]
        plain = all(isinstance(part, cst.Slice) or (isinstance(part, cst.Index) and _is_place(part.value)) for part in parts)
        last = parts[-1]
        whole = isinstance(last, cst.Slice) and last.lower is None and last.upper is None and last.step is None
        ends = whole or dots == [len(parts) - 1]
        if not plain or (not ends and (dots or len(parts) > 2)):
            raise refuse(f"{self.file.location(node)}: `{short(self.file.text(node))}` takes more than positions, or is not known not to")
        self.pairs |= not ends and len(parts) == 2
        self.taken = self.file.text(node)[len(self.file.text(node.value)) :] + self.taken

    def _read_here_alone(self, name: str) -> None:
        """Raises `UsageError` where what is followed under a name is read elsewhere, or given by other statements than those followed."""
        file, start = self.file, self.file.span(self.begin)[0]
        targets = [assign.targets[0].target for assign in self.assigns]
        scope = file.scope(targets[0])
        bound = set(scope[name]) if scope is not None else set()
        places = [node for each in bound if (node := getattr(each, "node", None)) is not None]
        if any(node not in targets and file.span(node)[0] >= start for node in places):
            raise refuse(f"{file.location(self.line)}: where `{name}` comes from cannot be told, or it is made under another condition")
        earlier = [file.span(node)[0] for node in places if node not in targets]
        for node in file.nodes:  # a loop may read what its last turn left, which is no reference of the scope's
            if not isinstance(node, cst.Name) or node.value != name or not is_name(file, node) or node in targets:
                continue
            around, at = file.scope(node), file.span(node)[0]
            other = around is None or not bound & set(around[name])
            if other or any(file.inside(node, part) for part in self.readable) or any(place <= at < start for place in earlier):
                continue
            raise refuse(f"{file.location(node)}: `{name}` of all positions is read beside the loss")


def form(node: cst.BaseExpression) -> str | None:
    """What the outermost method does to predictions: "flat", "turned", "" for nothing, the source of a cast; None for anything else."""
    if isinstance(node, cst.Attribute) and node.attr.value == "mT":
        return "turned"
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    name, values = node.func.attr.value, [arg.value for arg in node.args]
    given = tuple(literal(value) for value in values)
    if name in CLASSES_LAST:
        return "turned" if given in CLASSES_LAST[name] else None
    if name == "contiguous" and not values:
        return ""
    if name in CASTS and not values:
        return f".{name}()"
    if name == "to" and len(values) == 1 and (dotted(values[0]) or "").startswith("torch.float"):
        return f".to({dotted(values[0])})"
    if name == "flatten":
        ends = given[1:] if given[:1] == (0,) else (literal(node.args[0].value),) if keyword(node, "end_dim") and len(given) == 1 else ()
        return "flat" if len(ends) == 1 and ends[0] in (1, 2, -2) else None
    return "flat" if name in FLAT and len(values) == 2 and given[1] != -1 and not isinstance(given[0], bool) else None


def _is_place(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Ellipsis) or type(literal(node)) is int
