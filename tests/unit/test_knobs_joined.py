"""Tensors that ranks exchange one after another: two real ranks hold exactly the same numbers when they exchange them joined."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from knob_runs import applied, candidate_here

from trainflash.errors import UsageError

HEAD = "import torch\nimport torch.distributed as dist\n\n\n"
FORMS = {
    "the tutorial's": """
def average(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)  # here
        param.grad.data /= size
""",
    "those that have one": """
def average(model):
    world = dist.get_world_size()
    for p in model.parameters():
        if p.requires_grad and p.grad is not None:
            dist.all_reduce(p.grad)  # here
            p.grad.div_(world)
""",
    "the others left out, divided before": """
def average(model):
    for _, p in model.named_parameters():
        if p.grad is None:
            continue
        grad = p.grad
        grad /= dist.get_world_size()
        dist.all_reduce(grad)  # here
""",
    "a list that an object keeps": """
class Average:
    def __init__(self, params):
        self.params = [p for p in params if p.requires_grad]
        self.world = dist.get_world_size()

    @torch.no_grad()
    def __call__(self):
        for p in self.params:
            if p.grad is None:
                continue
            dist.all_reduce(p.grad)  # here
            p.grad.div_(self.world)


def average(model):
    Average(model.parameters())()
""",
    "made a list": """
def average(model):
    params = list(model.parameters())
    for p in params:
        if p.grad is not None:
            dist.all_reduce(p.grad)  # here
""",
    "a list, and nothing else": """
def average(model):
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    for grad in grads:
        dist.all_reduce(grad, dist.ReduceOp.MAX)  # here
""",
    "an iterator that is handed in": """
def average(model):
    exchange(p for p in model.parameters() if p.grad is not None)


def exchange(params):
    for p in params:
        dist.all_reduce(p.grad)  # here
        p.grad.mul_(0.5)
""",
    "the weights of the first": """
def average(model):
    for p in model.parameters():
        dist.broadcast(p, src=0)  # here
""",
}
DRIVER = """
import sys
import torch, torch.distributed as dist
torch.set_num_threads(1)
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
for n in range(int(sys.argv[3])):
    held, calls = [], []
    real = dist.all_reduce, dist.broadcast
    for side in ("old", "new"):
        torch.manual_seed(rank)
        picture = torch.nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), picture, torch.nn.Linear(4, 1))
        for p in list(model.parameters())[:-1]:
            p.grad = torch.randn_like(p)
        count = [0]
        def counted(call):
            def run(*args, **kwargs):
                count[0] += 1
                return call(*args, **kwargs)
            return run
        dist.all_reduce, dist.broadcast = counted(real[0]), counted(real[1])
        names = {}
        exec(open(f"{folder}/{side}{n}.py").read(), names)
        with torch.no_grad():
            if n == TUTORIAL:
                list(model.parameters())[-1].grad = torch.randn(1)
            names["average"](model)
        dist.all_reduce, dist.broadcast = real
        held.append([t for p in model.parameters() for t in (p.detach(), p.grad)])
        calls.append(count[0])
    for a, b in zip(*held):
        assert (a is None and b is None) or torch.equal(a, b), n
    assert calls[1] == 1 < calls[0], (n, calls)
