"""Whether a module treats each position by itself: the rows of its input are the same whether they come all together or some of them."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, own_classes
from trainflash.knobs.reading.expressions import UNKNOWN, literal, made_as, value_of
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, placed_parameters, sole

FUNCTIONS = "torch.nn.functional."
LAYERS = {
    "Linear", "LayerNorm", "RMSNorm", "Identity", "ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Sigmoid",
    "Tanh", "Softplus", "Softsign", "Hardtanh", "Hardswish", "Hardsigmoid",
}  # fmt: skip
NORMS = ("LayerNorm", "RMSNorm")  # over the last dimension, or over several that are listed
ELEMENTWISE = {"relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "sigmoid", "tanh", "softplus", "hardswish"}
NUMBERS = {"float", "half", "bfloat16", "double", "contiguous"}  # methods that leave values where they are
TURNED = {"t", "T", "mT"}
OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
HOOKED = ("forward", "backward")  # words in the names of methods that hang hooks on modules
DEEPEST = 4  # own: modules inside each other


class EachPosition:
    """Reads modules of one program."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._hooked = any(_hangs_hook(call) for file in project.parsed("hook") for call in file.calls)

    def of_call(self, file: PythonFile, call: cst.BaseExpression) -> cst.BaseExpression | None:
        """The input of `call`, if that is `module(input)`, `linear(input, weight, …)` or `input @ weight`, and each of its positions is
        treated by itself; None otherwise."""
        if isinstance(call, cst.BinaryOperation) and isinstance(call.operator, cst.MatrixMultiply):
            return call.left if _is_matrix(call.right) else None
        if not isinstance(call, cst.Call) or not call.args or call.args[0].keyword is not None or call.args[0].star:
            return None
        first, more = call.args[0].value, call.args[1:]
        if file.full_name(call.func) == f"{FUNCTIONS}linear":
            return first if all(_is_weight(arg.value) for arg in more) else None
        return first if not more and self._module(file, call.func, 0) else None

    def _module(self, file: PythonFile, node: cst.BaseExpression, depth: int) -> bool:
        """Whether the value of `node` is such a module."""
        if depth > DEEPEST or self._hooked:
            return False
        made = made_as(file, node)
        if made is not None and (file.full_name(made.func) or "").startswith("torch.nn."):
            return self._layer(file, made, depth)
        owner = own_classes.class_of(self._project, (file, node))
        return owner is not None and self._own(*owner, depth)

    def _layer(self, file: PythonFile, made: cst.Call, depth: int) -> bool:
        """Of torch's own: one of `LAYERS`, or a sequence of such."""
        name = (file.full_name(made.func) or "").removeprefix("torch.nn.").removeprefix("modules.")
        if name != "Sequential":
            over = value_of(file, made.args[0].value) if name in NORMS and made.args else None
            return name in LAYERS and not isinstance(over, (cst.List, cst.Tuple)) and not _in_place(made)
        parts = [arg.value for arg in made.args if not arg.star and arg.keyword is None]
        of_torch = all(isinstance(part, cst.Call) and (file.full_name(part.func) or "").startswith("torch.nn.") for part in parts)
        return len(parts) == len(made.args) and of_torch and all(self._layer(file, part, depth + 1) for part in parts)  # type: ignore[arg-type]

    def _own(self, file: PythonFile, owner: cst.ClassDef, depth: int) -> bool:
        """Of the program's own: a forward of one input that goes through such modules and functions alone."""
        found = own_classes.methods(self._project, file, owner, ("forward", "__call__"))
        if len(found) != 1 or found[0][1].decorators:
            return False
        where, forward = found[0]
        placed = placed_parameters(forward)
        if len(placed) != 2 or forward.params.star_kwarg is not None or forward.params.kwonly_params:
            return False
        known = {placed[1].name.value}
        for line in forward.body.body:
            small = sole(line)
            if isinstance(small, cst.Return) and small.value is not None:
                return self._follows(where, small.value, known, depth)
            if isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString):
                continue
            if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.targets[0].target, cst.Name):
                return False
            if not self._follows(where, small.value, known, depth):
                return False
            known.add(small.targets[0].target.value)
        return False

    def _follows(self, file: PythonFile, node: cst.BaseExpression, known: set[str], depth: int) -> bool:
        """Whether `node` computes each position of what the names `known` hold by itself."""
        if isinstance(node, cst.Name):
            return node.value in known
        if isinstance(node, cst.BinaryOperation):
            left, right = self._follows(file, node.left, known, depth), self._follows(file, node.right, known, depth)
            if isinstance(node.operator, cst.MatrixMultiply):
                return left and _is_matrix(node.right)
            beside = (left or _is_number(node.left)) and (right or _is_number(node.right))
            return isinstance(node.operator, OPERATORS) and (left or right) and beside
        if not isinstance(node, cst.Call):
            return False
        if isinstance(node.func, cst.Attribute) and self._follows(file, node.func.value, known, depth):
            return not node.args and node.func.attr.value in (*ELEMENTWISE, *NUMBERS)
        full = file.full_name(node.func) or ""
        if full.rpartition(".")[2] in ELEMENTWISE and full.startswith("torch."):
            plain = all(arg.keyword is not None and literal(arg.value) is not UNKNOWN for arg in node.args[1:])
            return bool(node.args) and plain and not _in_place(node) and self._follows(file, node.args[0].value, known, depth)
        given = self.of_call(file, node) if depth < DEEPEST else None
        return given is not None and self._follows(file, given, known, depth + 1)


def _hangs_hook(call: cst.Call) -> bool:
    name = callees.method_name(call)
    return name.startswith("register_") and name.endswith("hook") and any(word in name for word in HOOKED)


def _in_place(call: cst.Call) -> bool:
    """Whether a layer or function may write over its input."""
    given = keyword(call, "inplace")
    return (given is not None and literal(given.value) is not False) or any(
        arg.keyword is None and isinstance(literal(arg.value), bool) for arg in call.args
    )


def _is_number(node: cst.BaseExpression) -> bool:
    return isinstance(literal(node), (int, float))


def _is_weight(node: cst.BaseExpression) -> bool:
    """Whether it is an attribute of an object, as the weights are that `linear` is given: torch takes no others than matrices and rows."""
    return isinstance(node, cst.Attribute) and dotted(node) is not None


def _is_matrix(node: cst.BaseExpression) -> bool:
    """Whether it is a layer's or table's `weight`, turned: `x @ self.words.weight.t()`."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in TURNED and not node.args:
        node = node.func.value
    elif isinstance(node, cst.Attribute) and node.attr.value in TURNED:
        node = node.value
    return isinstance(node, cst.Attribute) and node.attr.value == "weight" and dotted(node) is not None
