"""Forward's time outside of modules, by stacks."""

from __future__ import annotations

from stack_scenarios import stack

from trainflash.stacks import beside_modules, module_calls

STEP = "own:train.py:{}:Net.training_step"
MODULE = "torch:torch/nn/modules/module.py:1782:Module._call_impl own:net.py:9:Net.forward"
LOSS = "torch:torch/nn/modules/module.py:1782:Module._call_impl torch:torch/nn/modules/loss.py:1300:CrossEntropyLoss.forward"
CALLS = module_calls([stack(f"{STEP.format(20)} {MODULE}"), stack(f"{STEP.format(24)} {MODULE}"), stack(f"{STEP.format(10)} {LOSS}")])


def test_work_in_front_of_the_first_module_and_behind_it():
    assert beside_modules(stack(f"{STEP.format(12)} lib:windows.py:4:cut"), CALLS) == "ahead"
    assert beside_modules(stack(f"{STEP.format(22)} lib:miners.py:30:mine"), CALLS) == "behind"


def test_modules_and_functions_that_call_none():
    assert beside_modules(stack(f"{STEP.format(20)} {MODULE}"), CALLS) is None
    assert beside_modules(stack(f"{STEP.format(10)} {LOSS}"), CALLS) is None
    assert beside_modules(stack("own:train.py:3:main"), CALLS) is None


MINED = f"{STEP.format(22)} torch:torch/nn/modules/module.py:1782:Module._call_impl own:losses.py:9:Triplets.forward own:pairs.py:30:mine"
BARE = frozenset({("losses.py", "Triplets.forward")})


def test_work_in_a_module_without_parameters_is_no_networks():
    assert beside_modules(stack(MINED), CALLS) is None
    assert beside_modules(stack(MINED), CALLS, BARE) == "behind"
    inside = f"{MINED} {MODULE}"  # a network that a loss calls, as a perceptual one does
    assert beside_modules(stack(inside), CALLS, BARE) is None
    assert module_calls([stack(MINED)], BARE) == {}
