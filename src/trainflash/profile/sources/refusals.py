"""Files that are no trace, or one that cannot be read, called by their names: what they are, and what to name instead."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from trainflash.errors import UsageError

_MAGIC = (
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"RIFF", "a picture or a sound"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive"),
    (b"SQLite format 3\0", "an SQLite database that is packed"),
    (b"\x28\xb5\x2f\xfd", "a zstandard file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"BZh", "a bzip2 file"),
    (b"\x7fELF", "a program"),
    (b"PERFILE2", "a recording of Linux perf"),
)
_XPLANE_BESIDE = "name the .xplane.pb that lies beside it"
_BESIDE = "name the Kineto trace that was recorded beside it"
ROCPROF = "`rocprofv3 --output-format json` or `pftrace` makes a file that can be read"
_NAMES = (
    (r"\.(nsys-rep|qdrep)$", "a report of nsys in its own format", "`nsys export --type sqlite` makes a file that can be read"),
    (r"\.ncu-rep$", "a report of Nsight Compute: single kernels, no time line", "record with nsys or with PyTorch's profiler"),
    (r"\.SSTABLE$", "a table that xprof's trace viewer keeps for itself", _XPLANE_BESIDE),
    (
        r"\.(op_stats|kernel_stats|overview_page|hlo_proto|dcn_collective_stats|memory_profile)(_\w+)?\.pb$",
        "a table of xprof",
        _XPLANE_BESIDE,
    ),
    (r"\.et$", "an execution trace (Chakra): it says what ran, and not when", _BESIDE),
    (r"_(kernel|hip_api|hsa_api|memory_copy|marker_api|agent_info)_?(trace|stats|info)?\.csv$", "a table of rocprofv3", ROCPROF),
    (r"\.otf2$", "a trace in OTF2", "name what the profiler wrote as JSON"),
)
_PATTERNS = tuple((re.compile(pattern), what, mend) for pattern, what, mend in _NAMES)
_KEYS = (
    ({"schema", "nodes"}, "an execution trace (Chakra): it says what ran, and not when", _BESIDE),
    ({"schema_version", "digest", "step_time"}, "a summary already", "ask it with `trainflash profile query --summary FILE`"),
    ({"$schema", "profiles"}, "a profile of speedscope: stacks without a time line of the device", _BESIDE),
)


def refuse_by_name(name: str) -> None:
    """Raises `UsageError` for a format that its file's name tells, and that no reader here knows."""
    for pattern, what, mend in _PATTERNS:
        if pattern.search(name):
            raise UsageError(f"{name} is {what}", mend)


def refuse_by_content(first: bytes, name: str, mend: str) -> None:
    """Raises `UsageError` for a format that its first bytes tell."""
    for magic, what in _MAGIC:
        if first.startswith(magic):
            raise UsageError(f"{name} is no trace but {what}", mend)
    if first[257:262] == b"ustar":
        raise UsageError(f"{name} is a tar inside an archive", "unpack it and name its directory with --profile-dir")


def not_a_trace(name: str, found: Mapping[str, Any], skipped: Collection[str]) -> UsageError:
    """What a JSON object without a list of events is; `found` and `skipped`: its keys."""
    keys = {*found, *skipped}
    for wanted, what, mend in _KEYS:
        if wanted <= keys:
            return UsageError(f"{name} is {what}", mend)
    if "traceEvents" in keys:
        return UsageError(f"{name} is damaged: its traceEvents are no list", "name a trace that the profiler finished writing")
    return UsageError(f"{name} holds no trace: it has no traceEvents", "name a Kineto, Chrome or Perfetto JSON trace")
