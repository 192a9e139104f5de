"""What a brief tells beside the code: fields that the costly function sets, and the conditions under which alone they are read."""

from __future__ import annotations

import pytest

from trainflash.knobs.effects.read_rarely import read_rarely
from trainflash.knobs.project import Project
from trainflash.schema import Command, Location

WATCH = """
class Watch:
    def look(self, module, inputs, output):
        s = torch.linalg.svdvals(output.detach())  # here
        self.rank[module] = s.sum()
    def on_step(self, trainer):
        if trainer.step % self.every == 0:
            trainer.logged.update({key: float(value) for key, value in self.rank.items()})
"""


@pytest.mark.parametrize(
    ("source", "told"),
    [
        pytest.param(WATCH, ("`rank`, which look sets, is read at train.py:8 where `trainer.step % self.every == 0`",), id="a hook"),
        pytest.param(WATCH.replace("if trainer.step % self.every == 0", "for trainer in (trainer,)"), (), id="in each step"),
        pytest.param(WATCH + "    def last(self):\n        return self.rank\n", (), id="by somebody else"),
        pytest.param(
            WATCH.replace("if trainer.step % self.every == 0", "for _ in (1,)")
            + "def report(watch, trainer):\n    if trainer.step % 50 == 0:\n        watch.on_step(trainer)\n",
            ("`rank`, which look sets, is read at train.py:8 where `trainer.step % 50 == 0`",),
            id="by a function that is called under a condition",
        ),
    ],
)
def test_fields_that_are_read_under_a_condition_alone(tmp_path, source, told):
    (tmp_path / "train.py").write_text(source, encoding="utf-8")
    line = next(number for number, row in enumerate(source.splitlines(), 1) if "# here" in row)
    assert read_rarely(Project(tmp_path, Command(("python", "train.py"))), Location("train.py", line)) == told
