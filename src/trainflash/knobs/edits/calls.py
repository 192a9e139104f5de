"""Edits of calls: setting an argument where its value comes from, replacing a call by another."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import checks, handed_options, run_lengths, settings, versions
from trainflash.knobs.edits.which_call import place_among, the_call
from trainflash.knobs.kinds import CallArgument, ReplaceCall
from trainflash.knobs.reading import derived, hf_parser, sources, writes
from trainflash.knobs.reading.expressions import UNKNOWN, NoPlace, argument_node, class_values, literal, refuse, same, spelled_value
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile, dotted, has_splat, keyword
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit, Splice
from trainflash.knobs.training import loading, without_workers
from trainflash.schema import LoaderFacts

DIGITS = 9  # own: of a share, so that 0.1 times 3 is 0.3


def call_argument(edit: CallArgument, scene: Scene) -> tuple[Target, ...]:
    """The one place where the argument's value is written. Raises `UsageError` with the reason when there is none, or it is not alone."""
    versions.has(edit, scene.summary.versions)
    if edit.written is not None:
        target = call_argument(dataclasses.replace(edit, written=None), scene)[0]
        checks.may_become_written(edit, target)
        was, known = f"{target.where} (was {target.current!r})", target.current == edit.written
        written = Target(target.location, known, lambda value: target.write(edit.written), was, edit.written)
        return (written,)
    try:
        file, call = the_call(edit, scene)
        settings.alone(scene.project, edit.rivals, edit.asked)
        if edit.at == "program" and scene.at is None and isinstance(file.parent(call), cst.Expr):
            settings.made_always(file, call, scene.facts.get("device"))
        found = run_lengths.within(edit, scene, file, call, at_call(edit, scene, file, call))
        if edit.ends_workers:
            found = found.also(*without_workers.put_off(file, call))
    except NoPlace as bad:
        inherited = _of_derived(edit, scene)
        if inherited is None:
            raise bad from None
        found = inherited
    return (_grown(edit, _as_default(edit, found)),)


def _of_derived(edit: CallArgument, scene: Scene) -> Target | None:
    """What a class of the program's, derived from one of `calls`, says of the argument: in the one call that passes it, else its field."""
    if scene.at is not None or edit.at != "program":
        return None
    owners = derived.classes(scene.project, edit.calls)
    names = {owner.name.value for _, owner in owners}
    made = [
        (file, call) for name in sorted(names) for file in scene.project.parsed(name) for call in file.calls if dotted(call.func) == name
    ]
    passing = [(file, call) for file, call in made if keyword(call, edit.argument) is not None or has_splat(call, "**")]
    if passing:
        return at_call(edit, scene, *passing[0]) if len(passing) == 1 else None
    holders = [owner for _, owner in owners if isinstance(owner.body, cst.IndentedBlock) and class_values(owner.body, edit.argument)]
    if len(holders) != 1:
        return None
    for where, value in writes.to_key(scene.project, (edit.argument,)):
        raise refuse(f"{where.location(value)}: {edit.argument} is assigned again here, so the field may not count")
    for other in edit.conflicts:
        if any(keyword(call, other) is not None for _, call in made) or any(class_values(owner.body, other) for _, owner in owners):
            raise refuse(f"{holders[0].name.value} is given {other}, which does not go together with {edit.argument}")
    source = sources.Resolver(scene.project).field(edit.argument, holders[0].name.value)
    if source is None or source.write is None or source.readers:
        return None
    return Target(source.location, source.value, source.write, f"{edit.argument} of {holders[0].name.value}, from {source.shown}")


def _as_default(edit: CallArgument, target: Target) -> Target:
    """`target`, where a None that is typed stands for the number that the call takes by default."""
    counted = isinstance(edit.default, int) and not isinstance(edit.default, bool)
    return dataclasses.replace(target, current=edit.default) if counted and target.current is None else target


def _grown(edit: CallArgument, target: Target) -> Target:
    """`target`, where a share may grow only as long as it stays one: 0.25 of an epoch times 4 is 1.0, and 5 would be every fifth batch."""
    if edit.share is None or not isinstance(target.current, float):
        return target

    def fits(value: Any) -> bool:
        return isinstance(value, float) and (value < 1 or (value == 1 and edit.share == "up to one"))

    if not fits(2 * target.current):
        raise refuse(f"{target.where} is {target.current!r}, a share of the whole, which has no room to grow")

    def write(value: Any) -> tuple[Edit, ...]:
        if not fits(value):
            raise refuse(f"{target.where} is a share of the whole, and {value!r} would be none", "choose a smaller factor")
        return target.write(round(value, DIGITS))

    return dataclasses.replace(target, write=write)


