"""Hooks inside a Python function of torch's: it stays the function that it was, and its caller the line below it on the stack.

A function around it would be another object, with another signature; a warning that names its caller would name ours; and TorchScript,
which looks functions up by identity and reads their source, would compile ours. Here the function's own code is compiled once more from
its source, with a call before its first line and one when it is left, and takes the place of the old one. Lines and names stay.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import operator

_FUTURE = functools.reduce(operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))
_original: dict = {}  # function -> (the tree of its source, its code), before the first hook
_layers: dict = {}  # function -> [(enter, leave, names of the arguments that `enter` is given, whether `leave` is given the result)]


def hook(function, enter, leave, given: tuple = (), result: bool = False) -> None:
    """Call `enter(*arguments named by given)` first, and `leave(what that returned)` last, with the `result` where that is wanted.

    `leave` is called only where `enter` returned something true. What either raises reaches the program. ValueError where the source does
    not say what the function does.
    """
    if function not in _original:
        _original[function] = _source(function)
    layers = [*_layers.get(function, ()), (enter, leave, given, result)]
    tree, code = _original[function]
    function.__globals__.update({f"_trainflash_{tree.name}_{i}_{j}": layer[j] for i, layer in enumerate(layers) for j in (0, 1)})
    for number, layer in enumerate(layers):
        tree = _with(tree, number, layer)
    function.__code__ = _compiled(tree, code)
    _layers[function] = layers


def _source(function) -> tuple:
    """(the definition as a tree with the file's line numbers, the code)."""
    code = function.__code__
    lines, first = inspect.getsourcelines(code)
    if lines[0][0].isspace():  # a method: its docstring is indented with it, and has to stay as it is
        tree = ast.parse("".join(("if True:\n", *lines))).body[0].body[0]
        ast.increment_lineno(tree, first - 2)
    else:
        tree = ast.parse("".join(lines)).body[0]
        ast.increment_lineno(tree, first - 1)
    tree.decorator_list, tree.returns = [], None
    arguments = tree.args
    arguments.defaults = [ast.copy_location(ast.Constant(None), each) for each in arguments.defaults]  # evaluated by nobody
    arguments.kw_defaults = [each and ast.copy_location(ast.Constant(None), each) for each in arguments.kw_defaults]
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None
    if code.co_freevars or _outline(_compiled(tree, code)) != _outline(code):
        raise ValueError(f"{function.__qualname__} is not what its source says")
    return tree, code


def _outline(code) -> tuple:
    """What two compilations of one source agree in; the instructions also depend on the rest of the file."""
    literals = [each for each in code.co_consts if isinstance(each, (str, int, float, tuple))]
    return code.co_names, code.co_varnames, code.co_argcount, code.co_kwonlyargcount, code.co_flags, literals


def _compiled(tree, code):
    module = compile(ast.Module([tree], []), code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    found = next(each for each in module.co_consts if hasattr(each, "co_code"))
    names = {"co_name": code.co_name, "co_firstlineno": code.co_firstlineno}
    return found.replace(**names, **({"co_qualname": code.co_qualname} if hasattr(code, "co_qualname") else {}))


def _with(tree, number: int, layer: tuple):
    """The definition with one layer of hooks around all that it does."""
    _, _, given, result = layer
    enter, leave = f"_trainflash_{tree.name}_{number}_0", f"_trainflash_{tree.name}_{number}_1"
    token, returned = f"_trainflash_token_{number}", f"_trainflash_result_{number}"
    body = list(tree.body)
    documented = ast.get_docstring(tree, clean=False) is not None
    before = body[:1] if documented else []
    rest = body[len(before) :]
    if result:
        rest = [_Returning(returned).visit(statement) for statement in copy.deepcopy(rest)]
    end = f"{leave}({token}, {returned})" if result else f"{leave}({token})"
    begin = f"{token} = {enter}({', '.join(given)})\n{returned if result else token} {'= None' if result else ''}"
    frame = ast.parse(f"{begin}\ntry:\n    pass\nfinally:\n    if {token}:\n        {end}")
    frame.body[2].body = rest
    for statement in frame.body:
        _at(statement, rest, body[0].lineno)
    made = ast.FunctionDef(name=tree.name, args=tree.args, body=[*before, *frame.body], decorator_list=[], returns=None, type_comment=None)
    if "type_params" in ast.FunctionDef._fields:
        made.type_params = []
    return ast.copy_location(made, tree)


def _at(statement, rest: list, line: int) -> None:
    """Lines of ours are the function's first one; `rest` keeps its own."""
    todo = [statement]
    while todo:
        node = todo.pop()
        if "lineno" in node._attributes:
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
        todo += [each for each in ast.iter_child_nodes(node) if all(each is not own for own in rest)]


class _Returning(ast.NodeTransformer):
    """What is returned gets a name first."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Return(self, node):
        kept = ast.Assign([ast.Name(self._name, ast.Store())], node.value or ast.Constant(None), lineno=node.lineno)
        given = ast.Return(ast.Name(self._name, ast.Load()))
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in (kept, given)]

    def visit_FunctionDef(self, node):
        return node

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_FunctionDef
