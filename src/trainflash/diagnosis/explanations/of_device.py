"""Explanations of the findings about feeding the device."""

from __future__ import annotations

from trainflash.diagnosis.explanations.parts import FOREACH, NOTHING, TUNING, VMAP, Explanation, Fix

DEVICE = (
    Explanation(
        "h2d",
        "the step waits for copies to the device",
        "pageable memory is staged by the driver, and the copy blocks",
        "phase H2D on a run with a GPU, the loader's pin_memory, what the copies take on the device",
        (
            Fix("pin_memory=True in the DataLoader", "nothing but host memory", "pin_memory"),
            Fix("non_blocking=True in the copies, once memory is pinned", "nothing, if the source is not written meanwhile"),
            Fix("send smaller types (uint8) and convert on the device", "nothing, if the conversion is the same"),
        ),
        "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        "T6",
    ),
    Explanation(
        "sync_point",
        "a line reads tensors in each step, and the device runs dry behind it",
        ".item(), .cpu(), .tolist(), print of a tensor, a Python condition on one, or an explicit synchronize in the step",
        "calls by line with their cost, not their number; on a device never more than it idles, elsewhere the calls' own time",
        (
            Fix("collect on the device and read every n-th step", "which steps are seen"),
            Fix("read once for the whole tensor (tolist, numpy) instead of element by element", NOTHING),
            Fix("decide on the device: torch.where instead of if", "rounding, if the order of operations changes"),
        ),
        TUNING,
        "T20, T23",
    ),
    Explanation(
        "launch_overhead",
        "thousands of tiny operators a step; the device, or the core, waits for Python",
        "loops over time steps, heads, samples or parameters in Python; operators too small to fill the device",
        "operators per step and how small they are; on a GPU its lag behind the host near zero though the host waits "
        "nowhere; on a CPU Python "
        "between the operators takes longer than they do. Only where no larger cause is found",
        (
            Fix("one operator for the whole loop: batched products, fused cells such as nn.LSTM", "rounding"),
            VMAP,
            FOREACH,
            Fix("torch.compile(model), mode='reduce-overhead' for CUDA graphs", "rounding: other kernels; first steps are slow"),
            Fix("larger batches", "the effective batch size: another training"),
        ),
        "https://docs.pytorch.org/docs/stable/torch.compiler.html",
        "T2, T15, T20",
    ),
    Explanation(
        "stream_wait",
        "work was launched long before, and the device is idle all the same: it waits on the device's side",
        "events of another stream, a collective whose other ranks come late, a host function on the stream, another process on the card, a "
        "driver that sends launches off in batches",
        "of a profiler's trace: an idle stretch whose next work had been launched before it began, or 0.1 ms and more before that work did",
        (
            Fix("look at the events that its stream waits for, and at what runs on the other streams", "none"),
            Fix("profile all ranks: the one that comes last to the collective before is the one to look at", "none"),
            Fix("no other process on the card while measuring", "none"),
        ),
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#streams",
    ),
)
