"""What is known to change nothing and to draw nothing: operations on numbers, methods that only look, contexts, layers without a state."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.effects import purity
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, string_value

# Of torch and NumPy, as functions and as methods; and methods of texts, lists and networks that only look.
OPERATIONS = {
    "abs", "absolute", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "addmm", "all", "allclose", "amax", "amin", "angle", "any",
    "arange", "arccos", "arcsin", "arctan", "arctan2", "argmax", "argmin", "argsort", "argwhere", "around", "array", "array_equal",
    "as_tensor", "asarray", "astype", "atan", "atan2", "atleast_1d", "atleast_2d", "average", "avg_pool1d", "avg_pool2d", "baddbmm",
    "bfloat16", "binary_cross_entropy", "binary_cross_entropy_with_logits", "bincount", "bmm", "bool", "broadcast_tensors",
    "broadcast_to", "bucketize", "buffers", "capitalize", "cat", "cdist", "ceil", "celu", "children", "cholesky", "chunk", "clamp",
    "clip", "clone", "column_stack", "concat", "concatenate", "conj", "contiguous", "conv1d", "conv2d", "conv3d", "copy", "corrcoef",
    "cos", "cosh", "cosine_similarity", "count", "count_nonzero", "cov", "cpu", "cross", "cross_entropy", "ctc_loss", "cuda",
    "cumprod", "cumsum", "deepcopy", "deg2rad", "det", "detach", "diag", "diag_embed", "diagonal", "diff", "dim", "dist", "div",
    "divide", "dot", "double", "dstack", "dtype", "eig", "eigh", "eigvals", "eigvalsh", "einsum", "elapsed_time", "element_size",
    "elu", "embedding_bag", "empty_like", "endswith", "eq", "equal", "erf", "erfc", "exp", "expand", "expand_as", "expand_dims",
    "expm1", "eye", "fft", "fix", "flatten", "flip", "fliplr", "flipud", "float", "floor", "fmod", "format", "frac", "from_numpy",
    "full", "full_like", "gather", "ge", "gelu", "glu", "greater", "group_norm", "gt", "half", "hardtanh", "heaviside", "histc",
    "histogram", "hstack", "huber_loss", "hypot", "imag", "index", "index_select", "int", "interpolate", "inv", "isclose", "isfinite",
    "isin", "isinf", "isnan", "item", "items", "join", "keys", "kl_div", "kron", "kthvalue", "l1_loss", "layer_norm", "le",
    "leaky_relu", "lerp", "less", "lgamma", "linear", "linspace", "log", "log10", "log1p", "log2", "log_softmax", "logaddexp",
    "logdet", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logsigmoid", "logspace", "logsumexp", "long",
    "lower", "lstrip", "lstsq", "lt", "margin_ranking_loss", "masked_fill", "masked_select", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "max", "max_pool1d", "max_pool2d", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mish", "mm", "mode",
    "modules", "moveaxis", "movedim", "mse_loss", "mul", "multiply", "mv", "named_buffers", "named_children", "named_modules",
    "named_parameters", "nanmean", "nanmedian", "nanquantile", "nansum", "narrow", "ndim", "ne", "neg", "negative", "new_full",
    "new_ones", "new_tensor", "new_zeros", "nll_loss", "nonzero", "norm", "normalize", "not_equal", "numel", "numpy", "one_hot",
    "ones", "ones_like", "outer", "pad", "pairwise_distance", "parameters", "partition", "percentile", "permute", "pinv",
    "pixel_shuffle", "polyfit", "polyval", "pow", "power", "prelu", "prod", "qr", "quantile", "rad2deg", "ravel", "real",
    "reciprocal", "relu", "relu6", "remainder", "repeat", "repeat_interleave", "replace", "reshape", "reshape_as", "rfft", "roll",
    "rot90", "round", "rsqrt", "rstrip", "scatter", "searchsorted", "select", "selu", "sigmoid", "sign", "silu", "sin", "sinh",
    "size", "slogdet", "smooth_l1_loss", "softmax", "softmin", "softplus", "solve", "split", "splitlines", "sqrt", "square",
    "squeeze", "stack", "startswith", "state_dict", "std", "std_mean", "stft", "strip", "sub", "subtract", "sum", "sum_to_size",
    "svd", "svdvals", "swapaxes", "t", "take", "take_along_dim", "tan", "tanh", "tensor", "tensor_split", "tensordot", "tile",
    "title", "to", "to_dense", "tobytes", "tolist", "topk", "trace", "transpose", "trapz", "tril", "tril_indices",
    "triplet_margin_loss", "triu", "triu_indices", "true_divide", "trunc", "type_as", "unbind", "unflatten", "unfold", "unique",
    "unique_consecutive", "unsqueeze", "upper", "values", "vander", "var", "var_mean", "vdot", "vector_norm", "view", "view_as",
    "view_as_complex", "view_as_real", "vsplit", "vstack", "where", "xlogy", "zeros", "zeros_like",
}  # fmt: skip
FUNCTIONS = {"add", "sort", "msort", "is_tensor", "is_available", "synchronize", "current_device", "memory_allocated", "device"}
BUILTIN = {
    "abs", "all", "any", "bool", "bytes", "callable", "chr", "complex", "dict", "divmod", "enumerate", "filter", "float", "format",
    "frozenset", "getattr", "hasattr", "hash", "id", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min",
    "object", "ord", "pow", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "super", "tuple", "type",
    "vars", "zip",
}  # fmt: skip
MODULES = ("math", "cmath", "statistics", "itertools", "operator", "os.path", "copy", "sklearn.metrics", "scipy.stats", "scipy.special")
CLOCKS = {f"time.{name}" for name in ("time", "perf_counter", "monotonic", "process_time", "time_ns", "perf_counter_ns", "monotonic_ns")}
NUMBERS = ("torch", "numpy")
CONTEXTS = {
    "torch.no_grad",
    "torch.inference_mode",
    "torch.enable_grad",
    "torch.set_grad_enabled",
    "torch.autocast",
    "torch.cuda.amp.autocast",
    "torch.amp.autocast",
    "torch.random.fork_rng",
    "torch.autograd.profiler.record_function",
    "torch.profiler.record_function",
    "contextlib.nullcontext",
}
STATELESS = {
    "Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "Embedding", "Identity", "Flatten",
    "Unflatten", "ReLU", "ReLU6", "LeakyReLU", "PReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Sigmoid", "LogSigmoid",
    "Tanh", "Hardtanh", "Hardswish", "Softmax", "LogSoftmax", "Softplus", "LayerNorm", "GroupNorm", "RMSNorm", "AvgPool1d",
    "AvgPool2d", "MaxPool1d", "MaxPool2d", "Upsample", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d",
    "PixelShuffle", "ZeroPad2d", "Sequential", "ModuleList", "ModuleDict", "Parameter", "ParameterList", "CosineSimilarity",
    "Module",
}  # fmt: skip
MAKES = {"clone", "detach", "tensor", "zeros", "ones", "full", "eye", "linspace", "arange", "zeros_like", "ones_like"}
CONVERTS = {"double", "float", "to", "cuda", "cpu"}
LOSS_WORDS = {"loss", "criterion", "objective"}
DRAWS = purity.RANDOM_METHODS | {
    "poisson", "rrelu", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "gumbel_softmax",
    "rsample", "sample_n", "fractional_max_pool2d", "exponential", "exponential_", "geometric_", "cauchy_", "log_normal_", "beta",
    "gamma", "binomial", "dirichlet", "laplace", "lognormal", "triangular", "betavariate", "gammavariate", "expovariate",
    "normalvariate", "lognormvariate", "vonmisesvariate", "randrange", "getrandbits", "randbytes", "rayleigh", "standard_gamma",
    "standard_t", "standard_cauchy", "weibull", "zipf", "multivariate_normal", "permuted", "random_sample", "ranf",
    "random_integers", "chisquare", "negative_binomial", "hypergeometric", "logistic", "gumbel", "pareto",
}  # fmt: skip


def library(file: PythonFile, call: cst.Call) -> bool:
    """Whether a function of a library is known to change nothing and to draw nothing."""
    full, tail = file.full_name(call.func) or "", callees.called_name(call)
    root, module = full.split(".")[0], full.rpartition(".")[0]
    if module.startswith(MODULES) or full in CLOCKS or full in CONTEXTS:
        return True
    if full.startswith("torch.nn.") and tail[:1].isupper():
        return tail.endswith("Loss") or tail in {"Softmax", "LogSoftmax", "Sigmoid", "ReLU", "CosineSimilarity"}  # those without weights
    if "random" in module or keyword(call, "out") is not None or _true(keyword(call, "inplace")):
        return False
    if tail == "scaled_dot_product_attention":
        return keyword(call, "dropout_p") is None and len(call.args) < 5
    if root in NUMBERS:
        return tail in OPERATIONS | FUNCTIONS
    return root == "collections" or full in ("json.dumps", "json.loads")


def method(call: cst.Call) -> bool:
    """Whether a method of an object that nobody knows only looks, by its name: of a tensor, a text, a list, a dict or a network."""
    name = callees.method_name(call)
    if name == "get":  # of a dict; a queue's takes
        asked = call.args[0] if call.args else None
        named = any(arg.keyword is not None for arg in call.args)
        return asked is not None and not named and dotted(asked.value) not in ("True", "False")
    if name == "requires_grad_":
        return _new(call.func.value)  # type: ignore[union-attr]
    return name in OPERATIONS


def _new(node: cst.BaseExpression) -> bool:
    """Whether a tensor is made here, so that nobody else sees what is set of it: `x.clone()`, `x.detach().double()`."""
    if not isinstance(node, cst.Call):
        return False
    name = callees.called_name(node)
    converts = name in CONVERTS and isinstance(node.func, cst.Attribute)
    return name in MAKES or (converts and _new(node.func.value))  # type: ignore[union-attr]


def draws(file: PythonFile, call: cst.Call) -> bool:
    """Whether random numbers are drawn, by the name of what is called."""
    full, tail = file.full_name(call.func) or "", callees.called_name(call)
    module = full.rpartition(".")[0]
    if module in ("random", "numpy.random", "secrets", "uuid") and full not in purity.SEEDED:
        return tail not in ("seed", "setstate", "set_state")
    return tail in DRAWS and (isinstance(call.func, cst.Attribute) or full != tail) and not switched(call)


def stateless(file: PythonFile, value: cst.BaseExpression) -> bool:
    """Whether a value is a layer of torch's that does the same in each mode, or a chain of such."""
    full = file.full_name(value.func) or "" if isinstance(value, cst.Call) else ""
    tail = full.split(".")[-1]
    if not full.startswith("torch.nn.") or not (tail in STATELESS or tail.endswith("Loss")):
        return False
    if keyword(value, "max_norm") is not None:  # type: ignore[arg-type]
        return False
    if tail == "Sequential":
        return all(stateless(file, arg.value) for arg in value.args)  # type: ignore[attr-defined]
    return True


def opens_to_read(call: cst.Call) -> bool:
    """Whether a file is opened for reading only."""
    given = keyword(call, "mode") or (call.args[1] if len(call.args) > 1 and call.args[1].keyword is None else None)
    mode = "r" if given is None else string_value(given.value)
    return mode is not None and not set(mode) & set("wax+")


def is_loss(text: str) -> bool:
    """Whether what is called says that it is a loss: those of torch hold nothing."""
    name = text.lower().removeprefix("self.")
    return "." not in name and bool(set(name.split("_")) & LOSS_WORDS)


def switched(call: cst.Call) -> bool:
    """Whether dropout goes with the network's mode."""
    given = keyword(call, "training")
    return given is not None and dotted(given.value) == "self.training"


def _true(arg: cst.Arg | None) -> bool:
    return arg is not None and dotted(arg.value) != "False"
