"""What the phases of a run cost, for the table at its end."""

import functools
import time
from collections import Counter
from collections.abc import Callable

from torch.utils.flop_counter import FlopCounterMode


class Ledger:
    """Wraps functions and adds up calls, seconds and arithmetic under a name."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.flops: Counter[str] = Counter()

    def timed(self, name: str) -> Callable:
        def decorate(function: Callable) -> Callable:
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                began = time.perf_counter()
                try:
                    return function(*args, **kwargs)
                finally:
                    self.calls[name] += 1
                    self.seconds[name] += time.perf_counter() - began

            return wrapper

        return decorate

    def counted(self, name: str) -> Callable:
        def decorate(function: Callable) -> Callable:
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                with FlopCounterMode(display=False) as counter:
                    result = function(*args, **kwargs)
                self.flops[name] += counter.get_total_flops()
                return result

            return self.timed(name)(wrapper)

        return decorate

    def table(self) -> str:
        lines = []
        for name, calls in self.calls.items():
            work = f", {self.flops[name] / calls / 1e6:.1f} MFLOP each" if name in self.flops else ""
            lines.append(f"{name}: {calls} calls, {1000 * self.seconds[name] / calls:.2f} ms each{work}")
        return "\n".join(lines)
