"""Phases by stacks: batches made inside a training step are Data, a loss that a library computes outside of modules is forward."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import traces as t
from stack_scenarios import ENGINE, samples, stack

from trainflash.schema import PHASES, Location
from trainflash.summary import steady_part
from trainflash.summary.by_stack import with_phases_by_stack
from trainflash.trace import DataFunction
from trainflash.trace.calls import CallRow, CallTrace

STEPS = 40
FIT = "own:train.py:9:main lib:trainer/fit.py:5:fit lib:trainer/step.py:{}:Base.training_step"
CUT = f"{FIT.format(20)} lib:trainer/windows.py:4:cut"
MODULE = f"{FIT.format(30)} torch:torch/nn/modules/module.py:9:Module._call_impl lib:models/net.py:20:Net.forward"
MINE = f"{FIT.format(40)} lib:trainer/miners.py:4:mine"
OPT = f"{FIT.format(50)} torch:torch/optim/adam.py:3:Adam.step"


def moved(cut_backward_ns: int = 0, recorded: bool = True):
    """A step of 10 ms: forward 3 ms cutting, 2 the network, 1 mining; backward 2, update 2."""
    rows = [(CUT, "Fwd", 3), (MODULE, "Fwd", 2), (MINE, "Fwd", 1), (f"{FIT.format(45)} {ENGINE}", "Bwd", 2), (OPT, "Opt", 2)]
    calls = [CallRow(stack(MODULE), "Fwd", "linear", 1, 10**6, 10**6), CallRow(stack(CUT), "Fwd", "gather", 1, 10**6, cut_backward_ns)]
    rank = t.rank(
        [10] * STEPS,
        {"Fwd": [6] * STEPS, "Bwd": [2] * STEPS, "Opt": [2] * STEPS},
        samples=samples(rows, STEPS),
        calls=(CallTrace(12, 10**7, tuple(calls)),) if recorded else (),
    )
    return rank, with_phases_by_stack(rank, steady_part(rank, 0))


def test_what_no_gradient_flows_through_in_front_of_the_network_is_data():
    rank, found = moved()
    assert found.phase_ns["Data"].sum() == pytest.approx(0.3 * rank.wall_ns.sum(), rel=0.01)
    assert found.phase_ns["Fwd"].sum() == pytest.approx(0.3 * rank.wall_ns.sum(), rel=0.01)
    assert (sum(found.phase_ns.values()) == sum(rank.phase_ns.values())).all()
    data = found.samples.stack[found.samples.phase == PHASES.index("Data")]
    assert {found.samples.stacks[number] for number in np.unique(data)} == {stack(CUT)}


@pytest.mark.parametrize("more", [{"cut_backward_ns": 2 * 10**6}, {"recorded": False}])
def test_what_builds_the_graph_or_is_not_known_to_stays_forward(more):
    rank, found = moved(**more)
    assert found is rank


STEP = "own:train.py:9:main lib:pyro/svi.py:{}:SVI.step"
TRACES = f"{STEP.format(20)} lib:pyro/elbo.py:{{}}:ELBO.loss_and_grads"
HANDLER = f"{TRACES.format(140)} lib:pyro/poutine.py:4:handle"
BACKWARD = f"{TRACES.format(157)} torch:torch/_tensor.py:9:Tensor.backward {ENGINE}"
PARAMETERS = f"{STEP.format(30)} lib:pyro/optim.py:7:PyroOptim.__call__"


@pytest.mark.parametrize(("line", "forward"), [(140, 0.5), (141, 0.0)])
def test_what_builds_the_graph_in_a_librarys_function_that_calls_backward_is_forward(line, forward):
    rows = [(HANDLER, "Other", 5), (PARAMETERS, "Other", 1), (BACKWARD, "Bwd", 2), (OPT, "Opt", 2)]
    recorded = CallRow(stack(f"{TRACES.format(line)} lib:pyro/normal.py:3:log_prob"), "Fwd", "sub", 1, 10**6, 10**6)
    spent = {"Bwd": [2] * STEPS, "Opt": [2] * STEPS}
    rank = t.rank([10] * STEPS, spent, samples=samples(rows, STEPS), calls=(CallTrace(12, 10**7, (recorded,)),))
    found = with_phases_by_stack(rank, steady_part(rank, 0))
    shares = {name: found.phase_ns[name].sum() / rank.wall_ns.sum() for name in ("Fwd", "Other") if name in found.phase_ns}
    assert shares.get("Fwd", 0.0) == pytest.approx(forward, abs=0.01)
    assert shares["Other"] == pytest.approx(0.6 - forward, abs=0.01)


def test_what_a_librarys_iterator_does_with_its_batches_is_data():
    fetch = f"{FIT.format(10)} lib:fastai/load.py:8:DataLoader.__iter__ torch:torch/utils/data/dataloader.py:3:__next__"
    frames = f"{FIT.format(10)} lib:fastai/load.py:9:DataLoader.__iter__ lib:fastai/tabular.py:4:encodes"
    rows = [(fetch, "Data", 1), (frames, "Other", 4), (MINE, "Other", 1), (MODULE, "Fwd", 2), (OPT, "Opt", 2)]
    rank = t.rank([10] * STEPS, {"Data": [1] * STEPS, "Fwd": [2] * STEPS, "Opt": [2] * STEPS}, samples=samples(rows, STEPS))
    found = with_phases_by_stack(rank, steady_part(rank, 0))
    assert found.phase_ns["Data"].sum() == pytest.approx(0.5 * rank.wall_ns.sum(), rel=0.01)
    assert found.phase_ns["Other"].sum() == pytest.approx(0.1 * rank.wall_ns.sum(), rel=0.05)


# --- steps that import


def importing(ms: int, at: int = 20):
    """Steps of 10 ms; that at `at` is `ms` longer for a module that is imported in it."""
    imports = f"{FIT.format(60)} lib:lazy/loader.py:7:attach py:importlib/__init__.py:126:import_module"
    usual = samples([(MODULE, "Fwd", 8), (OPT, "Opt", 2)], STEPS)
    more = samples([(imports, "Eval", ms)], 1)
    both = replace(
        usual,
        t_ns=np.concatenate([usual.t_ns, more.t_ns]),
        weight_ns=np.concatenate([usual.weight_ns, more.weight_ns]),
        place=np.concatenate([usual.place, more.place]),
        phase=np.concatenate([usual.phase, more.phase]),
        step=np.concatenate([usual.step, more.step + at]),
        stack=np.concatenate([usual.stack, more.stack + len(usual.stacks)]),
        stacks=usual.stacks + more.stacks,
    )
    walls = [10 + ms * (step == at) for step in range(STEPS)]
    return t.rank(walls, {"Fwd": [8] * STEPS, "Opt": [2] * STEPS}, samples=both)


@pytest.mark.parametrize(("ms", "left_out"), [(200, [20]), (40, [])])
def test_a_step_that_imports_for_long_is_none_of_the_steady_ones(ms, left_out):
    part = steady_part(importing(ms), 0)
    assert [step for step, _, _ in part.left_out] == left_out
    assert part.wall_ns == pytest.approx(1e6 * (10 * (STEPS - len(left_out)) + ms * (not left_out)))


def test_the_only_step_counts_though_it_imports():
    rank = importing(200, at=STEPS - 1)
    assert steady_part(rank, STEPS - 1).left_out == ()


LOOP = "own:train.py:{}:step"
GOT = f"{LOOP.format(12)} own:data.py:8:Rows.slice"
CALLED = f"{LOOP.format(16)} torch:torch/nn/modules/module.py:9:Module._call_impl own:net.py:20:Net.forward"


@pytest.mark.parametrize(
    ("line", "known", "data"),
    [(14, True, 0.5), (14, False, 0.3), (18, True, 0.3), (11, True, 0.3)],
    ids=["between", "no data function", "behind the network", "in front of the data function"],
)
def test_what_is_done_to_a_batch_between_its_function_and_the_network_is_data(line, known, data):
    rows = [(GOT, "Data", 3), (LOOP.format(line), "Other", 2), (CALLED, "Fwd", 5)]
    rank = t.rank(
        [10] * STEPS,
        {"Data": [3] * STEPS, "Fwd": [5] * STEPS},
        samples=samples(rows, STEPS),
        data_functions=(DataFunction(Location("data.py", 8, "Rows.slice"), "Rows.slice"),) if known else (),
    )
    found = with_phases_by_stack(rank, steady_part(rank, 0))
    assert found.phase_ns["Data"].sum() == pytest.approx(data * rank.wall_ns.sum(), rel=0.01)
