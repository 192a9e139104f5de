"""Padding that is asked for in words: `"max_length"` of a tokenizer, or a setting that the program compares with such a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.batches.collating import collate_function
from trainflash.knobs.edits.padding import tokenized
from trainflash.knobs.kinds import PaddingSetting
from trainflash.knobs.reading import callees, lookups, sources
from trainflash.knobs.reading.expressions import refuse, same, short
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat, keyword, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit

FULL, LONGEST = "max_length", "longest"  # the words of Hugging Face's tokenizers
FULL_WORDS = (FULL, "max", "fixed", "static", "full")
LONGEST_WORDS = (LONGEST, "batch", "dynamic", "batch_longest", "max_in_batch", "longest_in_batch")
SWITCH = "pad_to_max_length"
REPEATED = (cst.For, cst.While, cst.ListComp, cst.GeneratorExp, cst.DictComp, cst.SetComp, cst.Lambda)


def padding_setting(edit: PaddingSetting, scene: Scene) -> tuple[Target, ...]:
    """Where the word is typed that makes batches as wide as the limit. Raises `UsageError` with the reason when there is none."""
    reasons: list[UsageError] = []
    try:
        reached = list(callees.reached(scene.project, [collate_function(scene)]))
    except UsageError:
        reached = []
    for found in (_asked, _compared):
        for file, function in reached:
            for attempt in found(scene, file, function):
                try:
                    target = attempt()
                except UsageError as bad:
                    reasons.append(bad)
                    continue
                if target is not None:
                    return (target,)
    otherwise: list[UsageError] = []
    for find in (_switched, _before_batches):
        try:
            return (find(scene),)
        except UsageError as bad:
            otherwise.append(bad)
    raise reasons[0] if reasons else otherwise[-1]


def _asked(scene: Scene, file: PythonFile, function: cst.FunctionDef) -> Iterator[Callable[[], Target | None]]:
    """Calls of a tokenizer in the collate function that ask for the full length."""
    for call in descendants(function.body, cst.Call):
        arg = keyword(call, "padding")  # type: ignore[arg-type]
        if (arg is not None or has_splat(call, "**")) and _library_pads(scene, file, call):  # type: ignore[arg-type]
            yield lambda call=call, spread=arg is None: _word(scene, file, function, call, spread=spread)


def _library_pads(scene: Scene, file: PythonFile, call: cst.Call) -> bool:
    """Whether `call` may be one of a tokenizer: no function of the program takes it."""
    return not any(True for _ in callees.meant(scene.project, file, call)) or "tokenizer" in file.text(call.func).lower()


def _whole_batch(file: PythonFile, function: cst.FunctionDef, call: cst.CSTNode) -> None:
    for up in file.ancestors(call):
        if up is function:
            return
        if isinstance(up, REPEATED):
            raise refuse(f"{file.location(call)}: each sample is padded by itself there, before the longest of its batch is known")


def _word(scene: Scene, file: PythonFile, function: cst.FunctionDef, call: cst.Call, *, spread: bool) -> Target | None:
    """The argument `padding` of `call`, also where the call unpacks it; None where it is something else."""
    try:
        found = sources.Resolver(scene.project, FULL).argument(file, call, "padding", None)
    except UsageError:
        if spread:  # nothing says that what it unpacks is about padding
            return None
        raise
    if found is None or found.value != FULL:
        return None
    _whole_batch(file, function, call)
    _alone(scene, _written(file, call, found))
    return _target(file, call, found, LONGEST, f"padding of the call at {file.location(call)}")


def _written(file: PythonFile, node: cst.CSTNode, found: Source) -> Source:
    if found.write is None:
        raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is {found.shown}, which is computed")
    return found


def _compared(scene: Scene, file: PythonFile, function: cst.FunctionDef) -> Iterator[Callable[[], Target | None]]:
    """Settings that the collate function, or what it calls, compares with a word for the full length or for the longest."""
    for node in descendants(function.body, cst.Comparison):
        setting, word = _pair(node)  # type: ignore[arg-type]
        of_padding = word in (FULL, LONGEST) or (setting is not None and "pad" in _name(setting).lower())
        if setting is not None and of_padding and word in (*FULL_WORDS, *LONGEST_WORDS):
            yield lambda node=node, setting=setting: _by_comparison(scene, file, node, setting)


def _pair(node: cst.Comparison) -> tuple[cst.BaseExpression | None, str | None]:
    """The setting and the word, for `setting == "word"` and `"word" != setting`."""
    if len(node.comparisons) != 1 or not isinstance(node.comparisons[0].operator, (cst.Equal, cst.NotEqual)):
        return None, None
    sides = (node.left, node.comparisons[0].comparator)
    for setting, word in (sides, sides[::-1]):
        if string_value(word) is not None and (dotted(setting) is not None or lookups.key_of(setting) is not None):
            return setting, string_value(word)
    return None, None


def _by_comparison(scene: Scene, file: PythonFile, node: cst.Comparison, setting: cst.BaseExpression) -> Target | None:
    compared = [(where, each, *_pair(each)) for where in scene.project.parsed() for each in where.each(cst.Comparison)]
    same_setting = [(where, each, word) for where, each, other, word in compared if other is not None and _name(other) == _name(setting)]
    words = [word for _, _, word in same_setting]
    expected = next((word for word in words if word in FULL_WORDS), FULL)
    found = _source(scene, file, setting, expected)
    if found is None:
        return None
    wanted = next((word for word in words if word in LONGEST_WORDS), LONGEST if expected == FULL else None)
    if wanted is None:
        raise refuse(f"{file.location(node)}: no word is compared with `{file.text(setting)}` that says to pad to the longest sample")
    if wanted not in words:
        _other_way(scene, same_setting)
    _alone(scene, found)
    return _target(file, node, found, wanted, f"`{file.text(setting)}`, which {file.location(node)} compares,")


def _other_way(scene: Scene, comparisons: list[tuple[PythonFile, cst.Comparison, str | None]]) -> None:
    """Raises `UsageError` where the program takes only words that it knows."""
    for file, node, _ in comparisons:
        around = file.function_around(node) or file.module
        for each in descendants(around, (cst.Raise, cst.Assert)):
            raise refuse(f"{file.location(each)}: `{file.text(each)}` may take no other word than those that are compared")


def _name(node: cst.BaseExpression) -> str:
    key = lookups.key_of(node)
    return key[1] if key is not None else dotted(node) or ""


def _source(scene: Scene, file: PythonFile, node: cst.BaseExpression, expected: object) -> Source | None:
    """Where `node` is typed; None where it is something else than `expected`."""
    found = sources.Resolver(scene.project, expected).source(file, node)
    if found is None or not same(found.value, expected):
        return None
    return _written(file, node, found)


def _alone(scene: Scene, found: Source) -> None:
    """Raises `UsageError` where anything but comparisons, conditions and tokenizers reads the setting."""
    plain = set()
    for where in scene.project.parsed():
        for each in where.nodes:
            up = where.parent(each)
            if isinstance(each, cst.Comparison) and _pair(each)[0] is not None:
                plain.add(str(where.location(_pair(each)[0])))  # type: ignore[arg-type]
            elif isinstance(each, cst.Arg) and each.keyword is not None and each.keyword.value == "padding":
                plain.add(str(where.location(each.value)))
            elif isinstance(up, (cst.If, cst.IfExp)) and up.test is each:
                plain.add(str(where.location(each.expression if isinstance(each, cst.UnaryOperation) else each)))
    for use in found.readers:
        if use.kind != "loader" and str(use.location) not in plain:
            raise found.shared_with(use)


def _target(file: PythonFile, node: cst.CSTNode, found: Source, word: object, what: str) -> Target:
    def write(value: object) -> tuple[Edit, ...]:
        return found.write(word)  # type: ignore[misc]

    return Target(file.location(node), None, write, f"{what} from {found.shown} (was {found.value!r})", str(word))


def _switched(scene: Scene) -> Target:
    """The setting `pad_to_max_length`, where the program itself chooses between the full length and a collator that pads."""
    for file in scene.project.parsed(SWITCH):
        for node in file.nodes:
            test = node.test if isinstance(node, (cst.If, cst.IfExp)) else None
            if test is None or (lookups.key_of(test) or (None, dotted(test)))[1] != SWITCH:
                continue
            if not any(string_value(each) == FULL for each in descendants(node.body, cst.SimpleString)):
                continue
            found = _source(scene, file, test, True)
            if found is None:
                continue
            _alone(scene, found)
            return _target(file, node, found, False, f"`{file.text(test)}` at {file.location(node)}")
    raise refuse("no call of a tokenizer pads to max_length in the collate function, and no setting says so")


def _before_batches(scene: Scene) -> Target:
    """A tokenizer's padding in front of a collator that pads each batch: it is switched off."""
    found = list(tokenized.unpadded(scene))
    file, call, first = found[0]
    for where, other, source in found:
        _written(where, other, source)
        _alone(scene, source)
    here = file.location(call)
    splices = tuple(dict.fromkeys(each for _, _, source in found for each in source.write(False)))  # type: ignore[misc]
    what = f"padding of the call at {here}, in front of a collator that pads each batch, from {first.shown} (was {first.value!r})"
    return Target(here, None, lambda value: splices, what, "by the collator alone")
