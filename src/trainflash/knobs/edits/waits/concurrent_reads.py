"""Reads that wait one after the other, made by several threads: the results stay in order, and the waiting passes at the same time.

Only of functions of which every call is known: what they open they open themselves, and they draw, write, keep and move nothing along. A
file that stays open, a generator, a context that belongs to one thread (torch's modes) or a decorator is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import long_text, under
from trainflash.knobs.effects import changes, given, purity
from trainflash.knobs.kinds import ConcurrentReads
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.callees import Function
from trainflash.knobs.reading.expressions import given_to, is_name, literal, refuse, short
from trainflash.knobs.reading.python_source import (
    PythonFile,
    clauses,
    descendants,
    dotted,
    keyword,
    parameter_names,
    positional,
    string_value,
)
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

DEEPEST = 4  # own: functions between a read and the loop that asks for many
POOLS = ("readers", "reading_threads", "pool_of_readers")
WHOLE = ("list", "tuple", "sorted", "set")  # ask for all that a generator gives, at once
LISTS = ("range", "sorted", "list", "tuple")
# Calls whose result depends on nothing but what they are handed.
BUILTINS = """
len int float str bytes bytearray bool list dict tuple set sorted min max sum abs round zip enumerate range isinstance open ord chr divmod
ValueError KeyError OSError RuntimeError FileNotFoundError
"""
READERS = """
json.loads json.load pickle.loads pickle.load io.BytesIO io.StringIO gzip.open gzip.decompress zlib.decompress bz2.open lzma.open
struct.unpack struct.unpack_from base64.b64decode time.sleep os.path.join os.path.exists os.path.getsize os.fspath pathlib.Path csv.reader
urllib.request.urlopen requests.get PIL.Image.open cv2.imread cv2.imdecode soundfile.read librosa.load imageio.imread tifffile.imread
torch.from_numpy torch.load numpy.load numpy.loadtxt numpy.genfromtxt numpy.fromfile numpy.frombuffer numpy.fromstring numpy.memmap
numpy.array numpy.asarray numpy.ascontiguousarray numpy.stack numpy.concatenate numpy.zeros numpy.ones numpy.arange numpy.transpose
numpy.float32 numpy.float64 numpy.uint8 numpy.int64 pandas.read_csv pandas.read_parquet pandas.read_json yaml.safe_load tomllib.load
"""
METHODS = """
read_bytes read_text exists stat joinpath with_suffix with_name resolve endswith startswith split rsplit strip replace decode encode join
lower upper reshape astype read readline readlines convert resize crop tobytes json tolist transpose ravel flatten close seek splitlines
get_data
"""
LEAVE_IT = "open time.sleep len int float str isinstance range numpy.load pathlib.Path"  # change nothing that outlives a call
KNOWN, PURE, PLAIN = frozenset(BUILTINS.split()), frozenset(READERS.split()), frozenset(METHODS.split())
MOVE = {"read", "readline", "readlines", "seek", "close", "get_data"}  # only of what the function made for itself
UNMOVED = frozenset(LEAVE_IT.split())
OPENS = {"open", "gzip.open", "bz2.open", "lzma.open"}


def concurrent_reads(edit: ConcurrentReads, scene: Scene) -> tuple[Target, ...]:
    """The comprehension, or the `map`, that reads at the line or in what calls its function. Raises `UsageError` without one."""
    file, place = scene.source("reads")
    reasons: list[UsageError] = []
    for where, node in _turns(scene.project, file, place.line):
        try:
            function, over, start = _asked(scene.project, where, node)
            _reads_apart(scene.project, start)
            return (_target(where, node, function, over),)
        except UsageError as bad:
            reasons.append(bad)
    raise reasons[0] if reasons else refuse(f"{place}: no comprehension and no `map` reads one thing after another there")


def _turns(project: Project, file: PythonFile, line: int) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """What goes over many things around the line, or around a call of its function, and so on outwards."""
    calls = [(file, call) for call in file.calls if file.lines_of(call)[0] <= line <= file.lines_of(call)[1]]
    seen: set[int] = set()
    for _ in range(DEEPEST):
        further: list[tuple[PythonFile, cst.Call]] = []
        for where, call in calls:
            yield from ((where, up) for up in (call, *where.ancestors(call)) if _goes_over(where, up))
            function = where.function_around(call)
            if function is not None and id(function) not in seen:
                seen.add(id(function))
                further += callers.sites(project, where, function)
                further += [(other, each) for other in project.parsed("map") for each in other.calls if _maps(other, each, function)]
        calls = further


def _goes_over(file: PythonFile, node: cst.CSTNode) -> bool:
    return _is_map(file, node) if isinstance(node, cst.Call) else isinstance(node, (cst.ListComp, cst.GeneratorExp))


def _is_map(file: PythonFile, call: cst.Call) -> bool:
    """Whether it is Python's own `map`."""
    return dotted(call.func) == "map" and "map" not in file.imported and not given_to(file.module, "map")


