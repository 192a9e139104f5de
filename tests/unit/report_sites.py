"""Cost sites and a call tree as a diagnosis has them, for tests of the reports: a metric, a network, an optimizer, workers."""

from __future__ import annotations

from trainflash.schema import CallNode, CallTree, Location, Operand, Site, SiteOperator

STEP = "Module.training_step"
METRIC = Location("train.py", 29, STEP)
NETWORK = Location("train.py", 27, STEP)
OPTIMIZER = Location("train.py", 48, "main")
COPIES = Location("torchmetrics/metric.py", 968, "Metric._copy_state_dict.<locals>.<listcomp>")
LINEAR = Location("torch/nn/modules/linear.py", 134, "Linear.forward")
_MODULE = "torch/nn/modules/module.py"
_OPERAND = Operand((256, 256), "float32", requires_grad=True)


def _site(location: Location, share: float, forward: float, backward: float = 0.0, phase: str = "Fwd", **more) -> Site:
    return Site("main", phase, location, share, share / 2, share, forward, backward, **more)


SITES = (
    _site(METRIC, 0.682, 0.682, path=(Location("torchmetrics/metric.py", 315, "Metric.forward"), COPIES), called_back="metric"),
    _site(
        NETWORK,
        0.16,
        0.09,
        0.07,
        path=(LINEAR,),
        operators=(
            SiteOperator("linear", 3.0, 0.46, 0.8, 0.06, (_OPERAND,), (_OPERAND,), floor_ms=0.42),
            SiteOperator("relu", 2.0, 0.1, 0.1, 0.01),
        ),
    ),
    _site(OPTIMIZER, 0.0867, 0.0867, phase="Opt"),
    _site(
        Location("lightning/loops/fit_loop.py", 212, "FitLoop.advance"), 0.02, 0.02, phase="Other", under=Location("train.py", 60, "main")
    ),
    Site("worker", "Data", Location("data.py", 12, "Rows.__getitem__"), 0.91, 0.0, 0.91, 0.91),
)


def node(location: Location, share: float, *children: CallNode, kind: str = "own") -> CallNode:
    return CallNode(location, kind, share, children)


def called(share: float, *children: CallNode) -> CallNode:
    """The two frames with which torch calls a module."""
    inner = node(Location(_MODULE, 1789, "Module._call_impl"), share - 0.01, *children, kind="torch")
    return node(Location(_MODULE, 1776, "Module._wrapped_call_impl"), share, inner, kind="torch")


def phase(name: str, share: float, *children: CallNode) -> CallNode:
    return node(Location(name, 0, name), share, *children, kind="phase")


_COPYING = node(
    Location("torchmetrics/metric.py", 967, "Metric._copy_state_dict"), 0.51, node(COPIES, 0.50, kind="library"), kind="library"
)
_METRIC = node(
    Location("torchmetrics/metric.py", 315, "Metric.forward"),
    0.67,
    node(Location("torchmetrics/metric.py", 769, "Metric.reset"), 0.06, kind="library"),
    _COPYING,
    kind="library",
)
TREE = CallTree(
    "diagnose-001",
    (
        phase(
            "Opt", 0.0867, node(OPTIMIZER, 0.0867, node(Location("torch/optim/adam.py", 544, "_single_tensor_adam"), 0.05, kind="torch"))
        ),
        phase("Fwd", 0.85, node(METRIC, 0.682, called(0.68, _METRIC)), node(NETWORK, 0.16, called(0.15, node(LINEAR, 0.12, kind="torch")))),
    ),
)


def deep(rows: int, wide: int) -> CallTree:
    """A tree too deep and too wide to be drawn whole, and without a frame that only hands a call on."""

    def below(depth: int, share: float) -> CallNode:
        name = f"a_function_with_a_long_name_{depth}"
        children = tuple(below(depth + 1, 0.9 * share / wide) for _ in range(wide)) if depth < rows and share / wide > 0.004 else ()
        return node(Location("a_package/with/a_long_path/module.py", depth + 1, name), share, *children, kind="library")

    return CallTree("diagnose-002", (phase("Fwd", 1.0, below(0, 1.0)),))
