"""Hooks of the distillation loop, in a registry."""

from collections import defaultdict
from collections.abc import Callable


class Events:
    """`@events.on("step", every=10)` registers a hook; hooks run in the order of their registration."""

    def __init__(self) -> None:
        self.hooks: dict[str, list[tuple[int, Callable]]] = defaultdict(list)

    def on(self, name: str, every: int = 1) -> Callable:
        def register(hook: Callable) -> Callable:
            self.hooks[name].append((every, hook))
            return hook

        return register

    def fire(self, name: str, state) -> None:
        for every, hook in self.hooks[name]:
            if state.step % every == 0:
                hook(state)
