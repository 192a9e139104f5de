"""Profiler traces → summaries that can be asked, compared and tracked (`sources`, `analysis`, `query`, …); timelines of our own runs."""

from trainflash.profile.export import Counter, Part, Process, Track, Written, moved, write_trace

__all__ = ["Counter", "Part", "Process", "Track", "Written", "moved", "write_trace"]
