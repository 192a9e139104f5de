"""What a change may not begin to do: read the clock or the environment, look at who runs it, start programs, or hide what it does.

A change that behaves otherwise while it is measured would be judged for what it is not. Names are counted in all changed files together,
before and after, so that code which moves is not accused. It is no proof: whoever wants to can hide a name, and the owner reads the diff.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

_WHY = {
    "reads the clock": (
        "time.time", "time.time_ns", "time.perf_counter", "time.perf_counter_ns", "time.monotonic", "time.monotonic_ns", "time.ctime",
        "time.process_time", "time.process_time_ns", "time.thread_time", "time.thread_time_ns", "time.clock_gettime", "time.strftime",
        "time.clock_gettime_ns", "time.localtime", "time.gmtime", "timeit.default_timer", "os.times", "resource.getrusage",
        "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today", "torch.cuda.Event",
        "torch.utils.benchmark",
    ),
    "reads the environment": ("os.environ", "os.getenv", "os.environb", "os.getenvb"),
    "looks at who runs it": (
        "sys._getframe", "sys.modules", "sys.settrace", "sys.setprofile", "sys.monitoring", "threading.settrace", "threading.setprofile",
        "inspect.stack", "inspect.currentframe", "psutil", "gc.get_objects", "gc.get_referrers", "trainflash_probe", "trainflash",
    ),
    "starts a program": (
        "subprocess", "os.system", "os.popen", "os.fork", "os.execv", "os.execvp", "os.posix_spawn", "os.kill", "os.setsid", "ctypes",
        "socket", "urllib", "http", "requests", "atexit.register", "signal.signal",
    ),
    "hides what it does": ("eval", "exec", "compile", "__import__", "importlib.import_module", "pickle.loads", "marshal.loads", "base64"),
}  # fmt: skip
_WRITES = frozenset({"setdefault", "update", "pop"})  # methods with which the environment is changed, not read
_OURS = ("trainflash", "/proc/")


def begins_to(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """What the sources `after` do more often than those `before`, by path: the place, the name and why it is refused; "": nothing."""
    old: dict[str, int] = {}
    for text in before.values():
        for name, _ in _names(text):
            old[name] = old.get(name, 0) + 1
    for path, text in after.items():
        for name, line in _names(text):
            old[name] = old.get(name, 0) - 1
            if old[name] < 0:
                what = next(what for what, names in _WHY.items() if name in names)
                return f"{path}:{line}: {name} {what}; a change may not depend on how, where or whether it is watched"
    return ""


def _names(source: str) -> Iterator[tuple[str, int]]:
    """The listed names that a source uses, each with its line."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    imported = _imported(tree)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        told = isinstance(parents.get(node), ast.Expr)  # a docstring may say what it likes
        if isinstance(node, ast.Constant) and not told and any(word in str(node.value).lower() for word in _OURS):
            yield "trainflash", node.lineno
        if not isinstance(node, (ast.Name, ast.Attribute)) or isinstance(parents.get(node), ast.Attribute):
            continue
        dotted = _dotted(node, imported)
        known = next((name for names in _WHY.values() for name in names if dotted == name or dotted.startswith(f"{name}.")), None)
        if known is not None and not (known == "os.environ" and _written(node, dotted, parents)):
            yield known, node.lineno


def _imported(tree: ast.AST) -> dict[str, str]:
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                found[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return found


def _dotted(node: ast.expr, imported: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((imported.get(node.id, node.id), *parts))


def _written(node: ast.expr, dotted: str, parents: Mapping[ast.AST, ast.AST]) -> bool:
    if dotted.rpartition(".")[2] in _WRITES:
        return True
    parent = parents.get(node)
    return isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, (ast.Store, ast.Del))
