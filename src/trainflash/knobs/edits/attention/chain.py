"""The steps of attention written by hand: assignments of one block, each of which only the next step reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from trainflash.knobs.reading.expressions import ATOMS, operand, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, sole


def atom(text: str) -> str:
    """Source to which something can be appended, as it is or in parentheses."""
    return text if isinstance(cst.parse_expression(text), ATOMS) else f"({text})"


def wide_mask(query: str, key: str, mask: str) -> str:
    """A mask of two or three dimensions as one of four, the scores of queries and keys of three; by one more where these are no names.

    The fused kernels take masks of two and of four dimensions alone (torch's sdp_utils, "attn_mask").
    """
    named = all(dotted(cst.parse_expression(each)) is not None for each in (query, key))
    return atom(mask) + (f".expand(1, *{query}.shape[:2], {key}.shape[1])" if named else "[None]")


@dataclass
class Chain:
    """What the steps said so far. `steps` are the assignments that the one call replaces."""

    file: PythonFile
    rank: int | None
    steps: list[cst.SimpleStatementLine | cst.If] = field(default_factory=list)
    gone: list[cst.CSTNode] = field(default_factory=list)  # what goes as well, so that its reading a step does not count
    fill: tuple[cst.BaseExpression, cst.BaseExpression] | None = None  # what is hidden, and by what number
    test: cst.BaseExpression | None = None  # whether anything is hidden or added at all
    added: bool = False  # that number is finite, and goes in as something added
    shown: bool = False  # the mask says what is not hidden
    causal: bool | cst.SimpleStatementLine = False  # whether that is what comes later, or the step that says so
    bias: cst.BaseExpression | None = None
    sign: str = ""  # of the bias
    mask: str = ""
    dropout: str = ""
    scale: str | None = None
    factor: str = ""  # what goes to the queries instead, behind them
    query: str = ""
    key: str = ""
    like: str = ""  # the queries before their dimensions are turned

    def operand(self, node: cst.BaseExpression) -> str:
        """Its source as `operand` gives it."""
        return operand(self.file, node)

    def turned(self, node: cst.BaseExpression, method: str) -> str:
        """Its source with the call of a `method` behind it, where there is one."""
        return self.operand(node) + method if method else self.text(node)

    @property
    def flat(self) -> bool:
        """Whether the tensors have three dimensions, which no fused kernel takes."""
        return self.rank == 3

    def raised(self, text: str) -> str:
        """The source of a tensor, with one more dimension in front where it has three."""
        return f"{atom(text)}[None]" if self.flat else text

    def text(self, node: cst.BaseExpression) -> str:
        """Source text of `node` with its own parentheses."""
        return self.file.outer_text(node)

    def assigned_name(self, node: cst.BaseExpression) -> tuple[cst.Name, cst.SimpleStatementLine]:
        """The plain name that `node` alone is assigned to. Raises `UsageError` where it is used otherwise."""
        file = self.file
        assign = sole(line := file.statement(node))
        plain = isinstance(assign, cst.Assign) and assign.value is node and len(assign.targets) == 1
        if not plain or not isinstance(assign.targets[0].target, cst.Name):
            raise refuse(f"{file.location(node)}: `{file.text(node)}` is used in a way that is not understood")
        return assign.targets[0].target, line

    def only_reader(self, name: cst.Name, line: cst.SimpleStatementLine | cst.If) -> cst.Name:
        """The one place that reads what `line` assigns, before it is assigned again; what goes as well does not count."""
        file = self.file
        reads, following = self.reads_after(name.value, line)
        reads = [read for read in reads if not any(file.inside(read, step) for step in self.gone)]
        if isinstance(small := sole(alone(following)), cst.AugAssign) and isinstance(small.target, cst.Name):
            reads.append(small.target)  # it reads what it assigns to
        if len(reads) != 1:
            raise refuse(f"{file.location(line)}: {name.value} is read {len(reads)} times, so it cannot go")
        if (
            following is not None
            and not self.file.inside(reads[0], following)
            and self.file.span(reads[0])[0] > self.file.span(following)[0]
        ):
            raise refuse(f"{self.file.location(line)}: {name.value} is assigned again before it is read")
        return reads[0]

    def reads_after(self, name: str, line: cst.SimpleStatementLine | cst.If) -> tuple[list[cst.Name], cst.CSTNode | None]:
        """Who reads `name` behind `line` in its block, up to the statement that assigns it again (None: none does)."""
        file = self.file
        body = list(getattr(file.parent(line), "body", ()))
        function = file.function_around(line)
        reads: list[cst.Name] = []
        for statement in body[body.index(line) + 1 :]:
            reads += [node for node in descendants(statement, cst.Name) if node.value == name and not stores(file, node)]
            if any(node.value == name and stores(file, node) for node in descendants(statement, cst.Name)):
                return reads, statement
        elsewhere = [
            node
            for node in (descendants(function, cst.Name) if function is not None else ())
            if node.value == name and not any(file.inside(node, statement) for statement in body)
        ]
        if elsewhere:
            raise refuse(f"{file.location(elsewhere[0])}: {name} is used outside the block")
        return reads, None

    def definition(self, node: cst.Name, before: list[Any] | None = None) -> tuple[cst.SimpleStatementLine, cst.BaseExpression]:
        """The assignment in front of `node` in its block (or the last of `before`), read by nothing else. Raises `UsageError` otherwise."""
        line = self.stored_last(node, before)
        small = sole(line)
        if isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.targets[0].target, cst.Name):
            assert isinstance(line, cst.SimpleStatementLine)
            if self.only_reader(small.targets[0].target, line) is node:
                return line, small.value
        raise refuse(f"{self.file.location(node)}: what {node.value} holds here is not one plain assignment above")

    def stored_last(self, node: cst.Name, before: list[Any] | None = None) -> Any:
        """The last statement in front of `node`, of its block or of `before`, in which its name is assigned; None where none is."""
        for line in reversed(self.block_before(node) if before is None else before):
            if any(each.value == node.value and stores(self.file, each) for each in descendants(line, cst.Name)):
                return line
        return None

    def block_before(self, node: cst.CSTNode) -> list[Any]:
        """The statements in front of that of `node`, in its block."""
        here = next(up for up in (node, *self.file.ancestors(node)) if isinstance(up, (cst.SimpleStatementLine, cst.If)))
        body = list(getattr(self.file.parent(here), "body", ()))
        return body[: body.index(here)]


def alone(step: cst.CSTNode | None) -> cst.CSTNode | None:
    """The one statement that a condition guards; any other step itself."""
    guarded = isinstance(step, cst.If) and isinstance(step.body, cst.IndentedBlock) and len(step.body.body) == 1
    return step.body.body[0] if guarded else step  # type: ignore[union-attr]


def stores(file: PythonFile, node: cst.Name) -> bool:
    """Whether `node` is written there, not read."""
    return isinstance(file.parent(node), (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Param))
