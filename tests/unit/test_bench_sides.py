"""The benches' own tools: planted programs without their switch, and the usual knobs as source."""

from __future__ import annotations

import ast
import os
import shutil
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture(scope="module")
def tools():
    """The benches' modules, which are no package."""
    before = list(sys.path)
    sys.path[:0] = [str(BENCH), str(BENCH / "planted")]
    import programs
    import sides
    import usual_knobs

    yield programs, sides, usual_knobs
    sys.path[:] = before
    for name in ("programs", "sides", "usual_knobs"):
        sys.modules.pop(name, None)


SWITCHED = '''
import os
FAST = os.environ.get("PLANTED_FIX") == "1"
WHICH = os.environ.get("PLANTED_FIX", "0")
EVERY = 400 if os.environ.get("PLANTED_FIX") == "1" else 5
OFTEN = {"1": 40, "2": 7}.get(os.environ.get("PLANTED_FIX"), 6)


def kept(x, fast=FAST):
    """Nothing else is touched: 1 == 1 stays, and so does `if True`."""
    if True:
        x += 1 == 1
    if FAST and x > 2:
        return ("both", x, fast)
    elif not FAST and x > 3:
        return ("slow", x, fast)
    if WHICH in ("1", "2") or x == 1:
        return ("which", WHICH, x)
    return ("rest", "fast" if FAST else "slow", x)


answer = [EVERY, OFTEN, *(kept(x) for x in range(6))]
'''


@pytest.mark.parametrize("switch", [None, "1", "2"])
def test_a_side_does_what_the_switched_program_does(tools, tmp_path, monkeypatch, switch):
    _, sides, _ = tools
    monkeypatch.delenv("PLANTED_FIX", raising=False)
    if switch:
        monkeypatch.setenv("PLANTED_FIX", switch)
    (tmp_path / "train.py").write_text(SWITCHED)
    expected: dict = {}
    exec(SWITCHED, expected)
    monkeypatch.delenv("PLANTED_FIX", raising=False)
    sides.write(tmp_path, switch)
    text = (tmp_path / "train.py").read_text()
    found: dict = {}
    exec(text, found)
    assert found["answer"] == expected["answer"]
    assert "PLANTED_FIX" not in text and "FAST" not in text.replace("fast", "") and "1 == 1" in text and "if True:" in text


def test_a_flag_of_another_module_is_worked_out_too(tools, tmp_path):
    _, sides, _ = tools
    (tmp_path / "settings.py").write_text('import os\nQUICK = os.environ.get("PLANTED_FIX") == "1"\nSTEPS = 3\n')
    (tmp_path / "train.py").write_text("from settings import QUICK, STEPS\nx = 1 if QUICK else STEPS\n")
    (tmp_path / "more.py").write_text("import settings as s\ny = s.STEPS if s.QUICK else 2\n")
    (tmp_path / "run.sh").write_text('if [ "$PLANTED_FIX" = "1" ]; then\n  export A=1\nelse\n  export A=8\nfi\npython train.py\n')
    sides.write(tmp_path, None)
    assert (tmp_path / "train.py").read_text() == "from settings import STEPS\nx = STEPS\n"
    assert (tmp_path / "more.py").read_text() == "import settings as s\ny = 2\n"
    assert (tmp_path / "run.sh").read_text() == "export A=8\npython train.py\n"


@pytest.mark.full
def test_every_planted_program_has_two_sides_and_a_healthy_one_has_one(tools, tmp_path):
    programs, sides, usual_knobs = tools
    for program in programs.programs("all"):
        texts = []
        for name, switch in (("slow", sides.SLOW), ("expert", sides.EXPERT)):
            (tmp_path / name).mkdir()
            folder = programs.copy_of(program, tmp_path / name)
            sides.write(folder, switch)
            texts.append({path.relative_to(folder): path.read_text() for path in folder.rglob("*") if path.suffix in {".py", ".sh"}})
            usual_knobs.apply(folder)
            for path in folder.rglob("*.py"):
                ast.parse(path.read_text())
            shutil.rmtree(tmp_path / name)
        assert (texts[0] == texts[1]) == bool(program.manifest["healthy"]), program.name


def test_the_usual_knobs_are_added_where_they_are_missing(tools):
    _, _, usual_knobs = tools
    source = (
        "import torch\nfrom torch.utils.data import DataLoader\n\n\ndef main():\n    train = DataLoader(ds, batch_size=4, num_workers=0)\n"
        "    test = DataLoader(ds, **options)\n    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)\n"
    )
    text, notes = usual_knobs.edited(source)
    assert 'import torch\ntorch.set_float32_matmul_precision("high")\n' in text
    assert "DataLoader(ds, batch_size=4, num_workers=0, pin_memory=True)" in text, "what is written stays"
    assert "DataLoader(ds, **options)" in text
    assert "    net.compile()\n    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)\n" in text
    assert len(notes) == 4 and os.cpu_count()
    compile(text, "train.py", "exec")
