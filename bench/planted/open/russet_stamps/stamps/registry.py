from collections.abc import Callable

TRANSFORMS: dict[str, Callable] = {}


def register(name: str) -> Callable:
    def keep(fn: Callable) -> Callable:
        TRANSFORMS[name] = fn
        return fn

    return keep
