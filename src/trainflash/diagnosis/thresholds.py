"""Every number that a rule compares with, in one place, each with its source.

Sources: T1 to T23 are the sections of the throughput guide that this tool grew from; "rule of the bench" is the decision rule of
`trainflash.stats`; "measured" was measured on a 2-core CPU machine with torch 2.13; "own" is a choice, with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """All shares are of the steady wall time, from 0 to 1."""

    # What counts as a cost, and as the bottleneck.
    listed: float = 0.05  # own: the least detectable gain of the bench is 1.04 to 1.09, which a 5 % cost can just reach
    dominant: float = 0.10  # rule of the bench: four starts can show 1.09 at best, so a smaller cost alone proves nothing
    dominant_together: float = 0.17  # own: many small costs that add up to a factor of 1.2 are no healthy program
    high: float = 0.30  # own: a third of the wall time, a gain of up to 1.4
    tie: float = 0.03  # measured: attribution of a whole run is right within 1 point, lines within 1.8; twice that is a tie
    sites: int = 5  # own: so many places stand in each diagnosis
    clear_lead: float = 0.15  # own: of an unsteady run, five times the tie: nearer costs tie

    # When to abstain.
    few_steps_s: float = 8.0  # own: 400 samples, which place a share of a half within 5 points
    fewest_steps: int = 2  # own: one step may be a first one of something
    min_steps: int = 10  # rule of the bench: its warm-up finder reads windows of ten steps
    unexplained: float = 0.25  # own: time in no phase and in no line that could turn the order of the findings over
    explained: float = 0.5  # own: host_code must find at least half of Other in the owner's lines

    # Input.
    io_cpu_share: float = 0.5  # T8: workers sit in read (near 0) or are CPU-pegged (near 1); the middle divides them
    io_cpu_share_of_workers: float = 0.3  # measured: workers that only compute fall to 0.45 on a busy machine, sleepers stay below 0.05
    no_core: float = 0.5  # own: what waits for a core half of the time is late because of the machine, not of what it does
    hardly_any_core: float = 0.9  # own: of less than a tenth of the time nothing can be told: a small error turns it over
    making_part: float = 0.5  # own: workers whose batches take less than half of the wait are not what is waited for
    made_alone: float = 0.8  # own: time of a batch's making ÷ wait for it, below which workers cost more; as in the knob workers_off
    copied_mb_s: float = 2000.0  # own: of fetching; memory is copied at 5 to 10 GB/s, decoders take in some hundred MB/s
    collate_majority: float = 0.5  # own: collate is the name when it is the larger part of a batch's making
    collate_beside: float = 0.3  # own: and stands beside input_cpu when it is nearly as large
    tail_usual: float = 0.05  # T7: a bursty queue is usually full, so the usual (median) batch costs almost nothing
    far_ahead: float = 0.25  # own: workers that need a quarter of the time they have are never waited for on average
    handing_over: float = 0.20  # measured: taking a ready batch from its queue is up to 0.11 of the step on a busy 2-core machine
    tail_usual_known: float = 0.25  # own: slow samples are known by name, so usual batches may be a little late too
    tail_part: float = 0.7  # T7: and most of the wait comes from the few late batches
    tail_part_known: float = 0.5  # own: where slow samples are known by name, the larger part of the wait suffices
    tail_beyond_compute: float = 2.0  # measured: on a busy machine slow steps cost each phase the same milliseconds, within a factor of two
    tail_usual_seen: float = 0.15  # own: where waits were measured without passes' begins, less has to be guarded against
    started_times: int = 3  # own: pools or threads that are started once or twice belong to setting up
    started_of_wait: float = 0.25  # measured: forked processes gave their first results after 2.3 and 8 times as long as kept ones
    begun_each_step: float = 0.5  # own: passes per step; a loader that is begun for every other step is begun for steps
    repeated_calls: float = 0.2  # own: first calls of the few passes that a run shows count against it; later ones all repeat
    constant: float = 0.6  # own: of an input's cost: the larger part of it, clear of what the estimate may err
    repeated_times: int = 3  # own: fewer may be chance; work done once a step is traced in a few early steps only

    made_by_network: float = 0.7  # own: of what makes batches; environments between the policy's steps make up more than the rest

    worker_grown_mb: float = 30.0  # own: of private memory; a worker that only begins to work takes 5 to 20 MB

    # Compute and settings.
    anomaly_factor: float = 1.5  # measured: 1.2 (Linear 512) to 4.9 (Linear 64) on forward and backward; low on purpose
    anomaly_factor_most: float = 10.0  # T12: about ten times slower
    optimizer: float = 0.26  # own: to lead; a fused update brings 1.2 from there on; measured: Adam is 0.3 to 0.5 of a small network
    optimizer_saving: float = 0.7  # measured: fused Adam takes 0.3 of the plain loop's time (foreach 0.85)
    threads_over: float = 1.25  # own: a quarter more runnable threads than cores is more than rounding of a quota
    runqueue_wait: float = 0.25  # measured: at a quarter of the time without a core, pools of threads spin for each other
    threads_spread: float = 2.0  # own: p95 ÷ median of forward and backward; one thread on a busy machine stays below
    beside_cpu: float = 0.10  # own: a Python thread with less of a core cannot cost a dominant part
    held_up_as_often: float = 2.0  # own: a thread that holds the lock does so whatever training does; twice as often is another reason
    helpers_calm: float = 0.10  # own: compute threads with more of a core may be what the training thread waits for
    threads_used: float = (
        0.7  # own: threads that wait for each other use up the budget; tiny operations run on one thread whatever its size
    )
    padding: float = 0.3  # own: packing or bucketing rarely wins back more than half of what is padded
    debug_factor: float = 1.2  # measured: 1.35 (trace function, cProfile) to 1.8 (tracemalloc) for a tiny network, less for larger ones
    debug_factor_most: float = 2.0  # own: a little above what was measured
    mode_call_us: float = 2.5  # measured: an empty dispatch mode adds 2.7 µs to each operator, a function mode 0.8 µs
    looking_call_us: float = 30.0  # measured: torch's flop counter adds 32 to 72 µs to each operator, its debug mode 37 to 90
    light_factor: float = 1.1  # measured: 1.03 for development mode and a debugging allocator; Python that allocates more suffers more
    attention_saving: float = 0.4  # measured: the fused kernel takes 0.42 to 0.63 of the hand-written time from 64 keys on, with backward
    attention_keys: int = 64  # measured: with fewer keys the scores stay in the cache, and the step is made of other things
    double_saving: float = 0.4  # measured: float64 takes 1.5 to 2.4 times as long in linear layers (7 times in convolutions)
    double_part: float = 0.1  # own: large operators in float64 below a tenth of the computing would hardly be missed
    emulated_saving: float = 0.7  # measured: float16 on a CPU takes 5 to 26 times as long as float32
    half_saving: float = 0.2  # T9, T13 and measured gains of 1.1 to 2.05 of 16-bit formats and TF32: below the middle
    matmul_relevant: float = 0.1  # own: without matrix products or convolutions a number format changes little
    layout_saving: float = 0.1  # T11; measured: channels_last made one network 15 % faster and another 7 % slower
    autotune_saving: float = 0.1  # T10; own: low, because the first choice of cuDNN is often the best
    layout_copies: float = 0.2  # own: a fifth of all operator time in copies and layout changes is no by-product
    layout_undone: float = 2.0  # own: one copy a step may be the program's only way from its data to the network
    recompute_room: float = 0.5  # T17 and own: activations at most double what is used, so half of the memory must be free
    memory_full: float = 0.9  # stop at 85 to 90 % of memory: beyond it, nothing is to spare
    shapes_many: int = 8  # T16: torch's recompile limit, beyond which a function runs uncompiled
    setup_whole: float = 2.5  # measured: of 27 ms that new shapes cost a step, 10.4 were the forward pass's
    recompilations: int = 2  # own: one recompilation (static to dynamic shape) belongs to every program with a second shape
    micro_rows: int = 64  # own: with more rows a micro-batch is no longer small
    micro_parts: float = 6  # own: a step of losses on rows of their own (critics, views, tasks) seldom has more
    micro_overhead: float = 0.3  # own: least part of forward and backward in fixed costs before fewer, larger ones can pay
    micro_call_us: float = 8.0  # measured: of an operator of a GRU 15 of 19 µs at 8 rows and 8 of 30 µs at 24 stay, however many the rows
    micro_thin_rows: float = 4.0  # measured: of a product with a matrix of 512 × 512, 78, 54, 34, 20, 10 % stay at 2, 4, 8, 16, 32 rows
    micro_conv_us: float = 100.0  # measured: of convolutions of 16 channels 130 µs of 190 forward and 340 of 460 backward stay at 2 rows
    unheld: float = 0.2  # own: with fewer elements in vain, backward would hardly be shorter without them
    batches_each: float = 1.5  # own: an update that takes this many batches or more accumulates

    far_above_floor: float = 10.0  # measured: healthy products, softmax, normalisation and convolutions take 1.2 to 6 times their floor
    python_of_function: float = 0.5  # own: a function in which operators take the larger part is computing
    graph_built: float = 0.1  # own: of a place's time in backward, from which on it builds a part of the graph
    chained_ms: float = 0.02  # own: of an elementwise call; up to 12 µs are the cost of calling it on a busy machine
    chain_saved: float = 0.5  # own: six calls, fewer may be no chain
    operator_ms: float = 0.1  # own: a shorter call is mostly the cost of calling it
    grown: float = 1.25  # own: of a step, first to last third; more than the bench's noise between thirds of a quiet run
    grown_cpu: float = 1.15  # own: CPU time is read seconds apart, and knows nothing of waiting
    rising: float = 0.7  # own: 11 of 15 pairs of sixths in order; chance gives that in 7 runs of 100, and seldom in one place alone
    rising_alone: float = 0.9  # own: where only wall time is known; chance gives that in 1 run of 700
    grown_stays: float = 0.8  # own: of the longest part, that the last one has to be; else it was a while of other work on the machine
    grown_place: float = 0.5  # own: most of the growth is one place's
    stair: float = 0.7  # own: of all ups and downs between sixths of the window that one of them is

    # Device and launching.
    host_bound_lag: float = 0.05  # own: the device ends its step within a twentieth of a step after the host: it waits for the host
    host_waits: float = 0.10  # own: a host that waits for the device a tenth of the time is not what holds it up
    device_busy: float = 0.95  # T2: utilisation alone lies, so power has to agree
    device_power: float = 0.6  # T2: near idle power at full utilisation is a trickle of tiny kernels
    launch_operators: int = 300  # own: fewer operators a step leave nothing to fuse
    launch_operators_cpu: int = 1000  # own, the optimizer's left out: a healthy small transformer has 500, a cell in a loop 1500
    launch_mean_us: float = 20.0  # measured: 12 µs for an operator of a tiny cell, half of it the cost of calling it, on a busy machine
    collections_many: int = 100  # own: so many young collections beside a single full one are a cost of their own
    tiny_fixed: float = 0.7  # measured: 0.9 at a batch of 2 of which 32 rows take a quarter more time
    tiny_mean_us: float = 12.0  # measured: see launch_mean_us
    launch_call_us: float = 1.8  # measured: an operator on one element, with autograd and the Python around it; slower machines take longer
    launch_each_us: float = 8.0  # measured: rows of a loss, or nodes of a graph, one by one take 5 to 7 µs of a step for each operator
    launch_usual_us: float = 10.0  # measured, however long recording makes them look: 9 of tiny cells, 12 of backward in a healthy GRU
    launch_small: float = 0.3  # measured: of those 31 to 45 % of the recorded time; recording makes the rest look larger
    launch_covered: float = 0.5  # own: larger operators cover less than half of the computing; calling tiny ones dominates
    python_each_us: float = 50.0  # measured: Python around an operator takes 5 to 20 µs; twice that on a busy machine, to be cautious
    python_inside: float = 0.2  # own: twice a dominant cost, because it rests on a census of few steps
    launch_saving: float = 0.5  # T15 and own: reported gains around 2 for networks that only launch
    sync_of_line: float = 0.3  # own: a line that spends a third of its time in such calls has little else to do but feed them

    # Ranks.
    straggler: float = 1.15  # own: planted stragglers in published work begin at 1.16; noise between equal ranks stays below
    syncs_extra: float = 1.5  # T23 and own: more than one reduction for each update: accumulation without no_sync()
    bucket_small_mb: float = 5.0  # T23 and own: a fifth of the default of 25 MB

    # Machine.
    others_busy: float = 0.5  # own: others that use half as many cores as the program may use can take one from it at any time
    clock_lost: float = 0.1  # own: a clock within a tenth of its maximum is no loss worth a finding
    throttled_samples: float = 0.1  # own: a tenth of the samples, so that a short peak is none
    major_faults: float = 10.0  # own: per step; a fault costs about 0.1 ms from an SSD
    fault_ms: float = 0.1  # own: see major_faults
    alloc_retries: int = 3  # own: one may happen while sizes settle

    # Interruptions and start-up.
    writes_near: int = 8  # own: lines around a write in the function that runs the loop; of other functions all lines
    eval_beside: float = 0.5  # own: an evaluation is named by what takes at least half of it
    eval_dominant: float = 0.15  # own: it can be made rarer or cheaper in part only; in four real programs with 12 to 15 % nothing paid
    eval_of_forwards: float = 0.25  # own: of forwards alone; nothing paid in eight programs with 12 to 24 %, something from 26 % on
    eval_rows: int = 4  # own: training's rows ÷ an evaluation's, from which on larger batches would clearly shorten the evaluation
    rarer: float = 10.0  # own: the factor for which a cadence's gain is stated; users choose their own
    startup: float = 0.5  # own: half of a run's life is worth a word, though importing torch alone may take seconds
    startup_long_s: float = 15.0  # own: importing large libraries takes seconds; what takes longer is the program's own
    startup_own: float = 0.25  # own: with less of it in the program's own lines, the rest is importing, which has no line
    startup_first: float = 0.8  # own: a healthy program that trains for a fifth of its run is a start-up problem


DEFAULT = Thresholds()
