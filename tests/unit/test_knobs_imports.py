"""Imports that an edit needs: what is there is used, and what stands in front of an import for a reason stays in front of it."""

from __future__ import annotations

import pytest

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.reading import python_source

THREADS_FIRST = 'import os\n\nos.environ["OMP_NUM_THREADS"] = "4"\nimport torch\n\n\ndef main():\n    torch.ones(1)\n'


def reached(text, module, name):
    file = python_source.parse("train.py", text.encode())
    spelled, edits = imports.reach(file, module, name)
    for edit in edits:
        text = text[: edit.start] + edit.text + text[edit.end :]
    return spelled, text


def test_an_import_behind_a_setting_is_used_where_it_stands():
    assert reached(THREADS_FIRST, "torch", "no_grad") == ("torch.no_grad", THREADS_FIRST)
    assert reached(THREADS_FIRST, "torch.nn.functional", "relu") == ("torch.nn.functional.relu", THREADS_FIRST)


def test_a_statement_for_it_stands_behind_it_too():
    file = python_source.parse("train.py", THREADS_FIRST.encode())
    behind = THREADS_FIRST.index("import torch\n") + len("import torch\n")
    assert imports.after_imports(file, "torch.set_float32_matmul_precision") == behind
    assert imports.after_imports(file) == len("import os\n")


def test_another_module_of_the_package_is_imported_beside_it():
    spelled, text = reached(THREADS_FIRST, "torch.nn.attention", "sdpa_kernel")
    assert spelled == "torch.nn.attention.sdpa_kernel"
    assert text == THREADS_FIRST.replace("import torch\n", "import torch\nimport torch.nn.attention\n")


def test_a_module_whose_name_an_import_took_is_reached_by_the_name_that_is_needed():
    spelled, text = reached("from copy import copy\n\nkept = copy([1])\n", "copy", "deepcopy")
    assert (spelled, text) == ("deepcopy", "from copy import deepcopy\nfrom copy import copy\n\nkept = copy([1])\n")
    with pytest.raises(UsageError, match="mean something else"):
        reached("from copy import copy\n\ndeepcopy = copy([1])\n", "copy", "deepcopy")
    with pytest.raises(UsageError, match="the name copy means something else"):
        reached("import os\n\ncopy = 1\n", "copy", "deepcopy")
