"""An attention module that hands out its weights, though nobody reads them: without them it runs in a fused kernel."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from trainflash.knobs.edits import calls
from trainflash.knobs.edits.attention import masks, unseen
from trainflash.knobs.edits.attention.place import attention_place
from trainflash.knobs.edits.which_call import only_call
from trainflash.knobs.effects import changes
from trainflash.knobs.kinds import CallArgument, UnreadWeights
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import argument_node, given_to, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

MODULE = "torch.nn.MultiheadAttention"
ARGUMENT = CallArgument((MODULE,), "need_weights", position=4, default=True, local="literal")
INPUTS = ("query", "key", "value")
SQUARE = "generate_square_subsequent_mask"


def unread_weights(edit: UnreadWeights, scene: Scene) -> tuple[Target, ...]:
    """The call of the module that the run saw. Raises `UsageError` where its second result is read, or where the call is not clear."""
    file, place = attention_place(scene, "the attention module is not called in this project's own source")
    call = only_call(file, place, _takes_three, "with query, key and value")
    _unread(file, call)
    unseen.by_hooks(scene.project)
    unseen.by_subclasses(scene.project, file, call)
    unseen.hidden_rows(file, call)
    target = calls.at_call(ARGUMENT, scene, file, call)
    if _hides_what_comes_later(scene.project, file, call):
        start, text = calls.insertion(file, call)
        target = target.also(Splice(file.path, start, start, text.format("is_causal=True")))
    if _drops(scene):
        target = replace(target, risk="numerics", because="its dropout draws other random numbers")
    return (target,)


def _hides_what_comes_later(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether the only mask of the call is causal, and does not say so: told, the kernel needs no mask and leaves out what it hides.

    torch heeds that where no weights are asked for and no keys are padding.
    """
    mask = keyword(call, "attn_mask") or positional(call, 5)
    if mask is None or any(arg.star for arg in call.args) or len([arg for arg in call.args if arg.keyword is None]) > 6:
        return False
    if keyword(call, "is_causal") is not None or keyword(call, "key_padding_mask") is not None or positional(call, 3) is not None:
        return False
    node = mask.value
    owner = file.function_around(call) or file.module
    if isinstance(node, cst.Name):
        values = given_to(owner, node.value)
        if len(values) != 1 or changes.changed(project, file, owner, {node.value}, but=(call,)) is not None:
            return False
        node = values[0]
    if isinstance(node, cst.Call) and (dotted(node.func) or "").endswith(SQUARE):
        return not project.functions(SQUARE)
    return masks.is_causal(file, node, boolean=True) or masks.corner_of_causal(file, node, boolean=True)


def _takes_three(call: cst.Call) -> bool:
    plain = [arg for arg in call.args if not arg.star and arg.keyword is None]
    return len(plain) + sum(keyword(call, name) is not None for name in INPUTS) >= 3


def _unread(file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` unless only the first of the two results is used."""
    up = file.parent(call)
    if isinstance(up, cst.Subscript) and up.value is call and _first(up):
        return
    target = up.targets[0].target if isinstance(up, cst.Assign) and len(up.targets) == 1 else None
    function = next((each for each in file.ancestors(call) if isinstance(each, cst.FunctionDef)), None)
    scope = function.body if function is not None else file.module
    if isinstance(target, cst.Tuple) and len(target.elements) == 2 and isinstance(target.elements[1].value, cst.Name):
        weights = target.elements[1].value
        for read in _reads(file, scope, weights):
            raise refuse(f"{file.location(read)}: the weights are read: `{weights.value}`")
        return
    if isinstance(target, cst.Name):
        for read in _reads(file, scope, target):
            around = file.parent(read)
            if not (isinstance(around, cst.Subscript) and around.value is read and _first(around)):
                raise refuse(f"{file.location(read)}: `{target.value}` may be read with its weights")
        return
    raise refuse(f"{file.location(call)}: who reads the weights cannot be told")


def _reads(file: PythonFile, scope: cst.CSTNode, name: cst.Name) -> list[cst.Name]:
    stores = (cst.AssignTarget, cst.Param, cst.CompFor, cst.For)
    found = []
    for node in descendants(scope, cst.Name):
        up = file.parent(node)
        element = isinstance(up, cst.Element) and isinstance(file.parent(file.parent(up)), (*stores, cst.CompFor))
        stored = (isinstance(up, stores) and getattr(up, "iter", None) is not node) or element
        named = (isinstance(up, cst.Attribute) and up.attr is node) or (isinstance(up, cst.Arg) and up.keyword is node)
        if node.value == name.value and node is not name and not stored and not named:
            found.append(node)
    return found


def _first(part: cst.Subscript) -> bool:
    index = part.slice[0].slice if len(part.slice) == 1 else None
    return isinstance(index, cst.Index) and literal(index.value) == 0


def _drops(scene: Scene) -> bool:
    """Whether some attention module of the program may drop weights, which another kernel draws in another way."""
    for file in scene.project.parsed("MultiheadAttention"):
        for call in file.calls:
            if (file.full_name(call.func) or "").split(".")[-1] == "MultiheadAttention":
                given = argument_node(file, call, "dropout", 2)
                if any(arg.star for arg in call.args) or (given is not None and literal(given) not in (0, 0.0)):
                    return True
    return False
