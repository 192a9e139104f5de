"""Explanations of the findings about the network's own computing."""

from __future__ import annotations

from trainflash.diagnosis.explanations.parts import FOREACH, NOTHING, TUNING, Explanation, Fix

RECOMPILATION = "https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html"
SAME_BATCH = "nothing in the sum of gradients, if the loss is weighted alike; rounding, batch statistics and random masks differ"

COMPUTING = (
    Explanation(
        "slow_operator",
        "one call of torch takes much of the step, and far longer than its bytes and FLOPs need",
        "the form in which it is called: a reduction over a dimension of two, drawing without replacement, strided operands, a layout that "
        "the CPU's kernels dislike, float64, a dense product of what is mostly zeros",
        "the calls of some early and late steps with their lines, their backward by the sequence numbers of the graph's nodes; its floor: "
        "bytes over the bandwidth and FLOPs over the peak that were measured on this machine with the threads of the program; or a form "
        "that is known to be slow",
        (
            Fix("write the call in the form that the finding names", "rounding, where sums are split differently"),
            Fix("order dimensions so that the last one is read in its order, or make the operand contiguous once", NOTHING),
            Fix("read only the part that is used, instead of copying all", NOTHING),
            Fix("torch.compile, where many such calls follow each other", "rounding"),
        ),
        "https://docs.pytorch.org/docs/stable/profiler.html",
        "T15",
    ),
    Explanation(
        "padding",
        "the network computes on padding, or predicts what nobody compares",
        "sequences of very different length are padded to the longest, or to a fixed length; a loss ignores targets, such as those of "
        "words that are not masked or of a prompt, and the last layer predicts them all the same",
        "trailing runs of equal values in sampled inputs, times forward and backward; targets of one early step that equal the loss's "
        "ignore_index, times what predictions and loss take",
        (
            Fix(
                "pad to the longest of the batch instead of a fixed length",
                "nothing, if the padding is masked everywhere",
                "pad_to_longest",
            ),
            Fix(
                "cut the columns that are padding in the whole batch, where samples come padded",
                "nothing, if the padding is masked everywhere",
                pattern="pad_no_wider_than_the_batch",
            ),
            Fix(
                "predict only where a target counts: select those positions in front of the last layer",
                "rounding, where that layer treats each position by itself",
                pattern="predict_where_the_loss_counts",
            ),
            Fix("put sequences of like length together", "the order of the samples: needs the owner's agreement"),
            Fix("pack several sequences into one row", "what the network sees: needs the owner's agreement"),
        ),
        "https://huggingface.co/docs/transformers/pad_truncation",
        "T16",
    ),
    Explanation(
        "shape_instability",
        "input shapes keep changing; steps stutter, mostly early in each epoch",
        "each new shape makes torch.compile compile again, cudnn.benchmark try all its algorithms again, or, on a CPU, oneDNN build the "
        "code of a convolution again",
        "reasons that torch gives for recompiling name sizes; or on a GPU cudnn.benchmark is on, shapes are many and forward is uneven; or "
        "on a CPU shapes are many and convolutions take much longer than the same ones once more, which two early steps try",
        (
            Fix("round the width of each batch up, where padding is masked", "rounding: other shapes", pattern="pad_to_few_widths"),
            Fix(
                "pad or bucket to a few fixed shapes; drop_last for the rest of an epoch", "the order, or which samples an epoch ends with"
            ),
            Fix("torch.compile(dynamic=True), or mark the dimension dynamic", "rounding: other kernels", "compile_dynamic"),
            Fix("cudnn.benchmark off where shapes must vary", "rounding: other algorithms"),
        ),
        RECOMPILATION,
        "T10, T16",
    ),
    Explanation(
        "recompilation",
        "a compiled program is slower than eager, or stutters and never settles",
        "a guard of torch.compile fails in step after step: a shape, a Python number, an attribute or a closure changes",
        "torch's own counters and callbacks: compilations in the steady part, their time, their reasons, the recompile limit",
        (
            Fix("keep what the guard names constant: a tensor instead of a Python number, no new closure per step", NOTHING),
            Fix("mark changing dimensions dynamic, or pad to a few shapes", "rounding: other kernels"),
            Fix("take the part that changes out of the compiled function", NOTHING),
            Fix("compile the blocks that repeat, each by itself", "rounding: other kernels", pattern="compile_repeated_blocks"),
            Fix(
                "let a number that the network counts be no constant of the compiled code", "rounding: other kernels", "compile_attributes"
            ),
            Fix("raise the recompile limit, for a handful of shapes that stay", "rounding; memory and start-up", "compile_limit"),
        ),
        RECOMPILATION,
        "T15, T16",
    ),
    Explanation(
        "small_microbatch",
        "many small backwards make one update though memory is free",
        "gradients are accumulated over micro-batches, or samples are fed one by one, too small to fill the device or to amortise the "
        "costs of each call",
        "backwards per update or calls of the network per batch, rows of each, the part of computing that more rows would not prolong, "
        "memory used; world size where above one",
        (
            Fix("feed the whole batch in one call where its samples have one shape", "rounding; statistics over the batch"),
            Fix("fewer, larger micro-batches with the same product", SAME_BATCH, "micro_batch"),
            Fix("a larger batch without accumulation", "the effective batch size where the product changes: another training"),
        ),
        TUNING,
        "T18",
    ),
    Explanation(
        "optimizer",
        "the update takes a large part of the step",
        "the plain loop runs several small operations per parameter",
        "phase Opt; how the optimizer was built, its tensors and operator calls; ranked by the part of it that a better "
        "implementation can save",
        (
            Fix("foreach=True", "rounding in the last bits, within the program's own noise", "optimizer_foreach"),
            Fix("fused=True", "rounding in the last bits, within the program's own noise", "optimizer_fused"),
            Fix("torch's optimizer in place of one written by hand that updates in the same way", "rounding", pattern="optimizer_of_torch"),
            FOREACH,
            Fix("sparse gradients for large embedding tables, with Adagrad or plain SGD", "rounding", pattern="sparse_embedding_gradients"),
            Fix("zero_grad(set_to_none=True)", "code that reads .grad between steps", pattern="zero_gradients_by_none"),
            Fix("factorise the matrices of a preconditioner less often", "updates use an older factorisation"),
            Fix("keep fewer updates in LBFGS", "the directions of the updates"),
            Fix("accumulate gradients and update less often", "the effective batch size: another training"),
        ),
        TUNING,
        "T12",
    ),
    Explanation(
        "recompute",
        "work of the network is done twice though memory is free, or for nothing",
        "activation checkpointing, torch's or written by hand, was left on after the model or the batch became smaller; or several parts "
        "of a network each run what they share; or a teacher that nobody trains records for backward",
        "time of checkpointed calls inside backward, and of what code there computes with gradients switched on, against peak memory and "
        "its limit; trained modules that get inputs again which they had in the same step, and give an equal result; modules that record "
        "for gradients which no optimizer takes, called with inputs that need none",
        (
            Fix(
                "switch it off, and watch the peak of two steps",
                "nothing but memory; random masks, unless their state was kept",
                "recompute_off",
            ),
            Fix("call what nobody trains under torch.no_grad()", NOTHING, pattern="no_gradients_for_what_nobody_trains"),
            Fix("checkpoint only the heaviest blocks that do not fit", "nothing but memory"),
            Fix("run what several parts share once, and hand its result to them", "nothing; what counts its calls, such as running means"),
        ),
        "https://docs.pytorch.org/docs/stable/checkpoint.html",
        "T17",
    ),
    Explanation(
        "attention_kernel",
        "attention takes a large part of the step, and of memory, for long sequences",
        "the whole matrix of scores is written: softmax(q @ k) by hand, or scaled_dot_product_attention fell back to "
        "its math kernel because "
        "of data type, head size or mask, or an attention module hands out its weights",
        "the calls with their shapes and estimated share; why no fused kernel was taken, where torch says it",
        (
            Fix(
                "F.scaled_dot_product_attention(q, k, v, is_causal=…) in place of the hand-written product",
                "rounding; dropout's random numbers",
                pattern="attention_by_one_call",
            ),
            Fix("switch fused kernels on again where the program switched them off", "rounding", "fused_kernels_on"),
            Fix(
                "four dimensions, (batch, heads, positions, width), where three are handed over",
                "rounding",
                pattern="attention_as_torch_wants_it",
            ),
            Fix(
                "need_weights=False in calls of nn.MultiheadAttention whose weights nobody reads",
                "rounding",
                pattern="attention_as_torch_wants_it",
            ),
            Fix(
                "feed it what fused kernels take: 16-bit inputs, head sizes that are multiples of 8, is_causal instead of a mask",
                "numerics",
            ),
            Fix(
                "make a fallback loud: with sdpa_kernel(SDPBackend.FLASH_ATTENTION) it is an error",
                "nothing where it runs; use it to check, not to train",
            ),
        ),
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
        "T14",
    ),
    Explanation(
        "compute",
        "healthy: nothing but the network's own computing takes long",
        "there is no bottleneck of the kinds that these knobs can remove",
        "no cost reaches the threshold of a bottleneck; smaller ones stand behind it",
        (Fix("kernels, precision, a compiler or other hardware: see what verify says of each", "rounding: numerics"),),
        TUNING,
        "T1, T13, T15",
    ),
)
