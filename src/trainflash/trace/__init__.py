"""Event and fact files of one run → steps with exclusive phases, and typed facts, per process.

`load` reads what the probe wrote (`process-*.json`, `events-*.bin`, `facts-*.jsonl`, `notice.jsonl`) and interprets nothing:
which part is warm-up, what a share is and which location matters is for `summary`.
"""

from trainflash.trace.clocks import host_clocks
from trainflash.trace.load import load
from trainflash.trace.model import (
    PARTS,
    BatchTrace,
    Beside,
    BesideThread,
    CollectiveLine,
    Collectives,
    CpuReading,
    DataFunction,
    EvalTrace,
    Fetches,
    LoaderTrace,
    LogTrace,
    Occurrences,
    Parallel,
    RankTrace,
    RepeatedCall,
    Samples,
    SampleTimes,
    SaveTrace,
    ThreadFacts,
    Trace,
    WorkerTrace,
)

__all__ = [
    "PARTS",
    "BatchTrace",
    "Beside",
    "BesideThread",
    "CollectiveLine",
    "Collectives",
    "CpuReading",
    "DataFunction",
    "EvalTrace",
    "Fetches",
    "LoaderTrace",
    "LogTrace",
    "Occurrences",
    "Parallel",
    "RankTrace",
    "RepeatedCall",
    "SampleTimes",
    "Samples",
    "SaveTrace",
    "ThreadFacts",
    "Trace",
    "WorkerTrace",
    "host_clocks",
    "load",
]
