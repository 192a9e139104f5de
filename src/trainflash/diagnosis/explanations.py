"""What each finding means: symptom, cause, evidence, fixes in the order of their cost, and what each may change in the training."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from trainflash.diagnosis.rules import REPORTED
from trainflash.errors import UsageError
from trainflash.schema import KINDS

DATA = "https://docs.pytorch.org/docs/stable/data.html"
TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
THREADS = "https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html"
NOTHING = "nothing, if it is done right: bitwise the same"


@dataclass(frozen=True)
class Fix:
    """One way out. `knob` is the mechanical edit that does it, "" where it needs a patch; `changes` is what to check afterwards."""

    what: str
    changes: str
    knob: str = ""


@dataclass(frozen=True)
class Explanation:
    """One kind of finding for a reader; `evidence` is what a rule asks for before it reports the kind."""

    kind: str
    symptom: str
    cause: str
    evidence: str
    fixes: tuple[Fix, ...]
    source: str


WORKERS = Fix(
    "fetch in worker processes: num_workers up to cores − 1, bounded by memory for each worker's copy of the dataset",
    "order and content stay, unless the dataset draws random numbers: each worker has its own random state",
    "dataloader_workers",
)
MEMOIZE = Fix(
    "keep the results of a pure function, or compute them once before the loop",
    "nothing, if the function is pure and nobody writes into its result; it costs memory",
    "memoize_function",
)

EXPLANATIONS: tuple[Explanation, ...] = (
    Explanation(
        "input_cpu",
        "training waits for batches while a core is busy making them",
        "decoding, parsing or augmenting samples takes longer than the step, or runs in the training process itself",
        "phase Data, CPU share of fetching of at least one half, the hottest line of the dataset or data function",
        (
            MEMOIZE,
            Fix("make the work cheaper: vectorise it, move constants out of the loop, store data preprocessed", NOTHING),
            WORKERS,
        ),
        DATA,
    ),
    Explanation(
        "input_io",
        "training waits for batches while no core is busy",
        "bytes arrive slowly: network or spinning disk, or very many small files",
        "phase Data, CPU share of fetching below one half, time without a core taken out",
        (
            Fix("stage the data on local NVMe or in memory", NOTHING),
            WORKERS,
            Fix("pack small files into shards of some hundred MB", "the order, if shards are shuffled instead of samples"),
        ),
        DATA,
    ),
    Explanation(
        "input_tail",
        "most steps find their batch ready, few wait long",
        "some samples take far longer than others and the queue of ready batches is too shallow to hide them",
        "median of Data near zero, most of the Data time above the median; workers that keep up on average, or none",
        (
            Fix("a deeper queue: prefetch_factor 3 or 4", "nothing but memory", "prefetch_factor"),
            WORKERS,
            Fix("find the slow samples and preprocess or split them", "content, if they are cut"),
        ),
        DATA,
    ),
    Explanation(
        "collate",
        "samples are quick to get, but joining them into a batch is slow",
        "tensors are built from Python lists, or padded and stacked one by one, in collate_fn",
        "collate_fn takes at least half of the time to make a batch",
        (
            Fix("collate once per batch with array operations; return arrays from the dataset instead of lists", NOTHING),
            Fix("index whole batches from one tensor instead of samples", "nothing, with the same sampler"),
            WORKERS,
        ),
        DATA,
    ),
    Explanation(
        "worker_startup",
        "a stall at the start of every epoch",
        "without persistent_workers all workers end with the epoch and are started again: fork or spawn, imports, open files",
        "time of iter(loader) and of the first batch above a usual one, times passes, of a loader with workers that do not persist",
        (
            Fix(
                "persistent_workers=True",
                "the random stream from the second epoch on, where shuffling draws from the global generator",
                "persistent_workers",
            ),
            Fix("fewer workers, or none where fetching is cheap", "random numbers drawn in workers", "dataloader_workers"),
            Fix("move heavy work out of the dataset's __init__ and worker_init_fn", NOTHING),
        ),
        DATA,
    ),
    Explanation(
        "repeated_work",
        "the same function is called with the same arguments again and again, with the same result",
        "work that belongs before the loop is done in it: reading a file, tokenising, resizing, building a mask",
        "at least a fifth of the traced calls of a function of the project repeat an earlier one, with equal arguments and result",
        (MEMOIZE, Fix("do it once in __init__ or before the loop", "nothing, if nobody writes into the result")),
        "https://docs.python.org/3/library/functools.html#functools.cache",
    ),
    Explanation(
        "h2d",
        "the step waits for copies to the device",
        "pageable memory is staged by the driver, and the copy blocks",
        "phase H2D on a run with a GPU",
        (
            Fix("pin_memory=True in the DataLoader", "nothing but host memory", "pin_memory"),
            Fix("non_blocking=True in the copies, once memory is pinned", "nothing, if the source is not written meanwhile"),
        ),
        TUNING,
    ),
    Explanation(
        "evaluation",
        "training stands still while the model is evaluated",
        "it records gradients nobody uses, runs in tiny batches, or runs far more often than anyone reads it",
        "phase Eval, times and mean time of the evaluations, whether gradients were recorded, batches and their size",
        (
            Fix("evaluate under torch.no_grad() or inference_mode()", NOTHING, "eval_no_grad"),
            Fix("larger evaluation batches", "metrics that average over batches; batch-free ones stay", "eval_batch_size"),
            Fix(
                "evaluate less often",
                "how often metrics are seen, and whatever hangs on them: early stopping, best checkpoint",
                "eval_cadence",
            ),
        ),
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation",
    ),
    Explanation(
        "checkpoint",
        "training stands still while the state is written",
        "checkpoints are large, frequent, or written to a slow disk",
        "phase Ckpt, times, mean time and size",
        (
            Fix("write less often", "how much work is lost after a crash", "checkpoint_cadence"),
            Fix("write a copy in the background", "memory for the copy; never alias live weights"),
        ),
        "https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html",
    ),
    Explanation(
        "logging",
        "training stands still while it writes logs",
        "every step prints, flushes or sends metrics",
        "phase Log, number and mean time of the calls",
        (
            Fix("log every n-th step", "which steps the log shows", "logging_cadence"),
            Fix("collect on the device and read once per log line", NOTHING),
        ),
        TUNING,
    ),
    Explanation(
        "debug_api",
        "forward and backward are many times slower than they need be",
        "a debugging aid was left on: anomaly detection, a profiler, gradcheck, blocking launches",
        "the setting was seen on during training steps; forward and backward are a large part of the time",
        (
            Fix("switch anomaly mode off for real runs", "nothing but the error message at a NaN: bitwise the same", "anomaly_off"),
            Fix("take the profiler out of the loop", NOTHING, "profiler_off"),
            Fix("switch it on by a flag, for the steps in question", NOTHING),
        ),
        "https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection",
    ),
    Explanation(
        "thread_oversubscription",
        "many threads share few cores; steps are slow and uneven",
        "thread pools are sized by the host's cores instead of the container's quota, or several processes each take all of them",
        "compute threads against the CPU budget (affinity and cgroup quota), or time without a core and uneven steps",
        (
            Fix(
                "as many threads as cores in the budget, over all processes; one for tiny operations",
                "rounding, where sums are split differently among threads",
                "torch_threads",
            ),
            Fix("OMP_WAIT_POLICY=PASSIVE", NOTHING),
        ),
        THREADS,
    ),
    Explanation(
        "host_code",
        "time passes between the phases, in the project's own Python",
        "metrics, callbacks, hooks, sampling or bookkeeping run in the training loop",
        "line samples place at least half of the time that lies in no phase in the project's own lines",
        (
            Fix("do it less often or for whole batches at once", "which steps it sees"),
            Fix("replace Python loops over elements by tensor operations", "rounding, if the order of sums changes"),
        ),
        "https://docs.python.org/3/howto/perf_profiling.html",
    ),
    Explanation(
        "optimizer",
        "the update takes a large part of the step",
        "the plain loop runs several small operations per parameter",
        "phase Opt; ranked by the part of it that a better implementation can save",
        (
            Fix("foreach=True", "rounding in the last bits, within the program's own noise", "optimizer_foreach"),
            Fix("fused=True", "rounding in the last bits, within the program's own noise", "optimizer_fused"),
            Fix("accumulate gradients and update less often", "the effective batch size: another training"),
        ),
        TUNING,
    ),
    Explanation(
        "padding",
        "the network computes on padding",
        "sequences of very different length are padded to the longest",
        "trailing runs of equal values in sampled integer inputs, times forward and backward",
        (
            Fix("pad to the longest of the batch instead of a fixed length", "nothing, if the padding is masked everywhere"),
            Fix("put sequences of like length together", "the order of the samples: needs the owner's agreement"),
            Fix("pack several sequences into one row", "what the network sees: needs the owner's agreement"),
        ),
        "https://huggingface.co/docs/transformers/pad_truncation",
    ),
    Explanation(
        "startup",
        "the run is over soon after it has begun",
        "imports, reading data or building the model take longer than the training",
        "time until the first step, of the whole run, where the program ended by itself",
        (
            Fix("keep prepared data on disk", NOTHING),
            Fix("import and build only what the run uses", NOTHING),
        ),
        "https://docs.python.org/3/using/cmdline.html#cmdoption-X",
    ),
    Explanation(
        "compute",
        "healthy: nothing but the network's own computing takes long",
        "there is no bottleneck of the kinds that these knobs can remove",
        "no cost of a tenth of the time or more",
        (Fix("kernels, precision, a compiler or other hardware: see what verify says of each", "rounding: numerics"),),
        TUNING,
    ),
)


def explain(kind: str) -> Explanation:
    """The explanation of `kind`. Raises `UsageError`, with near names, for one that does not exist or that no rule reports."""
    for explanation in EXPLANATIONS:
        if explanation.kind == kind:
            return explanation
    if kind in KINDS:
        raise UsageError(f"no rule reports {kind!r} in this version", f"findings that are reported: {', '.join(REPORTED)}")
    near = difflib.get_close_matches(kind, REPORTED, n=3, cutoff=0.4)
    raise UsageError(f"no finding is called {kind!r}", f"did you mean {' or '.join(near)}?" if near else f"findings: {', '.join(REPORTED)}")
