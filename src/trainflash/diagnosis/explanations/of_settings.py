"""Explanations of the findings about how torch was set up."""

from __future__ import annotations

from trainflash.diagnosis.explanations.parts import NOTHING, Explanation, Fix

SETTINGS = (
    Explanation(
        "debug_api",
        "forward and backward are many times slower than they need be",
        "a debugging aid was left on: anomaly detection, a profiler, gradcheck, blocking launches, tracing, verbose logs, a dispatch or "
        "function mode",
        "the setting was seen on during training steps, with the line or variable that switched it on; forward and "
        "backward are a large part",
        (
            Fix("switch anomaly mode off for real runs", "nothing but the error message at a NaN: bitwise the same", "anomaly_off"),
            Fix("take the profiler out of the loop", NOTHING, pattern="take_the_profiler_out"),
            Fix(
                "let the profiler's schedule end after one recording",
                "what is shown of it covers these steps alone",
                pattern="take_the_profiler_out",
            ),
            Fix(
                "count the operations of the first step alone",
                "figures made of the count rest on that step",
                pattern="count_operations_once",
            ),
            Fix("take cProfile away, or start it for a few steps", NOTHING, pattern="take_the_profiler_out"),
            Fix("switch it on by a flag, for the steps in question", NOTHING),
        ),
        "https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection",
        "T12",
    ),
    Explanation(
        "precision",
        "matrix products run in a slower number format than needed",
        "float32 without TF32 or autocast on a GPU with Tensor Cores, float64 by accident, in the whole network or in a part of the step "
        "(a loss on `x.double()`, a constant from numpy), or a 16-bit format that the CPU has to emulate",
        "parameters' type, the part of operator time whose results are float64 in the graph, autocast, float32 matmul precision and the "
        "device's capability; on a GPU only where the device is the bottleneck",
        (
            Fix(
                "bring the network and its data from float64 (often from numpy) to float32",
                "precision: needs the owner's agreement",
                pattern="single_precision_everywhere",
            ),
            Fix(
                "torch.set_float32_matmul_precision('high') from compute capability 8.0 on",
                "rounding of products to 10 bits: numerics",
                "matmul_precision",
            ),
            Fix("torch.autocast('cuda', dtype=torch.bfloat16)", "numerics: losses, overflow, what is kept in float32", "bf16_autocast"),
            Fix("float32 or bfloat16 instead of float16 on a CPU", "numerics: usually more exact"),
        ),
        "https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html",
        "T9, T13",
    ),
    Explanation(
        "memory_format",
        "a convolutional network does not reach the card's speed, or tensors are copied from layout to layout",
        "NCHW inputs under 16-bit autocast, tensors that change layout in each step, a weight that was made by transposing or by LAPACK "
        "(torch.linalg.qr, svd) and lies column by column, or cuDNN's first choice of algorithm with fixed shapes: "
        "cudnn.benchmark has no kind of its own and is reported here",
        "convolutions, layout of the inputs and weights, the part of operator time in copies, input shapes, cudnn.benchmark. On a CPU a "
        "layout alone is no fault: a diagnosis runs the program's convolutions, poolings and norms in both, after its last step, and "
        "blames NCHW for what channels_last saved there",
        (
            Fix(
                "torch.backends.cudnn.benchmark = True, where all inputs have one shape",
                "rounding, and the choice may differ from run to run",
            ),
            Fix("model and inputs to memory_format=torch.channels_last, once", "rounding: other kernels"),
            Fix("remove .contiguous() and .permute() pairs from the step", "rounding: other kernels", pattern="keep_the_memory_format"),
            Fix("store such a weight by .contiguous(), once, where it is made", "rounding of sums over all of it, such as a clipping norm"),
        ),
        "https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
        "T10, T11",
    ),
)
