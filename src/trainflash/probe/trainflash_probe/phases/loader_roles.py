"""Which DataLoaders feed training: the one fetched last before a backward, and each that is fetched beside it in most steps."""

from __future__ import annotations

from ..writer import fact

LEAST = 3  # updates that followed a fetch outside evaluations, …
OFTEN = 0.5  # … and so many of all updates since the first of them: an evaluation that nothing announces comes less often


class LoaderRoles:
    """Loaders by number. Only fetches of those not yet known to train have to be told."""

    __slots__ = ("_seen", "asked", "train")

    def __init__(self) -> None:
        self.train: set = set()
        self.asked: set = set()  # of those not yet known to train, since the newest update
        self._seen: dict = {}  # loader -> updates that followed a fetch, and the number of the first of them

    def fetched(self, loader: int, evaluating: bool) -> str:
        """A batch of `loader` arrived: what it is for, as far as is known."""
        if evaluating:
            return "eval"
        if loader in self.train:
            return "train"
        self.asked.add(loader)
        return "unknown"

    def evaluates(self, loader: int) -> None:
        """The batch of `loader` that arrived last began an evaluation."""
        self.asked.discard(loader)

    def updated(self, updates: int) -> None:
        """A step's last update is done, the last of so many; needs not be told where nothing was `asked`."""
        for loader in self.asked:
            times, first = self._seen.get(loader, (0, updates))
            self._seen[loader] = times + 1, first
            if times + 1 >= LEAST and times + 1 >= OFTEN * (updates - first + 1):
                self.trains(loader)
        self.asked.clear()

    def trains(self, loader: int) -> None:
        """`loader` feeds training."""
        if loader not in self.train:
            self.train.add(loader)
            fact("role", loader=loader, role="train")