dist.destroy_process_group()
print("same")
"""


def test_two_ranks_hold_the_same_numbers(tmp_path):
    for n, source in enumerate(FORMS.values()):
        (tmp_path / f"old{n}.py").write_text(HEAD + source)
        made = candidate_here(tmp_path, "one_exchange", HEAD + source)
        (tmp_path / f"new{n}.py").write_text(applied(tmp_path, made.diff)["train.py"])
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER.replace("TUTORIAL", str(list(FORMS).index("the tutorial's"))))
    words = [[sys.executable, str(driver), str(rank), str(tmp_path), str(len(FORMS))] for rank in range(2)]
    ranks = [subprocess.Popen(each, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for each in words]
    said = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [text.splitlines()[-1] for text in said] == ["same", "same"], said


LOOP = "def average(model, world):\n    for n, p in enumerate(model.parameters()):\n"
REFUSED = {
    "works before and behind": ("p.grad /= 2\ndist.all_reduce(p.grad)  # here\np.grad.clamp_(-1, 1)", "works before and after"),
    "another source in each turn": ("dist.broadcast(p.data, src=n % 2)  # here", "another one in each turn"),
    "does not wait": ("dist.all_reduce(p.grad, async_op=True)  # here", "does not wait"),
    "what the turn made": ("mean = p.grad.mean()\ndist.all_reduce(mean)  # here", "no plain part"),
    "the handle is used": ("work = dist.all_reduce(p.grad)  # here", "is used"),
    "a question that acts": ("if wanted(p):\n    dist.all_reduce(p.grad)  # here", "may do more than ask"),
    "a last turn": ("dist.all_reduce(p.grad)  # here\nif n == 3:\n    break", "may be its last one"),
    "some turns end": ("if n == 3:\n    print(n)\n    continue\ndist.all_reduce(p.grad)  # here", "some turns of the loop end here"),
    "a name that is taken": ("joined = 1\ndist.all_reduce(p.grad)  # here", "joined means something else"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_refused(tmp_path, form):
    body, reason = REFUSED[form]
    source = HEAD + LOOP + "".join(f"        {row}\n" for row in body.split("\n"))
    with pytest.raises(UsageError, match=reason):
        candidate_here(tmp_path, "one_exchange", source)


def test_no_loop(tmp_path):
    with pytest.raises(UsageError, match="no collective stands in a loop"):
        candidate_here(tmp_path, "one_exchange", HEAD + "def total(box):\n    dist.all_reduce(box)  # here\n")


def test_the_edit_is_the_one_that_a_reviewer_reads(tmp_path: Path):
    made = candidate_here(tmp_path, "one_exchange", HEAD + FORMS["those that have one"])
    assert made.risk == "close"
    changed = [row for row in made.diff.splitlines() if row[:1] in "+-" and row[:3] not in ("+++", "---")]
    assert changed == [
        "+    tensors = [p.grad for p in model.parameters() if p.requires_grad and p.grad is not None]",
        "+    for kind in dict.fromkeys(one.dtype for one in tensors):",
        "+        alike = [one for one in tensors if one.dtype == kind]",
        "+        joined = torch.cat([one.flatten() for one in alike])",
        "+        dist.all_reduce(joined)",
        "+        for one, piece in zip(alike, joined.split([one.numel() for one in alike])):",
        "+            one.copy_(piece.view_as(one))",
        "-            dist.all_reduce(p.grad)  # here",
    ]


ALONE = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://FOLDER/meet", rank=0, world_size=1)
state = {"seed": torch.tensor(1234567891), "mean": torch.full((2,), 0.1), "count": torch.tensor(16777217), "half": torch.ones(3).half()}


def share(values):
    for tensor in values:
        dist.broadcast(tensor, src=0)  # here


share(state.values())
share(torch.nn.Linear(2, 1).buffers())
print({name: (value.tolist(), value.dtype) for name, value in state.items()})
"""


def test_tensors_of_several_types_and_none_at_all(tmp_path):
    made = candidate_here(tmp_path, "one_exchange", ALONE)
    shown = []
    for number, source in enumerate((ALONE, applied(tmp_path, made.diff)["train.py"])):
        (tmp_path / str(number)).mkdir()
        words = [sys.executable, "-c", source.replace("FOLDER", str(tmp_path / str(number)))]
        shown.append(subprocess.run(words, capture_output=True, text=True, timeout=120))
    assert shown[0].stdout == shown[1].stdout and "1234567891" in shown[1].stdout, shown


def test_what_an_object_keeps_may_be_gone_through_once_only(tmp_path):
    source = """
class Average:
    def __init__(self, params):
        self.params = params

    def __call__(self):
        for p in self.params:
            dist.all_reduce(p.grad)  # here
            p.grad /= 2
"""
    with pytest.raises(UsageError, match="may be gone through only once"):
        candidate_here(tmp_path, "one_exchange", HEAD + source)
