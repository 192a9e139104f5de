"""Which update completes a step: that of the optimizer that steps least often; without optimizers, each backward."""

from __future__ import annotations

import weakref

DECIDE_AFTER = 12  # updates of several optimizers, before their counts say which one is the step's
DECIDE_AGAIN = 256
GIVE_UP_AFTER = 64  # backward calls without any update: the optimizers that exist are not used


class StepClock:
    """Counts updates of each optimizer and backward calls."""

    def __init__(self) -> None:
        self.fetched = False  # a fetch has ended a step: then loose forwards need not
        self.sees_steps = False  # an update or a backward was counted
        self.single = None  # id of the optimizer while there is only one and it steps: each of its updates completes a step
        self._alive: dict = {}  # id -> weak reference of each optimizer constructed
        self._former: set = set()  # those that have not stepped since a newer one was made in mid-training: it may have replaced them
        self._lasting: set = set()  # those that did step beside it
        self._replaces = False  # a newer one has stepped twice in a row: such programs make one for each task or fold
        self._counts: dict = {}
        self._order: list = []  # ids in the order of their first update, which is their order in the loop
        self._stepped: set = set()  # since the last complete step, while the counts have not decided
        self._since_decision = 0
        self._chosen = None
        self._backwards = 0

    def constructed(self, optimizer: object) -> None:
        """An optimizer came to life."""
        key = id(optimizer)
        if self.sees_steps:
            self._former |= self._alive.keys() - self._lasting
        self._alive[key] = weakref.ref(optimizer, lambda _: self._forget(key))
        self._chosen = self.single = None

    def _forget(self, key: int) -> None:
        self._alive.pop(key, None)
        self._counts.pop(key, None)
        for known in (self._stepped, self._former, self._lasting):
            known.discard(key)
        if key in self._order:
            self._order.remove(key)
        self.single = None
        if self._chosen == key:
            self._chosen = None

    def updated(self, optimizer: object) -> bool:
        """Count one update; True when it is the last of its step."""
        key = id(optimizer)
        self.sees_steps = True
        self._backwards = 0
        self._counts[key] = self._counts.get(key, 0) + 1
        self._since_decision += 1
        if key not in self._order:
            self._order.append(key)
        if key in self._former:
            self._former.remove(key)
            self._lasting.add(key)
        self._replaces |= self._counts[key] > 1 and bool(self._former)
        if len(self._in_use()) <= 1:
            self._chosen = key
            self.single = key if key in self._alive else None
            return True
        completes = self._chosen == key
        if self._chosen is None:
            self._stepped.add(key)
            completes = self._stepped >= self._in_use()
            if completes:
                self._stepped.clear()
        if self._since_decision >= (DECIDE_AFTER if self._chosen is None else DECIDE_AGAIN):
            self._decide()
            completes = completes or self._chosen == key
        return completes

    def _in_use(self):
        """Ids of the optimizers that a step may need."""
        return self._alive.keys() - self._former if self._replaces else self._alive.keys()

    def _decide(self) -> None:
        """The least count wins; where counts differ by one at most, the optimizer that comes last in the loop's order."""
        counts = {key: count for key, count in self._counts.items() if count}
        least = min(counts.values())
        tied = [key for key in self._order if counts.get(key, least + 2) <= least + 1]
        if self._chosen not in tied:
            self._chosen = tied[-1]
        self._counts = {}
        self._since_decision = 0

    def forward_ends_step(self) -> bool:
        """Whether a training forward ends the step that an update has completed."""
        return len(self._in_use()) == 1 or not self.fetched

    def update_ends_step(self, optimizer: object) -> bool:
        """Whether the update that is about to run ends the step before it: nothing else has (LBFGS runs its forward inside)."""
        if self._chosen != id(optimizer):
            return False
        self.fetched = self.fetched and self.single is not None
        return True

    def steps_by_optimizer(self) -> bool:
        """Whether an optimizer has stepped."""
        return bool(self._counts) or self._chosen is not None

    def knows_optimizers(self) -> bool:
        """Whether one lives, or a function that stands for one."""
        return bool(self._alive)

    def living(self) -> list:
        """Those that live, but for those that a newer one may have replaced."""
        known = [reference for key, reference in list(self._alive.items()) if key not in self._former]
        return [made for made in (reference() for reference in known) if made is not None]

    def backward_completes_step(self) -> bool:
        """Count a backward; True where no optimizer will follow."""
        self.sees_steps = True
        if not self._alive:
            return True
        self._backwards += 1
        return self._backwards > GIVE_UP_AFTER
