"""Timelines of runs for trace viewers."""

from trainflash.profile.export import Counter, Part, Process, Track, Written, write_trace

__all__ = ["Counter", "Part", "Process", "Track", "Written", "write_trace"]