def _maps(file: PythonFile, call: cst.Call, function: cst.FunctionDef) -> bool:
    named = _is_map(file, call) and len(call.args) > 1
    return named and (dotted(call.args[0].value) or "").split(".")[-1] == function.name.value


def _asked(project: Project, file: PythonFile, node: cst.CSTNode) -> tuple[str, str, Function]:
    """Source of the function of one thing and of what it is asked for, and that function."""
    here, shown = file.location(node), short(file.text(node))
    if isinstance(node, cst.Call):
        if len(node.args) != 2 or any(arg.keyword is not None or arg.star for arg in node.args):
            raise refuse(f"{here}: `{shown}` is more than one function of one thing after another")
        function, over = node.args[0].value, node.args[1].value
    else:
        found = clauses(node)
        target, one = found[0].target, node.elt  # type: ignore[attr-defined]
        plain = len(found) == 1 and not found[0].ifs and found[0].asynchronous is None and isinstance(target, cst.Name)
        alone = isinstance(one, cst.Call) and len(one.args) == 1 and one.args[0].keyword is None and not one.args[0].star
        if not plain or not alone or dotted(one.args[0].value) != target.value:
            raise refuse(f"{here}: `{shown}` is more than one function of one thing after another")
        function, over = one.func, found[0].iter
    if not isinstance(node, cst.ListComp) and not _all_at_once(file, node):
        raise refuse(f"{here}: what `{shown}` gives may be asked for later, or not to its end")
    listed = isinstance(over, cst.Call) and dotted(over.func) in LISTS
    if not listed and (dotted(over) is None and not isinstance(over, (cst.Subscript, cst.ListComp, cst.List))):
        raise refuse(f"{here}: what `{short(file.text(over))}` gives may depend on what was read before")
    return file.text(function), file.outer_text(over), _meant(project, file, function)


def _all_at_once(file: PythonFile, node: cst.CSTNode) -> bool:
    up = file.parent(node)
    call = file.parent(up) if isinstance(up, cst.Arg) else None
    return isinstance(call, cst.Call) and dotted(call.func) in WHOLE and len(call.args) == 1


def _meant(project: Project, file: PythonFile, function: cst.BaseExpression) -> Function:
    """The function of this file, or the method of the class around, that the name can only mean."""
    name, around = dotted(function) or "", file.function_around(function)
    own = name.startswith("self.") and name.count(".") == 1
    last = name.split(".")[-1]
    found = [(where, each) for where in project.parsed(last) for each in where.functions if each.name.value == last] if last else []
    shadowed = around is not None and not own and (last in given.bound(around.body) or last in parameter_names(around))
    fits = len(found) == 1 and found[0][0] is file and (file.class_of(found[0][1]) is not None) == own
    if not fits or shadowed or not (own or name == last) or given_to(file.module, name):
        raise refuse(f"{file.location(function)}: which function `{short(file.text(function))}` is cannot be told")
    return found[0]


