"""A name means what its scope says: imports, parameters and variables of one name in one file are told apart."""

from __future__ import annotations

import pytest
from knob_scenes import added, program, summary

from trainflash.errors import UsageError
from trainflash.knobs.reading.python_source import parse

SOURCE = """
import numpy as np
import torch
try:
    import ujson as json
except ImportError:
    import json
try:
    from tqdm import tqdm
except ImportError:
    tqdm = None


def save(np, x):
    np.savez_compressed(x)  # parameter


def other():
    import jax.numpy as np
    np.zeros(3)  # import of the function


def third(x):
    np.savez(x)  # import of the module
    json.dumps(x)  # one of two imports
    tqdm(x)  # import that may fail
    [np.f() for np in x]  # comprehension
    torch = make()
    torch.save(x)  # variable
    with open(x) as json:
        json.read()  # file, not seen here: the same function


class Holder:
    np = 3

    def method(self):
        np.ones(3)  # names of a class body are none of its methods
"""
MEANS = {
    "np.savez_compressed": "<local>.np.savez_compressed",
    "np.zeros": "jax.numpy.zeros",
    "np.savez": "numpy.savez",
    "tqdm": "tqdm.tqdm",
    "np.f": "<local>.np.f",
    "torch.save": "<local>.torch.save",
    "json.read": "<local>.json.read",
    "np.ones": "numpy.ones",
    "make": "make",
}


@pytest.mark.parametrize("spelled", MEANS)
def test_a_chain_of_names_begins_with_what_its_first_name_means_there(spelled):
    file = parse("train.py", SOURCE.encode())
    [call] = [each for each in file.calls if file.text(each.func) == spelled]
    assert file.full_name(call.func) == MEANS[spelled]


def test_a_function_s_own_import_renames_nothing_elsewhere():
    file = parse("train.py", b"import numpy as np\ndef a():\n    np.ones(2)\ndef b():\n    import jax.numpy as np\n    np.ones(2)\n")
    assert [file.full_name(call.func) for call in file.calls] == ["numpy.ones", "jax.numpy.ones"]


def test_an_object_that_is_handed_over_under_a_library_s_name_is_not_edited(tmp_path):
    build = "def build(torch, p):\n    return torch.optim.Adam(p)\nbuild(mine, p)\n"
    made = program(tmp_path, train_py=f"import torch\n{build}")
    with pytest.raises(UsageError, match="no call of"):
        made.propose("optimizer_foreach", summary())
    (tmp_path / "both").mkdir()
    made = program(tmp_path / "both", train_py=f"import torch\n{build}opt = torch.optim.Adam(q)\n")
    assert added(made.propose("optimizer_foreach", summary())) == ["opt = torch.optim.Adam(q, foreach=True)"]
