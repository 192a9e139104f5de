"""Explanations of the findings about the machine and the interpreter."""

from __future__ import annotations

from trainflash.diagnosis.explanations.parts import NOTHING, THREADS, Explanation, Fix

SNAPSHOT = (
    "find what allocated the memory with torch's snapshot: torch.cuda.memory._record_memory_history(), then "
    "_dump_snapshot('memory.pickle') "
    "after two steps, opened at https://docs.pytorch.org/memory_viz"
)

BETWEEN = "nothing but memory between collections"
SYSTEM = (
    Explanation(
        "thread_oversubscription",
        "many threads share few cores; steps are slow and uneven",
        "thread pools are sized by the host's cores instead of the container's quota, or several processes each take all of them",
        "compute threads of all ranks and busy data workers against the CPU budget (affinity and cgroup quota, never "
        "the host's cores), and "
        "that they use it up; or time without a core and uneven steps",
        (
            Fix(
                "as many threads as cores in the budget, over all processes; one for tiny operations",
                "rounding, where sums are split differently among threads",
                "torch_threads",
            ),
            Fix("OMP_WAIT_POLICY=PASSIVE", NOTHING, "omp_wait_policy"),
            Fix("fewer data workers: more make it worse", "random numbers drawn in workers"),
        ),
        THREADS,
        "T3",
    ),
    Explanation(
        "throttling",
        "the same step takes longer than the machine could do it",
        "a CPU quota stops the container in each period, or a GPU lowers its clock for heat or power",
        "time stopped by the quota; reasons that the driver gives for a lower clock, how often, and how far the clock is below its maximum",
        (
            Fix("no more threads and workers than the quota has cores", "rounding, where sums are split differently", "torch_threads"),
            Fix("ask for a larger quota, or better cooling", NOTHING),
            Fix("compare runs only on machines that throttle alike", NOTHING),
        ),
        "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
        "T2",
    ),
    Explanation(
        "worker_memory",
        "the memory of data workers grows with each batch",
        "the data set holds Python objects (lists, dictionaries, strings): reading one counts a reference, which copies its page of memory "
        "into each forked worker",
        "private memory of the workers and their page faults, read now and then while they make batches",
        (
            Fix("hold the samples in arrays (numpy, torch, pyarrow) instead of lists of Python objects", NOTHING),
            Fix("gc.freeze() before the workers are started", NOTHING),
            Fix("fewer workers, or persistent ones that are not copied anew for each pass", "random numbers drawn in workers"),
        ),
        "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
        "T22",
    ),
    Explanation(
        "memory_pressure",
        "steps stall while memory is found",
        "empty_cache() in the loop, an allocator that frees and asks again, a control group at its limit, swapping",
        "time in empty_cache by line, allocation retries, stalls that the kernel reports, faults from disk beside swap or a limit",
        (
            Fix("take empty_cache() out of the loop: it only makes the allocator ask the driver again", NOTHING),
            Fix("PYTORCH_ALLOC_CONF=expandable_segments:True (in older torch PYTORCH_CUDA_ALLOC_CONF)", NOTHING),
            Fix(SNAPSHOT, NOTHING),
            Fix("fewer workers, or a dataset that they share instead of copying", "random numbers drawn in workers"),
            Fix("smaller micro-batches with accumulation, activation checkpointing", "rounding; batch statistics"),
        ),
        "https://docs.pytorch.org/docs/stable/torch_cuda_memory.html",
        "T18, T22",
    ),
    Explanation(
        "garbage_collection",
        "training stops now and then for Python's garbage collector",
        "gc.collect() in the loop or in a helper called there, lowered thresholds, or millions of live objects that collections walk",
        "time of all collections, how many were full or called by the program, and the line that calls them",
        (
            Fix("take gc.collect(), or the helper that calls it, out of the loop", BETWEEN, "gc_collect_off"),
            Fix("leave gc.set_threshold() and gc.set_debug() as Python sets them", BETWEEN, pattern="collect_no_garbage_by_hand"),
            Fix("higher gc.set_threshold(), so that collections come less often", BETWEEN, "gc_threshold"),
            Fix("gc.freeze() after start-up, so that long-lived objects are walked no more", "nothing but memory"),
            Fix("collect at fixed steps only (gc.disable), on all ranks at the same ones", BETWEEN),
            Fix("keep samples in arrays instead of lists and dictionaries", NOTHING),
        ),
        "https://docs.python.org/3/library/gc.html",
    ),
)
