"""Parts and parameters of a network, read where torch keeps them: the program may override `parameters` and `modules`."""

from __future__ import annotations


def modules_in(module: object):
    """`module` and all that it holds, each once, in the order of `Module.modules`."""
    todo, seen = [module], set()
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += reversed([held for _, held in _kept(each, "_modules")])


def parameters_in(module: object):
    """All parameters of `module`, each once, in the order of `Module.parameters`."""
    seen = set()
    for each in modules_in(module):
        for parameter in own_parameters(each):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield parameter


def own_parameters(module: object) -> list:
    """Those that no module inside `module` holds."""
    return [parameter for _, parameter in named_own_parameters(module)]


def named_own_parameters(module: object) -> list:
    """(name, parameter) of the same."""
    return [(name, each) for name, each in _kept(module, "_parameters") if each is not None]


def owns_parameters(module: object) -> bool:
    """Whether there is one, there or inside."""
    return next(parameters_in(module), None) is not None


def _kept(module: object, name: str) -> list:
    """A compiled module's mapping has no `values`."""
    return list(getattr(module, "__dict__", {}).get(name, {}).items())
