"""What an explanation consists of, and what several of them share."""

from __future__ import annotations

from dataclasses import dataclass

DATA = "https://docs.pytorch.org/docs/stable/data.html"
TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
THREADS = "https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html"
NOTHING = "nothing, if it is done right: bitwise the same"


@dataclass(frozen=True)
class Fix:
    """One way out. `knob` is the mechanical edit that does it, "" where it needs a patch, for which `pattern` names an example.

    `changes` is what to check afterwards.
    """

    what: str
    changes: str
    knob: str = ""
    pattern: str = ""


@dataclass(frozen=True)
class Explanation:
    """One kind of finding for a reader; `evidence` is what a rule asks for before it reports the kind, `fixes` stand cheapest first.

    `guide` names the sections T1 to T23 of the throughput guide that this tool grew from, "" where it has none.
    """

    kind: str
    symptom: str
    cause: str
    evidence: str
    fixes: tuple[Fix, ...]
    source: str
    guide: str = ""


WORKERS = Fix(
    "fetch in worker processes: num_workers up to cores − 1, bounded by memory for each worker's copy of the dataset",
    "order and content stay, unless the dataset draws random numbers: each worker has its own random state",
    "dataloader_workers",
)
ALONE = Fix(
    "fetch in the training process (num_workers=0) where that takes less than waiting for workers does",
    "random numbers drawn while fetching",
    "workers_off",
)
STREAM = Fix(
    "an iterable data set in one worker process: num_workers=1 yields the same samples in the same order",
    "order and content stay, unless the data set draws random numbers or changes itself from pass to pass",
    pattern="work_in_other_workers",
)
MEMOIZE = Fix(
    "keep the results of a pure function, or compute them once before the loop",
    "nothing, if the function is pure and nobody writes into its result; it costs memory",
    "memoize_function",
)
KEEP_LINKED = Fix("keep a connection open that every request makes", NOTHING, pattern="reuse_the_connection")
KEEP_OPEN = Fix("keep an archive or a database open that every sample opens", NOTHING, pattern="keep_the_file_open")
KEEP_READ = Fix("read a file once that every sample reads whole", NOTHING + ", and it costs memory", pattern="read_the_file_once")
SETS = Fix("look things up in a set instead of a list", NOTHING, pattern="set_instead_of_list")
AHEAD = Fix("make the next batches in a thread, where a generator makes them", NOTHING, pattern="make_batches_ahead")
JOIN_ONCE = Fix("join parts once instead of one after the other", NOTHING, pattern="join_parts_once")
STORED = Fix("write arrays without compressing them", "what files hold is the same; they are larger", pattern="write_arrays_as_they_are")
VMAP = Fix("torch.vmap of what is done to one row, in place of a loop over rows", "rounding", pattern="rows_at_once")
FOREACH = Fix(
    "torch's operations on lists of tensors in place of a loop over them", "nothing on a CPU; rounding on a GPU", pattern="lists_of_tensors"
)
