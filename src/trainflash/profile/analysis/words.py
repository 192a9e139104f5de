"""What the names of events mean: the only place that reads them. Each function looks at one name; callers ask once per distinct name.

Names come from PyTorch (Kineto, old and new), NCCL and its relatives, CUDA, HIP, cuDNN, cuBLAS, Triton, XLA and JAX.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Family = Literal[
    "attention", "matmul", "convolution", "normalization", "embedding", "loss", "optimizer", "pooling", "softmax", "reduction",
    "elementwise", "layout", "indexing", "random", "copy", "communication", "fused", "other",
]  # fmt: skip

# Collectives by name, most specific first; letters only, so that all_reduce, AllReduce and all-reduce are one word.
_COLLECTIVES = (
    ("all_reduce", "allreduce|crossdevicereduce"),
    ("all_gather", "allgather"),
    ("reduce_scatter", "reducescatter"),
    ("all_to_all", "alltoall|ncclalltoall|deepep|internodedispatch|intranodedispatch"),
    ("broadcast", "broadcast|bcast"),
    ("permute", "collectivepermute|ppermute"),
    ("barrier", "barrier"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("send_receive", "sendrecv|sendreceive|batchisendirecv"),
    ("send", "isend|send"),
    ("receive", "irecv|recv|receive"),
    ("reduce", "reduce"),
)
_COLLECTIVE_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _COLLECTIVES)
# "all" as a word of its own, no end of "small"; across a warp or a block nothing travels.
_ALL = r"(?<!warp_)(?<!block_)(?<!warp)(?<!block)(?:(?<![A-Za-z])all|(?-i:(?<=[a-z])All))[-_]?"
_COMMUNICATION = re.compile(
    r"nccl|rccl|msccl|oneccl|hccl|nvshmem|deep_?ep\b|symm_mem|multimem_|cross_device_reduce|lamport|"
    rf"{_ALL}(?:reduce|gather|to[-_]?all)|reduce[-_]?scatter|collective[-_]?(?:permute|broadcast)|ppermute|"
    r"^(?:partition-id|send|recv|send-done|recv-done)(?:\.\d+)?$",
    re.IGNORECASE,
)
_XLA_COPY = re.compile(r"^(?:copy|copy-start|copy-done|infeed|outfeed|dynamic-slice-start|dynamic-update-slice-start)(?:\.\d+)?$")

_SYNCHRONISING = re.compile(
    r"^(?:cuda|hip|musa)(?:Device|Stream|Event|Ctx)?Synchronize|^cu(?:Ctx|Stream|Event)Synchronize|^hsa_signal_wait|"
    r"^ze(?:CommandQueue|CommandListHost|EventHost|Fence)\w*Synchronize|^urQueueFinish|^urEventWait|"
    r"BlockHostUntil|BlockUntilReady|block_until_ready|AwaitReady"
)
_COPY_CALL = re.compile(r"^(?:cuda|hip|cu)Memcpy|CopyToDevice|TransferToDevice")
_COMPILED_CALL = re.compile(r"^PjitFunction\(")
_DISPATCHING = re.compile(
    r"^PjitFunction\(|^PJRT_LoadedExecutable_Execute|^PjRt\w*Executable::|^Build buffer allocations$|DeviceMemAllocator::Alloc"
)
_ALLOCATING = re.compile(r"^aten::(?:empty(?:_strided|_like)?|resize_|new_empty|contiguous|clone)$")
_LAUNCH = re.compile(r"^(?:cuda|hip|cu|hipExt|hipModule|hipExtModule)Launch(?:Cooperative)?Kernel|^cuLaunch(?!Host)")
_CAPTURE = re.compile(r"(?:Stream(?:Begin|End)Capture|StreamGetCaptureInfo|GraphInstantiate)")
_PREPARING = re.compile(
    r"^(?:cuda|hip|cu)\w*(?:Launch|Malloc|HostAlloc|Module|Library|FuncGetAttributes|Free|Init|Ctx(?!Sync)|Create)|^aten::empty(?:_strided)?$"
)
_GRAPH_LAUNCH = re.compile(r"(?:cuda|hip|cu)GraphLaunch|CommandBufferThunk|CommandBuffer::Submit")
_LOADING = re.compile(
    r"enumerate\(DataLoader\)|DataLoader\b.*(?:__next__|__iter__|next)|dataloader\.py\(\d+\): __(?:next|iter)__|"
    r"(?:^|[^a-z])(?:get|next|load|fetch)_?batch\b|data_?load(?:ing|er)\b|IteratorGetNext|^Iterator::|(?:^|[#\s])load(?:ing)?[ _]?data\b|"
    r"input_pipeline|^infeed|(?:^|[#\s/])(?:dataloading|data_?fetch(?:ing)?|next_?data)\b|^data$",
    re.IGNORECASE,
)
_FRAME = re.compile(r"^.*\.pyx?\(\d+\): (?P<function>.*)$")
_LOADERS_FRAME = re.compile(r"dataloader\.py\(\d+\): __(?:next|iter)__$")
_COLLECTIVE_CALL = re.compile(r"^(?:c10d::|gloo:|nccl:|mpi:|ucc:)|ncclGroupEnd|^ncclComm|ProcessGroup\w*::|Work::wait|record_param_comms")
_WAITING_FRAME = re.compile(
    r"<built-in method (?:acquire|poll|select|sleep|recv|read|wait|readinto) |time\.sleep|: sleep$|"
    r"(?:threading|selectors|queue)\.py\(\d+\): (?:wait|select|get|join)|connection\.py\(\d+\): (?:wait|poll|recv|_recv|_poll)"
)
_STEP = re.compile(r"^ProfilerStep\s*#(\d+)$")
_OPTIMIZER_STEP = re.compile(r"^Optimizer\.step#")
_EVALUATION = re.compile(r"\b(?:eval|evaluate|evaluation|valid|validate|validation|val|test|predict|inference)(?:\b|_)", re.IGNORECASE)
_AUTOGRAD_NODE = re.compile(r"Backward\d*$|^AccumulateGrad$|^torch::autograd::|^autograd::engine::")
_RUNNING = re.compile(
    r"[,;|]?\s*\b(?:\w*(?:id|seq|step|iter(?:ation)?|idx|index|batch|epoch|num(?:ber)?|count)\w*)\s*[=:#]\s*\d+\b"
    r"|(?:(?<=step)|(?<=iter)|(?<=iteration)|(?<=batch)|(?<=epoch))[\s_#:-]+\d+\b",
    re.IGNORECASE,
)
_MODULE_FRAME = re.compile(r"^nn\.Module: ")
_LIGHT = re.compile(
    r"^(?:iota|broadcast|constant|bitcast|parameter|tuple|get-tuple-element|reshape|convert|copy|copy-start|copy-done|slice|pad)(?:[._]|$)|"
    r"fill|memset|memcpy|arange|iota",
    re.IGNORECASE,
)

# Families by kernel or operator name, most specific first.
_FAMILIES: tuple[tuple[Family, str], ...] = (
    ("attention", r"flash|fmha|attention|sdpa|mha_|_attn|splash|paged_kv"),
    ("loss", r"nll_?loss|cross_?entropy|mse_?loss|bce|ctc_?loss|kl_?div|logsumexp"),
    ("optimizer", r"multi_tensor|adam(?!s)|fused_?sgd|\blamb(?:_|\b)|\blion(?:_|\b)|adagrad|rmsprop|foreach|optimizer|addcdiv|addcmul"),
    ("normalization", r"batch_?norm|layer_?norm|group_?norm|rms_?norm|instance_?norm|bn_fw|bn_bw|\bnorm_|_norm_|_norm\b|rsqrt"),
    (
        "layout",
        r"nchwToNhwc|nhwcToNchw|transpose|(?<!no)permute|im2col|col2im|contiguous|tensorTransform|computeOffsets|data formatting|reformat",
    ),
    ("convolution", r"conv|wgrad|dgrad|winograd|implicit_gemm|scudnn|xmma_fprop|fprop|cudnn::(?:cnn|ops)|fft2d"),
    (
        "matmul",
        r"gemm|gemv|cublas|cutlass|Cijk_|nvjet|wgmma|matmul|\bdot(?:_general)?\b|\bdot\.|aten::(?:mm|bmm|addmm|linear|baddbmm)\b|mma_|splitK",
    ),
    ("embedding", r"embedding|indexSelect|index_select|EmbeddingBag|split_embedding|gather_rows"),
    ("softmax", r"softmax"),
    ("pooling", r"pool"),
    ("random", r"dropout|philox|distribution|random|\brng|curand|threefry"),
    (
        "indexing",
        r"index|scatter|gather|sort|topk|radix|nonzero|where|masked|unique|cumsum|scan|searchsorted|dynamic-(?:update-)?slice|"
        r"catArray|\bcat\b",
    ),
    ("reduction", r"reduce|reduction|_red_|\bsum\b|\bmean\b|arg(?:max|min)|\bnorm\b"),
    (
        "elementwise",
        r"elementwise|vectorized|unrolled|_poi_|fill|\badd|\bmul|relu|gelu|silu|sigmoid|tanh|convert|broadcast|\bexp\b|select|compare|"
        r"lerp",
    ),
    ("fused", r"triton|fusion|fused|XlaModule|loop_"),
    ("copy", r"copy|memcpy|memset"),
)  # fmt: skip
_FAMILY_PATTERNS = tuple((family, re.compile(pattern, re.IGNORECASE)) for family, pattern in _FAMILIES)
_TEMPLATES = re.compile(r"<[^<>]*>")
_PARENTHESES = re.compile(r"\([^()]*\)")
_TRAILING_NUMBER = re.compile(r"(?:[._](?:clone|remat\d*|\d+))+$")
_FUSED_WORDS = re.compile(r"\d+$")
_MOVES = re.compile(
    r"_(?:unsafe_view|view|transpose|permute|clone|contiguous|reshape|expand|unsqueeze|squeeze|slice|select|split|cat|copy|t)(?=_|$)"
)
_ONLY_FUSED = re.compile(r"^triton_(?:poi|red|per|tem)_fused_*\d*$")


def is_communication(name: str) -> bool:
    """Whether a device event of this name moves data between devices."""
    return bool(_COMMUNICATION.search(name))


def is_copy(name: str) -> bool:
    """Whether an XLA op of this name moves data and computes nothing."""
    return bool(_XLA_COPY.match(name))


def collective(*names: str | None) -> str | None:
    """Which collective the first telling one of `names` is: all_reduce, all_gather, …; None where none tells."""
    for name in names:
        letters = re.sub(r"[^a-z]", "", name.lower()) if name else ""
        if letters:
            for word, pattern in _COLLECTIVE_PATTERNS:
                if pattern.search(letters):
                    return word
    return None


def is_synchronising(name: str) -> bool:
    """A call in which the host waits for the device."""
    return bool(_SYNCHRONISING.search(name))


def is_copy_call(name: str) -> bool:
    """A runtime call that copies."""
    return bool(_COPY_CALL.search(name))


def is_compiled_call(name: str) -> bool:
    """The call of a function that JAX compiled as a whole."""
    return bool(_COMPILED_CALL.search(name))


def is_dispatching(name: str) -> bool:
    """XLA's runtime on its way to a launch: it marks its own work as ranges, where CUDA's is calls."""
    return bool(_DISPATCHING.search(name))


def is_allocating(name: str) -> bool:
    """An operator that makes a tensor and computes nothing."""
    return bool(_ALLOCATING.search(name))


def is_launch(name: str) -> bool:
    """A runtime call that launches one kernel."""
    return bool(_LAUNCH.search(name))


def is_capture(name: str) -> bool:
    """A runtime call of the capture of a graph."""
    return bool(_CAPTURE.search(name))


def is_preparing(name: str) -> bool:
    """A runtime call that launches, allocates or loads: microseconds, unless it has to set something up first."""
    return bool(_PREPARING.search(name))


def is_graph_launch(name: str) -> bool:
    """A call that launches a whole CUDA graph, or XLA's command buffer."""
    return bool(_GRAPH_LAUNCH.search(name))


