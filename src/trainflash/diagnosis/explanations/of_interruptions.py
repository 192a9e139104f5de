"""Explanations of the findings about what interrupts training."""

from __future__ import annotations

from trainflash.diagnosis.explanations.parts import FOREACH, JOIN_ONCE, NOTHING, SETS, STORED, TUNING, VMAP, Explanation, Fix

INTERRUPTIONS = (
    Explanation(
        "logging",
        "training stands still while it writes logs",
        "every step prints, flushes, commits or sends metrics",
        "phase Log, number, rhythm and mean time of the calls, how much of it reads tensors; code between the phases that was "
        "seen to write files, a database or to a server",
        (
            Fix("log every n-th step", "which steps the log shows", "logging_cadence"),
            Fix("log at a higher level", "messages for debugging are no longer written", pattern="log_only_what_is_heard"),
            STORED,
            Fix("collect on the device and read once per log line", NOTHING),
        ),
        TUNING,
        "T23",
    ),
    Explanation(
        "checkpoint",
        "training stands still while the state is written",
        "checkpoints are large, frequent, or written to a slow disk",
        "phase Ckpt, times, rhythm, mean time, size and rate of writing; code between the phases that was seen to write what "
        "looks like the parameters",
        (
            STORED,
            Fix("write less often", "how much work is lost after a crash", "checkpoint_cadence"),
            Fix("write to a local disk and copy later", "where the newest checkpoint lies after a crash"),
            Fix("write a copy in the background", "memory for the copy; never alias live weights"),
        ),
        "https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html",
    ),
    Explanation(
        "evaluation",
        "training stands still while the model is evaluated",
        "it records gradients nobody uses, runs in tiny batches, or runs far more often than anyone reads it",
        "phase Eval, times, rhythm and mean time of the evaluations, whether gradients were recorded, batches and their size",
        (
            Fix("evaluate under torch.no_grad() or inference_mode()", NOTHING, pattern="evaluate_without_gradients"),
            Fix("larger evaluation batches", "metrics that average over batches; batch-free ones stay", "eval_batch_size"),
            Fix(
                "evaluate less often",
                "how often metrics are seen, and whatever hangs on them: early stopping, best checkpoint",
                "eval_cadence",
            ),
            Fix("evaluate on a part of the data", "the metric itself: another, noisier estimate"),
        ),
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation",
    ),
    Explanation(
        "callback",
        "forward, backward or the update take long, and the network is not why",
        "hooks, metrics or trackers run inside them, at each step",
        "samples whose stack goes through torch's calling of hooks, or into a library of metrics or trackers, add up to a bottleneck's "
        "share inside forward, backward and step",
        (
            Fix("compute and log every n-th step", "which steps the record shows"),
            Fix("update a metric with detached values each step, and compute it once a pass", "when its value is known"),
            Fix("take away what nobody reads", "the record itself"),
        ),
        "https://lightning.ai/docs/torchmetrics/stable/pages/overview.html",
        "T23",
    ),
    Explanation(
        "growth",
        "each step takes longer than the one before",
        "something is kept from step to step: a metric that is never reset, a list of tensors, hooks that are registered again, numbers "
        "that become subnormal",
        "the medians of six parts of the steady steps rise, CPU time rises with them, and one place takes most of the difference while "
        "the others stay as they were",
        (
            Fix("reset the metric, or empty the list, at each pass", "over which samples the metric is computed"),
            Fix("keep numbers (detached, by item()) instead of tensors with their graphs", NOTHING),
            Fix("register hooks once; call operators without a derivative under torch.no_grad()", NOTHING),
            Fix("torch.set_flush_denormal(True) where numbers become subnormal", "numbers below 1e-38 become zero"),
        ),
        "https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory",
    ),
    Explanation(
        "host_code",
        "time passes between the phases, in the project's own Python",
        "metrics, callbacks, hooks, sampling or bookkeeping run in the training loop",
        "line samples place at least half of the time that lies in no phase in the project's own lines; garbage "
        "collections, emptied caches "
        "and reading of tensors in them are findings of their own; hooks by the samples of their lines inside forward and backward",
        (
            Fix("do it every so many steps", "which steps it sees", "every_nth"),
            Fix("do it for whole batches at once", "rounding, if the order of sums changes"),
            Fix("ask the logger whether anybody listens before a message is put together", NOTHING, pattern="log_only_what_is_heard"),
            Fix("replace Python loops over elements by tensor operations", "rounding, if the order of sums changes"),
            STORED,
            JOIN_ONCE,
            SETS,
            FOREACH,
            VMAP,
        ),
        "https://docs.python.org/3/howto/perf_profiling.html",
        "T3, T21",
    ),
    Explanation(
        "startup",
        "the run is over soon after it has begun",
        "imports, reading data or building the model take longer than the training",
        "time until the first step, of the whole run, where the program ended by itself",
        (
            SETS,
            Fix("keep prepared data on disk", NOTHING),
            Fix("import and build only what the run uses", NOTHING),
        ),
        "https://docs.python.org/3/using/cmdline.html#cmdoption-X",
    ),
    Explanation(
        "hung",
        "no step ends any more, though the process lives",
        "a deadlock between workers, a collective that one rank never enters, a lock, a network read without a time limit",
        "asked of a running process only: trainflash diagnose --pid PID looks twice at the stacks of all its processes",
        (
            Fix("read where each process stands; the place that does not move is the cause", NOTHING),
            Fix("give collectives and downloads a time limit, so that they fail instead", "when a run ends, not what it computes"),
            Fix("start workers with spawn where threads existed before the fork", "random numbers drawn in workers; start-up time"),
        ),
        "https://github.com/benfred/py-spy",
        "T21, T23",
    ),
)
