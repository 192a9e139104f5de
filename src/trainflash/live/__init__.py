"""A running training that trainflash did not start: which processes it is, what they do, and whether it is hung or slow.

Nothing is written to the watched processes. Stacks are read from their memory without stopping them; the rest comes from `/proc` and NVML.
"""

from trainflash.live.answer import diagnose
from trainflash.live.target import Target, resolve

__all__ = ["Target", "diagnose", "resolve"]