def _reads_apart(project: Project, start: Function) -> None:
    """Raises `UsageError` where one read may depend on another one, or on the thread that it is made in."""
    for where, function in callees.reached(project, [start]):
        here, name = where.location(function), function.name.value
        if purity.first_draw(project, where, function, set()) is not None:
            raise refuse(f"{here}: {name} draws random numbers, whose order threads would change")
        changing = (cst.Yield, cst.Await, cst.Global, cst.Nonlocal, cst.Lambda, cst.FunctionDef)
        defaults = [each.default for each in descendants(function.params, cst.Param) if each.default is not None]  # type: ignore[attr-defined]
        mutable = any(not isinstance(literal(each), (int, float, str, type(None))) for each in defaults)
        if function.decorators or mutable or any(True for _ in descendants(function.body, changing)):
            raise refuse(f"{here}: {name} is no plain function")
        own = given.bound(function.body)
        params = parameter_names(function)
        outside = {each.value for each in descendants(function.body, cst.Name) if is_name(where, each)} - own  # type: ignore[attr-defined,arg-type]
        kept = changes.changed(project, where, function.body, outside | params | {"self"})
        if kept is not None:
            raise refuse(f"{where.location(kept)}: `{short(where.text(kept))}` changes what other reads see")
        for call in descendants(function.body, cst.Call):
            if not _known(project, where, function, call, own):  # type: ignore[arg-type]
                raise refuse(f"{where.location(call)}: `{short(where.text(call))}` may not be asked by several threads at once")
        for with_ in descendants(function.body, cst.With):
            if not all(isinstance(item.item, cst.Call) for item in with_.items):  # type: ignore[attr-defined]
                raise refuse(f"{where.location(with_)}: what it opens may be shared by several threads")


def _known(project: Project, file: PythonFile, function: cst.FunctionDef, call: cst.Call, own: set[str]) -> bool:
    """Whether a call depends on nothing but what it is handed, and is handed nothing that another read may move along."""
    full, base = file.full_name(call.func) or "", call.func.value if isinstance(call.func, cst.Attribute) else None
    first = positional(call, 0)
    shared = first is not None and _outlives(function, first.value, own)
    if full in PURE or (base is None and full in KNOWN and full not in file.imported):
        mode = (positional(call, 1) or keyword(call, "mode")) if full in OPENS else None
        writes = mode is not None and not set(string_value(mode.value) or "w") <= set("rbtU")
        return not writes and (not shared or full in UNMOVED)
    if any(True for _ in callees.meant(project, file, call)):
        return all(not _outlives(function, arg.value, own) for arg in call.args)
    if base is None:
        return False
    method = call.func.attr.value  # type: ignore[union-attr]
    if method in MOVE:
        return isinstance(base, cst.Call) or (isinstance(base, cst.Name) and base.value in own and _made_here(file, function, base.value))
    return method in PLAIN and dotted(base) != "self"


def _outlives(function: cst.FunctionDef, node: cst.BaseExpression, own: set[str]) -> bool:
    """Whether `node` is a thing from outside the function as it is, but for what the function itself was handed."""
    name = dotted(node)
    if name is None or name in ("True", "False", "None"):
        return False
    root = name.split(".")[0]
    return "." in name or (root not in own and root not in parameter_names(function))


def _made_here(file: PythonFile, function: cst.FunctionDef, name: str) -> bool:
    """Whether all that gives the name a value are calls that open or make something: no other name of what outlives the function."""
    values = given_to(function.body, name)
    for with_ in descendants(function.body, cst.With):
        values += [item.item for item in with_.items if item.asname is not None and dotted(item.asname.name) == name]  # type: ignore[attr-defined]
    looped = any(name in given.bound(node.target) for node in descendants(function.body, (cst.For, cst.NamedExpr)))  # type: ignore[attr-defined]
    opened = [isinstance(each, cst.Call) and (file.full_name(each.func) or "") in PURE | {"open"} for each in values]
    return bool(opened) and not looped and all(opened)


def _target(file: PythonFile, node: cst.CSTNode, function: str, over: str) -> Target:
    here, line = file.location(node), file.statement(node)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise refuse(f"{here}: the reads do not stand in a plain statement of their own")
    if long_text(file, line) is not None:
        raise refuse(f"{here}: a text of several lines would be moved")
    taken = {each.value for each in file.nodes if isinstance(each, cst.Name)}
    pool = next((name for name in POOLS if name not in taken), None)
    if pool is None:
        raise refuse(f"{here}: the names {', '.join(POOLS)} are taken")
    spelled, needed = imports.reach(file, "concurrent.futures", "ThreadPoolExecutor")
    text = f"{pool}.map({function}, {over})"
    text = f"list({text})" if isinstance(node, cst.ListComp) else text
    first, last = file.span(line.body[0])[0], file.span(line)[1]
    read = Splice(file.path, *file.span(node), text)

    def write(value: int) -> tuple[Splice, ...]:
        block = under(file, f"with {spelled}({value}) as {pool}:", first, last, file.indent(line))
        return (*needed, *(each for each in block if not file.span(node)[0] < each.start < file.span(node)[1]), read)

    return Target(here, None, write, f"`{short(file.text(node))}` at {here}")
