"""Explanations of the findings about making batches."""

from __future__ import annotations

from trainflash.diagnosis.explanations.parts import (
    AHEAD,
    ALONE,
    DATA,
    JOIN_ONCE,
    KEEP_LINKED,
    KEEP_OPEN,
    KEEP_READ,
    MEMOIZE,
    NOTHING,
    SETS,
    STREAM,
    WORKERS,
    Explanation,
    Fix,
)

INPUT = (
    Explanation(
        "input_cpu",
        "training waits for batches while a core is busy making them",
        "decoding, parsing or augmenting samples takes longer than the step, or runs in the training process itself (num_workers=0)",
        "phase Data, the CPU share of fetching (time without a core taken out), the hottest line of the dataset or data function",
        (
            MEMOIZE,
            KEEP_OPEN,
            KEEP_LINKED,
            KEEP_READ,
            JOIN_ONCE,
            AHEAD,
            SETS,
            Fix("make the work cheaper: vectorise it, move constants out of the loop, store data preprocessed", NOTHING),
            WORKERS,
            ALONE,
            Fix("add the weights of a draw up once instead of in each draw", NOTHING, pattern="draw_by_summed_weights"),
            Fix("convolve long rows by Fourier transforms", "rounding", pattern="convolve_by_fourier"),
            STREAM,
            Fix(
                "keep workers between epochs, pin memory, prefetch more: in this order, once there are workers",
                "order from the second epoch on, where shuffling draws from the global generator",
                "persistent_workers",
            ),
            Fix("do heavy transforms on the GPU, in whole batches", "what samples look like: another implementation of the transform"),
        ),
        DATA,
        "T1, T3, T4, T8, T19",
    ),
    Explanation(
        "input_io",
        "training waits for batches while no core is busy",
        "bytes arrive slowly: network or spinning disk, or very many small files",
        "phase Data, a low CPU share of fetching (time without a core taken out); what disk and network delivered, where measured",
        (
            Fix("map an array's file (mmap_mode) where only a part of it is used", NOTHING, pattern="map_the_array_file"),
            KEEP_OPEN,
            KEEP_READ,
            Fix("ask for all samples of a batch in one request", NOTHING, pattern="one_request_for_a_batch"),
            Fix("read the samples of a batch with several threads", NOTHING, pattern="read_with_threads"),
            AHEAD,
            Fix("stage the data on local NVMe or in memory", NOTHING),
            WORKERS,
            ALONE,
            STREAM,
            Fix("pack small files into shards of some hundred MB", "the order, if shards are shuffled instead of samples"),
        ),
        DATA,
        "T1, T3, T8",
    ),
    Explanation(
        "input_tail",
        "most steps find their batch ready, few wait long",
        "some samples take far longer than others and the queue of ready batches is too shallow to hide them",
        "waits of ordinary steps: the median near zero, most of the time above it; workers that keep up on average, or "
        "none; slow samples by "
        "index and file",
        (
            Fix("a deeper queue: prefetch_factor 3 or 4", "nothing but memory", "prefetch_factor"),
            WORKERS,
            ALONE,
            STREAM,
            AHEAD,
            Fix(
                "take batches as they are ready: in_order=False, with two workers or more (torch 2.6)",
                "the order of samples, which is another one in each run, even with a seed",
                pattern="work_in_other_workers",
            ),
            Fix("find the slow samples (they stand in the evidence) and preprocess or split them", "content, if they are cut"),
        ),
        "https://docs.pytorch.org/tutorials/intermediate/tensorboard_profiler_tutorial.html",
        "T7",
    ),
    Explanation(
        "collate",
        "samples are quick to get, but joining them into a batch is slow",
        "tensors are built from Python lists, or padded and stacked one by one, in collate_fn",
        "collate_fn takes at least half of the time to make a batch, or a large part beside the samples; its hottest line",
        (
            Fix("collate once per batch with array operations; return arrays from the dataset instead of lists", NOTHING),
            Fix("make one array of a list of arrays in front of the tensor", NOTHING, pattern="one_array_before_the_tensor"),
            Fix(
                "make one tensor of a list of numbers, where the default collate function makes one for each",
                NOTHING,
                pattern="one_array_before_the_tensor",
            ),
            JOIN_ONCE,
            Fix("index whole batches from one tensor instead of samples (__getitems__)", "nothing, with the same sampler"),
            WORKERS,
            ALONE,
            STREAM,
        ),
        DATA,
        "T8",
    ),
    Explanation(
        "worker_startup",
        "a stall at the start of every epoch",
        "without persistent_workers, or with a loader built again, all workers end with the epoch and are started again: fork or spawn, "
        "imports, open files; or a loader is iterated anew for each step, as next(iter(loader)) does; or the program starts pools, "
        "processes or threads of its own for each batch",
        "Data time around each pass's begin above a usual step's, times passes, of loaders whose workers were started again; "
        "the time of starting and ending other processes and threads, by the line that does it",
        (
            Fix(
                "persistent_workers=True",
                "the random stream from the second epoch on, where shuffling draws from the global generator",
                "persistent_workers",
            ),
            Fix(
                "build the loader or the pool once, before the loop",
                "the order from the second epoch on, where shuffling draws from the global generator",
                "loader_before_loop",
            ),
            Fix(
                "keep one iterator and begin it again at its end",
                "which samples come together, each once in a pass",
                pattern="keep_the_iterator",
            ),
            Fix("do not reload Lightning's loaders after each epoch", "what a data module gives anew", pattern="work_in_other_workers"),
            ALONE,
            Fix("fewer workers", "random numbers drawn in workers", "dataloader_workers"),
            Fix("move heavy work out of the dataset's __init__ and worker_init_fn", NOTHING),
        ),
        DATA,
        "T5",
    ),
    Explanation(
        "repeated_work",
        "the same function is called with the same arguments again and again, with the same result",
        "work that belongs before the loop is done in it: reading a file, tokenising, resizing, building a mask",
        "a good part of the traced calls of a function of the project, or of torch's operators and frozen networks by a line of it, "
        "repeat an earlier one, with equal arguments and result; it stands beside the cost of the phase that it is done in",
        (
            MEMOIZE,
            Fix("do it once in __init__ or before the loop", "nothing, if nobody writes into the result"),
            Fix("give a cache that forgets too soon more room", "nothing but memory", pattern="give_the_cache_room"),
            Fix("keep a constant tensor as a buffer", "nothing but memory"),
            Fix(
                "keep what a frozen network answers beside the samples",
                "nothing but memory, where nothing is drawn at random in front of it",
                pattern="answers_of_a_frozen_network_once",
            ),
        ),
        "https://docs.python.org/3/library/functools.html#functools.cache",
    ),
)
