"""Which number format an expression has, as far as the source says: arrays of NumPy, and the types that are named for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, index_of, literal, passed, place_in
from trainflash.knobs.reading.listed import entries
from trainflash.knobs.reading.python_source import (
    ASSIGNS,
    PythonFile,
    descendants,
    dotted,
    has_splat,
    keyword,
    parameter,
    positional,
    string_value,
    targets_of,
)
from trainflash.knobs.reading.tree import children

# "whole": an array of whole numbers; "other": single ones, truth values, text, 16-bit formats; "itself": what a variable gives itself anew,
# as in `x = x + y`
Format = Literal["float64", "float32", "whole", "other", "number", "tensor", "generator", "itself"]
How = Literal["whole", "entry"] | int  # the value of an expression, each of its entries, or one of several things that a call returns
Given = tuple[PythonFile, "cst.BaseExpression | None", How]
SPLITS = "sklearn.model_selection.train_test_split"  # returns two parts of each thing that it is given, of its format
FEW = 6
DEEPEST = 32  # own: a simulation that returns a list of what its functions made has about twenty links
DOUBLE = {"numpy.float64", "numpy.double", "numpy.float_", "torch.float64", "torch.double", "float"}
SINGLE = {"numpy.float32", "numpy.single", "torch.float32", "torch.float"}
WHOLE = {"int", "bool", "str", "numpy.long", "torch.long", "torch.short", "torch.half", "torch.bool", "numpy.bool_", "torch.bfloat16"}
WHOLE |= {f"{module}.{kind}{bits}" for module in ("numpy", "torch") for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
WHOLE |= {"numpy.float16", "torch.float16", "numpy.intp"}
TYPE_WORDS: dict[str, Format] = {"float64": "float64", "double": "float64", "f8": "float64", "<f8": "float64", "d": "float64"}
TYPE_WORDS |= {"float32": "float32", "f4": "float32", "<f4": "float32", "f": "float32"}
TYPE_WORDS |= {f"{sign}int{bits}": "other" for sign in ("", "u") for bits in (8, 16, 32, 64)}
# float64 unless told, and where their type may stand
MAKES: dict[str, int | None] = {"zeros": 1, "ones": 1, "empty": 1, "eye": 3, "linspace": 5, "identity": 1, "logspace": 5, "geomspace": 4}
MAKES |= {"loadtxt": 1, "genfromtxt": 1, "fromfile": 1}
MAKES |= dict.fromkeys(("bartlett", "blackman", "corrcoef", "cov", "hamming", "hanning", "interp", "kaiser"))
KEEPS = {"asarray": 1, "array": 1, "ascontiguousarray": 1, "copy": None, "transpose": None, "abs": None, "clip": None, "flip": None}
KEEPS |= {"repeat": None, "tile": None, "roll": None, "sort": None, "squeeze": None, "reshape": None, "broadcast_to": None, "where": None}
KEEPS |= {"sum": 2, "prod": 2, "mean": 2, "std": 2, "var": 2, "cumsum": 2, "max": None, "min": None, "amax": None, "amin": None}
KEEPS |= {"diff": None, "square": None, "median": None, "norm": None, "gradient": None, "average": None}
PAIRS = {
    "maximum",
    "minimum",
    "hypot",
    "outer",
    "dot",
    "cross",
    "matmul",
    "multiply",
    "add",
    "subtract",
    "divide",
}  # of their operands' kind
JOINS = {"stack", "concatenate", "vstack", "hstack", "column_stack"}
FLOATING = {"mean", "std", "var", "median", "norm", "gradient", "divide", "hypot", "arctan2", "average"}  # of whole numbers, too
FLOATS = {"sin", "cos", "tan", "exp", "log", "log1p", "log2", "log10", "expm1", "sqrt", "tanh", "arctan"}
METHODS = {"reshape", "copy", "transpose", "squeeze", "ravel", "flatten", "clip", "repeat", "swapaxes", "mean", "std", "sum", "max", "min"}
DRAWS = {"normal", "standard_normal", "uniform", "random", "rand", "randn", "gamma", "beta", "exponential", "dirichlet", "lognormal"}
DRAWS |= {"laplace", "standard_t", "random_sample", "multivariate_normal", "standard_exponential", "standard_gamma", "chisquare"}
COUNTS = {"integers", "randint", "poisson", "binomial", "multinomial"}
SHUFFLES = {"permutation", "permuted"}
NO_TENSORS = {"load", "Size", "initial_seed", "device", "dtype"}  # functions of torch that return something else, or what a file holds
LEAVES = {"numpy", "tolist", "item", "size", "dim", "numel", "__array__"}  # methods of a tensor that return something else
GENERATORS = {"numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator"}


class Formats:
    """Answers for one program; None wherever it is not known."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._depth = 0
        self._asked: set[int] = set()  # variables and functions that are being looked into

    def named_type(self, file: PythonFile, node: cst.BaseExpression | None) -> Format | None:
        """The format that `node` names, such as `np.float64`, `"float32"` or a constant that holds one."""
        if node is None:
            return None
        word, full = string_value(node), file.full_name(node)
        if word is not None:
            return TYPE_WORDS.get(word.removeprefix("torch."))
        if full in DOUBLE:
            return "float64"
        if full in SINGLE or full in WHOLE:
            return "float32" if full in SINGLE else "other"
        if not isinstance(node, cst.Name) or any(parameter(up, node.value) is not None for up in file.ancestors(node)):
            return None
        found = self.constant(file, node)
        return self.named_type(*found) if found is not None else None

    def constant(self, file: PythonFile, node: cst.Name) -> tuple[PythonFile, cst.BaseExpression] | None:
        """What the module's variable is given, where the whole program gives that name something only once."""
        given = [(where, value) for where in self.project.parsed(node.value) for value in given_to(where.module, node.value)]
        if len(given) != 1 or (given[0][0] is not file and node.value not in file.imported):
            return None
        where, value = given[0]
        line = where.parent(where.parent(value))  # type: ignore[arg-type]
        return given[0] if line is not None and isinstance(where.parent(line), cst.Module) else None

    def of(self, file: PythonFile, node: cst.BaseExpression) -> Format | None:
        """The format of what `node` computes."""
        found = self._within(file, node)
        return None if found == "itself" and not self._asked else found

    def has_fractions(self, file: PythonFile, node: cst.BaseExpression, depth: int = FEW) -> bool:
        """Whether an array is no array of whole numbers, though it may hold float32 or float64: a quotient, or what is made of one."""
        if depth < 0:
            return False
        if isinstance(node, cst.BinaryOperation):
            fraction = isinstance(node.operator, cst.Divide)
            sides = (node.left, node.right) if isinstance(node.operator, (cst.Add, cst.Subtract, cst.Multiply)) else ()
            return fraction or any(isinstance(literal(side), float) or self.has_fractions(file, side, depth - 1) for side in sides)
        if isinstance(node, (cst.UnaryOperation, cst.Subscript)):
            return self.has_fractions(file, node.expression if isinstance(node, cst.UnaryOperation) else node.value, depth - 1)
        if isinstance(node, cst.Name):
            function = file.function_around(node)
            values = given_to(function, node.value) if function is not None and parameter(function, node.value) is None else []
            return bool(values) and all(self.has_fractions(file, value, depth - 1) for value in values)
        if not isinstance(node, cst.Call):
            return False
        module, _, name = (file.full_name(node.func) or "").rpartition(".")
        typed = keyword(node, "dtype") is not None
        if module == "numpy":
            joined = (self.has_fractions(file, each, depth - 1) for each in _sources(node, name))
            return not typed and (name in FLOATS | FLOATING or any(joined))
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in METHODS - {"sum", "max", "min"}:
            return not typed and self.has_fractions(file, node.func.value, depth - 1)
        meant = list(callees.meant(self.project, file, node))
        if len(meant) != 1 or meant[0][1].decorators or any(True for _ in descendants(meant[0][1].body, cst.Yield)):
            return False
        returned = [each.value for each in descendants(meant[0][1].body, cst.Return)]  # type: ignore[attr-defined]
        return bool(returned) and all(value is not None and self.has_fractions(meant[0][0], value, depth - 1) for value in returned)

    def _within(self, file: PythonFile, node: cst.BaseExpression) -> Format | None:
        if self._depth >= DEEPEST:
            return None
        self._depth += 1
        try:
            return self._of(file, node)
        finally:
            self._depth -= 1

    def _once(self, asked: cst.CSTNode, parts: Iterable[Given]) -> Format | None:
        """What `parts` agree on, which all belong to `asked`, a variable's assignment or a function."""
        if id(asked) in self._asked:
            return "itself"
        self._asked.add(id(asked))
        try:
            found = [None if node is None else self._taken(file, node, how) for file, node, how in parts]
            kind = self._alike(found)
            return None if "itself" in found and kind in ("whole", "other", "number") else kind  # 0 becomes a float where it is divided
        finally:
            self._asked.discard(id(asked))

    def _taken(self, file: PythonFile, node: cst.BaseExpression, how: How) -> Format | None:
        if how == "whole":
            return self._within(file, node)
        if how == "entry":
            listed = entries(file, node)
            if listed is None:
                return self._within(file, node)
            return self._alike([None if each.node is None else self._within(each.file, each.node) for each in listed])
        return self._part(file, node, how) if isinstance(node, cst.Call) else None

    def _part(self, file: PythonFile, call: cst.Call, place: int) -> Format | None:
        """The format of one of several things that a call returns."""
        if file.full_name(call.func) == SPLITS:
            given = positional(call, place // 2)
            return None if given is None else self._within(file, given.value)
        function = self._own(file, call)
        return None if function is None else self._returned(*function, place)

    def _of(self, file: PythonFile, node: cst.BaseExpression) -> Format | None:
        if isinstance(literal(node), (int, float, str)) or isinstance(node, cst.Comparison):
            return "number" if isinstance(literal(node), float) else "other"
        if isinstance(node, cst.Call):
            return self._call(file, node)
        if isinstance(node, cst.BinaryOperation):
            return self._computed(file, node)
        if isinstance(node, cst.UnaryOperation):
            return self.of(file, node.expression)
        if isinstance(node, cst.Subscript):
            return self.of(file, node.value)
        if isinstance(node, cst.Attribute) and node.attr.value == "T":
            return self.of(file, node.value)
        if isinstance(node, (cst.Name, cst.Attribute)):
            return "generator" if file.full_name(node) == "numpy.random" else self._held(file, node)
        return None

    def _held(self, file: PythonFile, node: cst.Name | cst.Attribute) -> Format | None:
        """A variable of the function or the module, or an attribute of the object: what all that it is given agree on."""
        name = dotted(node)
        if name is None or (isinstance(node, cst.Attribute) and not name.startswith("self.")) or self._set_by_name(file, name):
            return None
        kinds = cst.ClassDef if isinstance(node, cst.Attribute) else (cst.FunctionDef, cst.Module)
        for owner in (up for up in file.ancestors(node) if isinstance(up, kinds)):
            param = parameter(owner, name)
            bound = list(_bound_otherwise(owner, name, param))
            if None in bound:
                return None
            values = [*given_to(owner, name), *_added(owner, name)]
            if not isinstance(owner, cst.ClassDef):  # functions within have names of their own
                values = [each for each in values if (file.function_around(each) or file.module) is owner]
            given: list[Given] = [(file, value, "whole") for value in values]
            given += [(file, *each) for each in bound if each is not None]
            if isinstance(owner, cst.ClassDef) and given and self._set_elsewhere(file, owner, name.removeprefix("self.")):
                return None
            if param is not None:
                return self._once(param, [*self._passed(file, owner, param), *given])  # type: ignore[arg-type]
            if given:
                return self._once(given[0][1], given)
        return None

    def _set_by_name(self, file: PythonFile, name: str) -> bool:
        """Whether a function sets the variable of another scope, or something sets attributes whose names it works out."""
        if not name.startswith("self."):
            return any(item.name.value == name for node in file.each((cst.Global, cst.Nonlocal)) for item in node.names)
        calls = [call for where in self.project.parsed("setattr") for call in where.calls if dotted(call.func) == "setattr"]
        return any(len(call.args) < 2 or string_value(call.args[1].value) is None for call in calls)

    def _set_elsewhere(self, file: PythonFile, owner: cst.ClassDef, attribute: str) -> bool:
        """Whether anything outside the class sets an attribute of that name."""
        return any(
            isinstance(target, cst.Attribute) and target.attr.value == attribute
            for where in self.project.parsed(attribute)
            for node in where.nodes
            if isinstance(node, ASSIGNS) and not (where is file and where.inside(node, owner))
            for target in targets_of(node)
        )

    def _passed(self, file: PythonFile, function: cst.FunctionDef, param: cst.Param) -> list[Given]:
        """What the calls of `function` that the program shows give the parameter; None for what cannot be told."""
        owner = file.class_of(function) if function.name.value == "__init__" else None
        if self._handed_on(function.name.value if owner is None else owner.name.value):
            return [(file, None, "whole")]
        index = index_of(file, function, param)
        if index is not None and index < 0:  # `self`
            return [(file, None, "whole")]
        found: list[Given] = []
        for where, call in callers.sites(self.project, file, function):
            try:
                node = passed(where, call, file, function, param)
            except UsageError:
                return [(where, None, "whole")]
            found.append((where, param.default if node is None and not has_splat(call, "**") else node, "whole"))
        return found

    def _handed_on(self, name: str) -> bool:
        """Whether the program names a function without calling it, as `map` needs it: then not all of its calls are shown."""
        for file in self.project.parsed(name):
            for node in (each for each in file.nodes if (dotted(each) or "").split(".")[-1] == name):
                up = file.parent(node)
                told = isinstance(up, (cst.FunctionDef, cst.ImportAlias, cst.Attribute, cst.AsName, cst.Param))
                told |= isinstance(up, cst.ClassDef) and up.name is node
                told |= any(parameter(around, name) is not None for around in file.ancestors(node))  # a name of that function's own
                if not told and not (isinstance(up, cst.Call) and up.func is node) and not (isinstance(up, cst.Arg) and up.keyword is node):
                    return True
        return False

    def _call(self, file: PythonFile, call: cst.Call) -> Format | None:
        full = file.full_name(call.func) or ""
        module, _, name = full.rpartition(".")
        if full in ("int", "len", "ord", "bool", "str"):
            return "other"
        if module.split(".")[0] == "torch":
            return None if name in NO_TENSORS else "tensor"
        if full in GENERATORS:
            return "generator"
        if module == "numpy":
            return self._numpy(file, call, name)
        if module == "numpy.linalg":
            return self._numpy(file, call, name)
        function = self._own(file, call)
        if function is not None:
            return self._returned(*function)
        if not isinstance(call.func, cst.Attribute):
            return None
        method, base = call.func.attr.value, call.func.value
        if method == "astype":
            given = keyword(call, "dtype") or positional(call, 0)
            return self.named_type(file, given.value) if given is not None else None
        found = self.of(file, base)
        if found == "generator":
            return self._drawn(file, call, method)
        if found == "tensor":
            return None if method in LEAVES else "tensor"
        return found if method in METHODS and keyword(call, "dtype") is None and found in ("float64", "float32", "itself") else None

    def _own(self, file: PythonFile, call: cst.Call) -> callees.Function | None:
        """The one function of the program's that is called; None for a class, and where several may be."""
        shadowed = isinstance(call.func, cst.Name) and any(parameter(up, call.func.value) is not None for up in file.ancestors(call))
        sure = (isinstance(call.func, cst.Name) and not shadowed) or callees.own_method(self.project, file, call)
        own = list(callees.meant(self.project, file, call)) if sure else []
        return own[0] if len(own) == 1 and own[0][1].name.value not in callees.CONSTRUCTORS else None

    def _returned(self, file: PythonFile, function: cst.FunctionDef, place: int | None = None) -> Format | None:
        """What all returns of a function of the program's agree on, or their parts at one `place`."""
        if any(True for _ in descendants(function.body, cst.Yield)) or function.decorators:
            return None
        values = [each.value for each in descendants(function.body, cst.Return)]  # type: ignore[attr-defined]
        if place is None:
            return self._once(function, [(file, value, "whole") for value in values])
        parts = [_element_at(value, place) for value in values]
        return self._once(parts[0], [(file, part, "whole") for part in parts]) if parts and parts[0] is not None else None

    def _numpy(self, file: PythonFile, call: cst.Call, name: str) -> Format | None:
        first = positional(call, 0)
        if name == "arange":
            return self._typed(file, call, 3, _counted(call))
        if name in MAKES:
            return self._typed(file, call, MAKES[name], "float64")
        if name in FLOATS | set(KEEPS) | JOINS | PAIRS:
            parts = [(file, first.value)] if first is not None else []
            if parts and isinstance(parts[0][1], (cst.List, cst.Tuple)):
                parts = [(file, element.value) for element in parts[0][1].elements]
            elif name in JOINS:
                listed = entries(file, first.value) if first is not None else None
                if not listed or any(each.node is None for each in listed):
                    return None
                parts = [(each.file, each.node) for each in listed if each.node is not None]
            if name == "where":
                parts = [(file, arg.value) for arg in call.args[1:]]
            elif name in PAIRS or name == "clip":
                bounds = [arg.value for arg in call.args[: 3 if name == "clip" else 2]]
                parts = [(file, each) for each in bounds if not isinstance(literal(each), (int, float)) and dotted(each) != "None"]
            found = [self.of(*part) for part in parts]
            kept = "float64" if "float64" in found and not {None, "tensor"} & set(found) else self._alike(found)
            halves = any(isinstance(literal(arg.value), float) for arg in call.args) and kept == "whole"
            kept = "float64" if halves or kept == "number" or (name in FLOATS | FLOATING and kept in ("whole", "other")) else kept
            return self._typed(file, call, KEEPS.get(name), kept)
        return None

    def _typed(self, file: PythonFile, call: cst.Call, place: int | None, without: Format | None) -> Format | None:
        """The format that the call's `dtype` names, else the one `without` it."""
        given = keyword(call, "dtype") or positional(call, place)
        return without if given is None else self.named_type(file, given.value)

    def _drawn(self, file: PythonFile, call: cst.Call, method: str) -> Format | None:
        """What a generator of NumPy's gives."""
        if method in SHUFFLES and call.args:
            return self.of(file, call.args[0].value)
        if method in DRAWS | COUNTS:
            return "whole" if method in COUNTS else self._typed(file, call, None, "float64")
        return None

    def _computed(self, file: PythonFile, node: cst.BinaryOperation) -> Format | None:
        """Of an array of float64 and any other array or number float64 comes out."""
        if isinstance(node.operator, (cst.Modulo, cst.BitAnd, cst.BitOr, cst.LeftShift, cst.RightShift)):
            return None
        sides = [self.of(file, side) for side in (node.left, node.right)]
        numbers = [kind == "number" or isinstance(literal(side), int) for kind, side in zip(sides, (node.left, node.right), strict=True)]
        if all(numbers):
            return "number" if "number" in sides else None
        if "itself" in sides:
            other = sides[1] if sides[0] == "itself" else sides[0]
            return other if other in ("float64", "float32", "itself") else "itself" if any(numbers) else None
        if "tensor" in sides:
            return "tensor" if sides[0] == sides[1] or any(numbers) else None
        if "whole" in sides and isinstance(node.operator, cst.Divide):
            return "float64"
        if "whole" in sides and set(sides) <= {"whole", "other", "number"}:
            return "float64" if "number" in sides else "whole"
        if None in sides or not {"float64", "float32"} & set(sides):
            return None
        return "float64" if "float64" in sides else "float32" if any(numbers) or sides[0] == sides[1] else None

    @staticmethod
    def _alike(found: list[Format | None]) -> Format | None:
        kinds = set(found) - {"itself"} or set(found)
        return kinds.pop() if len(kinds) == 1 else None


def _sources(call: cst.Call, name: str) -> list[cst.BaseExpression]:
    """What NumPy's function of that name joins or rearranges: where one of them holds fractions, the result does."""
    first = positional(call, 0)
    if first is None or name not in JOINS | set(KEEPS):
        return []
    if name == "where":
        return [arg.value for arg in call.args[1:]]
    listed = isinstance(first.value, (cst.List, cst.Tuple))
    return [each.value for each in first.value.elements] if listed else [first.value] if name in KEEPS else []  # type: ignore[attr-defined]


def _counted(call: cst.Call) -> Format | None:
    """What `arange` gives: one bound is a whole number in practice, of several it has to be seen."""
    values = [literal(arg.value) for arg in call.args if arg.keyword is None]
    if any(isinstance(value, float) for value in values):
        return "float64"
    one = call.args[0].value if len(values) == 1 else None
    counts = isinstance(one, (cst.Name, cst.Attribute)) or (isinstance(one, cst.Call) and dotted(one.func) in ("len", "int"))
    return "whole" if counts or all(isinstance(value, int) for value in values) else None


def _added(owner: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
    return [node.value for node in descendants(owner, cst.AugAssign) if dotted(node.target) == name]  # type: ignore[attr-defined]


def _bound_otherwise(owner: cst.CSTNode, name: str, param: cst.Param | None) -> Iterator[tuple[cst.BaseExpression, How] | None]:
    """What loops and unpacked results give `name`; None for what is not followed, such as a context or another parameter."""
    todo: list[cst.CSTNode] = [owner]
    while todo:
        node = todo.pop()
        if isinstance(node, cst.Param) and node.name.value == name and node is not param:
            yield None
        elif isinstance(node, (cst.For, cst.CompFor)) and _gives(node.target, name):
            yield _in_turn(node.target, node.iter, name)
        elif (isinstance(node, cst.AsName) and _gives(node.name, name)) or (isinstance(node, cst.NamedExpr) and _gives(node.target, name)):
            yield None
        elif isinstance(node, cst.Assign) and not isinstance(node.value, (cst.Tuple, cst.List)):
            for target in (each.target for each in node.targets if isinstance(each.target, (cst.Tuple, cst.List))):
                if _gives(target, name):
                    place = place_in(target, name)
                    yield None if place is None or len(node.targets) > 1 else (node.value, place)
        todo += [child for child in children(node) if not isinstance(owner, cst.Module) or not isinstance(child, cst.FunctionDef)]


def _in_turn(target: cst.BaseExpression, over: cst.BaseExpression, name: str) -> tuple[cst.BaseExpression, How] | None:
    """Of what a loop's variable is an entry: of `x`, also in `enumerate(x)` and `zip(x, y)`."""
    if dotted(target) == name:
        return over, "entry"
    place, call = place_in(target, name), over if isinstance(over, cst.Call) else None
    if place is None or call is None or dotted(call.func) not in ("zip", "enumerate"):
        return None
    given = positional(call, place if dotted(call.func) == "zip" else place - 1) if place or dotted(call.func) == "zip" else None
    return None if given is None else (given.value, "entry")


def _element_at(node: cst.BaseExpression | None, place: int) -> cst.BaseExpression | None:
    """The element of a tuple that is written out, without stars."""
    plain = isinstance(node, cst.Tuple) and not any(isinstance(each, cst.StarredElement) for each in node.elements)
    return node.elements[place].value if plain and place < len(node.elements) else None  # type: ignore[union-attr]


def _gives(target: cst.BaseExpression, name: str) -> bool:
    return any(dotted(part) == name for part in _parts(target))


def _parts(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What an unpacking gives values to, however deep."""
    if isinstance(target, (cst.Tuple, cst.List)):
        for each in target.elements:
            yield from _parts(each.value)
    else:
        yield target