def at_call(edit: CallArgument, scene: Scene, file: PythonFile, call: cst.Call) -> Target:
    """Where the value of the argument of this very call is written. Raises `UsageError` as `call_argument` does."""
    here = file.location(call)
    expected = scene.facts.get(edit.fact) if edit.fact is not None else None
    resolver = sources.Resolver(scene.project, UNKNOWN if expected is None else expected)
    checks.all_hold(checks.Asked(edit, scene, file, call, expected))
    name = "TrainingArguments" if hf_parser.parses(call) else _called(file, call)
    if name.endswith("Arguments"):
        for where, value in writes.to_key(scene.project, (edit.argument,)):
            raise refuse(f"{where.location(value)}: {edit.argument} is assigned again here, so the value in the call may not count")
    for other in edit.conflicts:
        if _given(file, call, other, resolver):
            raise refuse(f"{here}: {name} is given {other}, which does not go together with {edit.argument}")
        for where, value in writes.to_key(scene.project, (other,)) if name.endswith("Arguments") else ():
            if literal(value) not in (False, None):
                raise refuse(f"{where.location(value)}: {other} is assigned here, which does not go together with {edit.argument}")
    position = place_among(edit, scene.project, file, call)
    node = argument_node(file, call, edit.argument, position)
    try:
        found = resolver.argument(file, call, edit.argument, position)
    except UsageError:
        if node is None and (over := _over_options(edit, scene, file, call, resolver)) is not None:
            return over
        outside = node is not None and any(word in file.text(node) for word in ("environ", "getenv"))  # the owner says it from outside
        seen = True if edit.at == "setting" else expected  # the run had a setting on
        if edit.local != "anyhow" or node is None or outside or seen is None or resolver.other_callers(file, call):
            raise
        return _target(file, call, seen, *file.outer_span(node), f"{edit.argument} of {name} at {here}, which is computed")
    if found is None and position is not None and has_splat(call, "*"):
        raise refuse(f"{here}: a *splat may pass {edit.argument}")
    what = f"{edit.argument} of {name} at {here}"
    crowd = _crowd(edit, scene, file, call)
    if found is None and hf_parser.parses(call):
        raise refuse(f"{what} is not typed anywhere, and its default is not this knob's to change")
    if found is None:
        return _added(edit, file, call, what, crowd, expected, resolver)
    if expected is not None and not same(found.value, expected):
        raise refuse(f"{found.shown} says {found.value!r}, but the run had {expected!r}: the value comes from elsewhere")
    if not found.chosen and crowd:
        raise refuse(f"{here}: {crowd}")
    blocking = [use for use in found.readers if not (edit.shared == "loaders" and use.kind == "loader")]
    if found.write is not None and not blocking:
        return Target(here, found.value, found.write, f"{what}, from {found.shown}")
    local = [use for use in blocking if use.text.startswith("anchor of ") or use.kind == "loader"]
    alone = node is not None and not resolver.other_callers(file, call)
    if alone and edit.local == "multiply":
        return _scaled(file, call, node, found, what)
    if alone and edit.local in ("literal", "anyhow") and found.value is not UNKNOWN and _typed(found):
        start, end = file.outer_span(node)
        return _target(file, call, found.value, start, end, what)
    if found.write is None:
        raise refuse(f"{what} is {found.shown}, which is computed")
    raise found.shared_with((local or blocking)[0])


def _called(file: PythonFile, call: cst.Call) -> str:
    """What is called, by its last name; as it is written where that is no name, such as super().__init__."""
    name = dotted(call.func)
    return name.split(".")[-1] if name else file.text(call.func)


def _typed(found: Source) -> bool:
    """Whether a value stands somewhere as it is, or nowhere: what is computed of others says how it hangs together with them."""
    return found.write is not None or found.value is None


def _given(file: PythonFile, call: cst.Call, name: str, resolver: sources.Resolver) -> bool:
    """Whether the call passes `name` as anything but a False or None that stands in the call itself."""
    node = argument_node(file, call, name, None)
    if node is None:
        return resolver.argument(file, call, name, None) is not None
    return literal(node) not in (False, None)


def replace_call(edit: ReplaceCall, scene: Scene) -> tuple[Target, ...]:
    """The call that `edit` replaces."""
    file, call = the_call(edit, scene)
    checks.all_hold(checks.Asked(edit, scene, file, call))
    if not isinstance(call.func, cst.Attribute):
        raise refuse(f"{file.location(call)}: {dotted(call.func)} was imported by name; its counterpart {edit.to} was not")
    start, end = file.span(call.func.attr)[0], file.span(call)[1]
    return (
        Target(file.location(call), None, lambda value: (Splice(file.path, start, end, edit.to),), f"the call at {file.location(call)}"),
    )


def _crowd(edit: CallArgument, scene: Scene, file: PythonFile, call: cst.Call) -> str:
    """Why the call itself may not be edited: it also makes a loader of another role."""
    if edit.shared == "loaders" or edit.at != "train_loader":
        return ""
    first, last = file.lines_of(call)
    here = [each for each in scene.summary.loaders if _covers(each, file.path, first, last)]
    roles = {each.role for each in here} - {"unused"}
    return f"the same call makes the loaders of {' and '.join(sorted(roles))}" if len(roles) > 1 else ""


