"""Named constructors, so that configurations can speak of models, schedules, metrics and hooks by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """A table from names to constructors of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._makers: dict[str, Callable[..., T]] = {}

    def register(self, name: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
        def add(maker: Callable[..., T]) -> Callable[..., T]:
            if name in self._makers:
                raise ValueError(f"two of kind {self.kind} are called {name}")
            self._makers[name] = maker
            return maker

        return add

    def make(self, name: str, *args: Any, **options: Any) -> T:
        if name not in self._makers:
            known = ", ".join(sorted(self._makers))
            raise ValueError(f"no {self.kind} is called {name!r}; known: {known}")
        return self._makers[name](*args, **options)

    def names(self) -> list[str]:
        return sorted(self._makers)


TRANSFORMS: Registry[Any] = Registry("transform")
ENCODERS: Registry[Any] = Registry("encoder")
SCHEDULES: Registry[Any] = Registry("schedule")
METRICS: Registry[Any] = Registry("metric")
HOOKS: Registry[Any] = Registry("hook")