def is_loading(name: str) -> bool:
    """A range in which the program fetches its next batch. Of a Python frame the function tells, not the folder that its file lies in."""
    frame = _FRAME.match(name)
    return bool(_LOADING.search(frame["function"]) or _LOADERS_FRAME.search(name) if frame else _LOADING.search(name))


def is_collective_call(name: str) -> bool:
    """A host range of a process group or a communication library."""
    return bool(_COLLECTIVE_CALL.search(name))


def is_waiting_frame(name: str) -> bool:
    """A Python frame that does nothing but wait."""
    return bool(_WAITING_FRAME.search(name))


def step_number(name: str) -> int | None:
    """N of `ProfilerStep#N`."""
    found = _STEP.match(name)
    return int(found.group(1)) if found else None


def is_optimizer_step(name: str) -> bool:
    """PyTorch's own mark around `Optimizer.step`."""
    return bool(_OPTIMIZER_STEP.match(name))


def is_evaluation(name: str) -> bool:
    """A mark or range of an evaluation rather than of training."""
    return bool(_EVALUATION.search(name))


def is_module_frame(name: str) -> bool:
    """The call of a module, as the tracer writes it with `with_modules`."""
    return bool(_MODULE_FRAME.match(name))


def is_region(name: str) -> bool:
    """An operator-like event of the host that names a part of the program rather than one operator, such as `Optimizer.step#SGD.step`."""
    return "::" not in name and not _AUTOGRAD_NODE.search(name) and ("#" in name or " " in name or "." in name)