def _covers(loader: LoaderFacts, path: str, first: int, last: int) -> bool:
    return loader.location is not None and loader.location.file == path and first <= loader.location.line <= last


def _target(file: PythonFile, call: cst.Call, current: Any, start: int, end: int, what: str) -> Target:
    return Target(
        file.location(call), current, lambda value: (Splice(file.path, start, end, spelled_value(value)),), f"{what}, in the call itself"
    )


def _scaled(file: PythonFile, call: cst.Call, node: cst.BaseExpression, found: Source, what: str) -> Target:
    """Multiply a shared value in the call: the rest of the program keeps it, and so does its option."""
    if not isinstance(found.value, int) or isinstance(found.value, bool) or found.value == 0:
        raise refuse(f"{what} is {found.shown}, which cannot be multiplied")
    start, end = file.outer_span(node)
    text = file.raw[start:end].decode("utf-8")
    bare = isinstance(node, (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.Integer)) or bool(node.lpar)

    def write(value: Any) -> tuple[Splice, ...]:
        factor, rest = divmod(value, found.value)
        if rest or factor < 2:
            raise refuse(f"{what}: {value!r} is no multiple of {found.value!r}, and {found.shown} is shared", "choose a multiple")
        return (Splice(file.path, start, end, f"{text if bare else f'({text})'} * {factor}"),)

    return Target(file.location(call), found.value, write, f"{what}, multiplied there because {found.shown} has other readers")


def _over_options(edit: CallArgument, scene: Scene, file: PythonFile, call: cst.Call, resolver: sources.Resolver) -> Target | None:
    """The argument behind `**options` that say one thing or another of it, depending on a condition; None where there are no such."""
    seen = scene.facts.get(edit.fact) if edit.fact is not None else None
    if not edit.add or seen is None or _crowd(edit, scene, file, call):
        return None
    options = handed_options.chosen_by_branch(file, call, edit.argument)
    if options is None or (edit.shared == "alone" and resolver.other_callers(file, call)):
        return None
    what = f"{edit.argument} of {_called(file, call)} at {file.location(call)}, set behind `{file.text(options.value)}`"
    return Target(
        file.location(call),
        seen,
        lambda value: (handed_options.overridden(file, options, edit.argument, spelled_value(value)),),
        what,
    )


def _added(
    edit: CallArgument, file: PythonFile, call: cst.Call, what: str, crowd: str, expected: Any, resolver: sources.Resolver
) -> Target:
    if not edit.add:
        raise refuse(f"{file.location(call)}: {edit.argument} is not given in the call, and its default is not this knob's to change")
    if crowd:
        raise refuse(f"{file.location(call)}: {crowd}")
    loading.can_be_added(resolver.project, file, call, edit.argument, edit.calls)
    others = resolver.other_callers(file, call) if edit.shared == "alone" and edit.at == "train_loader" else []
    if others:
        raise refuse(f"{file.location(call)}: the function around it is also called at {others[0].location}")
    if expected is not None and not same(edit.default, expected):
        raise refuse(f"{what} is not given there, but the run had {expected!r}: the value comes from elsewhere")
    start, text = insertion(file, call)
    return Target(
        file.location(call),
        edit.default,
        lambda value: (Splice(file.path, start, start, text.format(f"{edit.argument}={spelled_value(value)}")),),
        f"{what}, added to the call",
    )


def insertion(file: PythonFile, call: cst.Call) -> tuple[int, str]:
    """Where another argument goes, and how it is set off in this call's way of writing."""
    end = file.span(call)[1] - 1
    if not call.args:
        return end, "{}"
    last = call.args[-1]
    if isinstance(last.value, cst.GeneratorExp) and len(call.args) == 1 and not last.value.lpar:
        raise refuse(f"{file.location(call)}: the call's only argument is a bare generator")
    start = file.span(last)[1]
    tail = file.raw[start:end].decode("utf-8")
    alone = len(call.args) == 1 or file.lines_of(call.args[-2])[1] < file.lines_of(last)[0]
    own_lines = alone and "\n" in tail and file.lines_of(last)[0] > file.lines_of(call.func)[1]
    comma_first = re.match(r"[ \t]*,[ \t]*#[^\r\n]*", tail)
    if own_lines and comma_first:
        indent = file.indent(last)
        return start + len(comma_first[0].encode()), f"{file.newline}{indent}{{}},"
    if own_lines and "#" not in tail:
        indent = file.indent(last)
        comma = "," in tail
        offset = start + len(tail[: tail.index(",") + 1].encode()) if comma else start
        return offset, ("" if comma else ",") + file.newline + indent + "{}" + ("," if comma else "")
    return start, ", {}"
