"""The edited program writes files from which `np.load` reads the same arrays."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import numpy as np
from knob_runs import applied, candidate_here

PROGRAM = """from numpy import savez_compressed
import numpy as np
def keep(path, **arrays):
    with open(path, "wb") as file:
        savez_compressed(file, np.arange(9), **arrays)  # here
keep("kept.npz", zeros=np.zeros((100, 100)), names=np.array(["a", "b"]))
"""


def test_arrays_are_read_as_before(tmp_path):
    changed = applied(tmp_path, candidate_here(tmp_path, "uncompressed_arrays", PROGRAM).diff)["train.py"]
    found = []
    for text in (PROGRAM, changed):
        (tmp_path / "train.py").write_text(text, encoding="utf-8")
        subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True)
        with zipfile.ZipFile(tmp_path / "kept.npz") as archive:
            kinds = {each.compress_type for each in archive.infolist()}
        with np.load(tmp_path / "kept.npz") as read:
            found.append((kinds, {name: read[name].tolist() for name in read.files}))
    assert [kinds for kinds, _ in found] == [{zipfile.ZIP_DEFLATED}, {zipfile.ZIP_STORED}]
    assert found[0][1] == found[1][1]
