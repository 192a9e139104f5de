"""What a brief tells beside the code: fields that the costly function sets, and the conditions under which alone they are read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainflash.knobs import briefs
from trainflash.knobs.effects.read_rarely import read_rarely
from trainflash.knobs.project import Project
from trainflash.schema import Command, Location, Site

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


CALLED = """
def spread(rows):
    return sum(rows)  # here
def both(a):
    return spread(a) + 1  # spread(b)
class Net:
    def forward(self, x):
        return spread(x)
"""


def the_finding(line, function):
    from knob_scenes import finding

    return finding("slow_operator", Location("train.py", line, function), [])


def test_a_whole_brief_shows_who_calls_the_place_and_what_lies_below_it(tmp_path):
    from knob_scenes import diagnosis

    (tmp_path / "train.py").write_text(CALLED, encoding="utf-8")
    (tmp_path / "below.py").write_text("def deep(x):\n    return x\n", encoding="utf-8")
    site = Site("main", "Fwd", Location("train.py", 3, "spread"), 0.5, 0.4, 0.5, path=(Location("below.py", 2, "deep"),))
    told = replace(diagnosis(), sites=(site, replace(site, location=Location("train.py", 8, "Net.forward"))))
    made = briefs.whole(Project(tmp_path, Command(("python", "train.py"))), the_finding(3, "spread"), told, agreed=("order",))
    assert [(each.location.file, each.location.line) for each in made.calls] == [("train.py", 5), ("train.py", 8), ("below.py", 2)]
    assert made.sites[0] == site and made.sites[1].path == site.path[-1:] and made.agreed == ("order",)


def test_a_function_that_others_call_by_its_name_has_no_callers_to_show(tmp_path):
    (tmp_path / "train.py").write_text(CALLED + "net = Net()\nnet.forward(1)\n", encoding="utf-8")
    assert briefs._callers(Project(tmp_path, Command(("python", "train.py"))), Location("train.py", 8, "Net.forward")) == []


def test_a_site_that_no_finding_speaks_of_can_be_asked_about():
    site = Site("main", "Fwd", Location("train.py", 3, "spread"), 0.5, 0.4, 0.5)
    made = briefs.of_site(site)
    assert (made.kind, made.share, made.ceiling.speedup, made.ceiling.how) == ("host_code", 0.5, 2.0, "bound")
    assert briefs.of_site(replace(site, share=1.0)).ceiling.speedup == pytest.approx(100.0)