def without_numbers(name: str) -> str:
    """The name of a range without numbers that run: `record_param_comms, op_id = 9` is one region whatever the number."""
    return _RUNNING.sub("", name) or name


def is_light(name: str) -> bool:
    """Set-up work, such as iota or fill, which may come before the op that a gap really waits for."""
    return bool(_LIGHT.search(name))


def family(names: Iterable[str | None]) -> Family:
    """The semantic family of an op by the first of its names (kernel, operator, region) that tells one."""
    for name in names:
        if name:
            name = _without_moves(name)
            for word, pattern in _FAMILY_PATTERNS:
                if pattern.search(name):
                    return word
    return "other"


def _without_moves(name: str) -> str:
    """A fused kernel of Inductor's without those of its operators that only move: what else it does tells what it is."""
    if not name.startswith("triton_"):
        return name
    bare = name
    for _ in range(2):  # neighbours share their underscore
        bare = _MOVES.sub("", bare)
    return name if _ONLY_FUSED.match(bare) else bare


def canonical(name: str) -> str:
    """The name without template arguments, parameter lists and running numbers: what stays equal between two builds of a program."""
    bare, last = name, None
    while bare != last:
        last = bare
        bare = _TEMPLATES.sub("", bare)
    bare = bare.replace("(anonymous namespace)", "anonymous")
    last = None
    while bare != last:
        last = bare
        bare = _PARENTHESES.sub("", bare)
    bare = bare.removeprefix("void ").strip()
    if bare.startswith("triton_"):
        return _FUSED_WORDS.sub("", bare).rstrip("_")
    return _TRAILING_NUMBER.sub("", bare) or name
