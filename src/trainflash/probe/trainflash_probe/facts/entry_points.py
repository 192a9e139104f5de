"""Functions and methods of torch that are wrapped for one step."""

from __future__ import annotations


class EntryPoints:
    """What was wrapped, and how to put everything back."""

    def __init__(self) -> None:
        self._saved: list = []  # (owner, name, original, wrapped, whether the owner itself had it)

    def wrap(self, owner: object, name: str, wrapping) -> None:
        """Put `wrapping(original)` in the place of `owner.name`."""
        had, original = name in vars(owner), getattr(owner, name)
        wrapped = wrapping(original)
        self._saved.append((owner, name, original, wrapped, had))
        setattr(owner, name, wrapped)

    def restore(self) -> None:
        """Put everything back, but for what somebody else wrapped after us."""
        for owner, name, original, wrapped, had in self._saved:
            if vars(owner).get(name) is not wrapped:
                continue
            if had:
                setattr(owner, name, original)
            else:
                delattr(owner, name)
        self._saved.clear()
