"""Rows that are dealt out to the ranks: each rank has as many as before, all together the same ones, and dear ones are spread."""

from __future__ import annotations

from itertools import chain, pairwise
from pathlib import Path

import pytest
from knob_runs import applied, candidate_here
from knob_scenes import added

from trainflash.errors import UsageError

HEAD = "import math\n\nimport numpy as np\nimport torch\n\n\n"
FORMS = {
    "two products": (
        """
def mine(rows, rank, world):
    part = len(rows) // world
    return rows[rank * part : (rank + 1) * part]  # here
""",
        "    return rows[rank : part * world : world]  # here",
    ),
    "a begin under a name": (
        """
def mine(rows, rank, world_size):
    size = int(len(rows) / world_size)
    begin = size * rank
    return rows[begin : begin + size]  # here
""",
        "    return rows[rank : size * world_size : world_size]  # here",
    ),
    "both under names": (
        """
def mine(rows, rank, world):
    n = len(rows) // world
    start = rank * n
    stop = n * (1 + rank)
    return rows[start:stop]  # here
""",
        "    return rows[rank : n * world : world]  # here",
    ),
    "written out": (
        """
def mine(rows, rank, world):
    return rows[rank * (len(rows) // world) : (rank + 1) * (len(rows) // world)]  # here
""",
        "    return rows[rank : (len(rows) // world) * world : world]  # here",
    ),
    "rounded up": (
        """
def mine(rows, rank, world):
    share = math.ceil(len(rows) / world)
    return rows[rank * share : (rank + 1) * share]  # here
""",
        "    return rows[rank::world]  # here",
    ),
    "numbers of rows": (
        """
def mine(rows, rank, world):
    part = len(rows) // world
    return [rows[at] for at in range(rank * part, (rank + 1) * part)]  # here
""",
        "    return [rows[at] for at in range(rank, part * world, world)]  # here",
    ),
    "numbers of rows, rounded up": (
        """
def mine(rows, rank, world):
    n = len(rows)
    part = (n + world - 1) // world
    first = rank * part
    return [rows[at] for at in list(range(first, min(first + part, n)))]  # here
""",
        "    return [rows[at] for at in list(range(rank, n, world))]  # here",
    ),
    "rounded up, with an end": (
        """
def mine(rows, rank, world):
    n = len(rows)
    part = math.ceil(n / world)
    return rows[rank * part : min(len(rows), (rank + 1) * part)]  # here
""",
        "    return rows[rank::world]  # here",
    ),
    "rounded up by hand": (
        """
def mine(rows, rank, world):
    share = (len(rows) + world - 1) // world
    return rows[rank * share : rank * share + share]  # here
""",
        "    return rows[rank::world]  # here",
    ),
    "rounded up by signs": (
        """
def mine(rows, rank, world):
    share = -(-len(rows) // world)
    return rows[rank * share : (rank + 1) * share]  # here
""",
        "    return rows[rank::world]  # here",
    ),
    "an attribute": (
        """
class Share:
    def __init__(self, rows, rank, world):
        self.rank, self.count = rank, world
        self.ranks = world
        self.each = len(rows) // world
        self.rows = rows

    def mine(self):
        return self.rows[self.rank * self.each : (self.rank + 1) * self.each]  # here


def mine(rows, rank, world):
    return Share(rows, rank, world).mine()
""",
        "        return self.rows[self.rank : self.each * self.ranks : self.ranks]  # here",
    ),
    "a list of all": (
        """
def mine(rows, me, world):
    size = len(rows) // world
    return [rows[r * size : (r + 1) * size] for r in range(world)][me]  # here
""",
        "    return [rows[r : size * world : world] for r in range(world)][me]  # here",
    ),
    "numpy's pieces": (
        """
def mine(rows, rank, world):
    return np.array_split(rows, world)[rank]  # here
""",
        "    return np.asarray(rows)[rank::world]  # here",
    ),
    "torch's pieces": (
        """
def mine(rows, rank, world):
    rows = torch.tensor(rows)
    return rows.tensor_split(world)[rank].tolist()  # here
""",
        "    return rows[rank::world].tolist()  # here",
    ),
}


def of_all(source: str, count: int, world: int) -> list[list[int]]:
    """What each rank takes of `count` rows, by the function `mine` of the source."""
    names: dict = {}
    exec(source, names)
    return [[int(row) for row in names["mine"](list(range(count)), rank, world)] for rank in range(world)]


@pytest.mark.parametrize("form", FORMS)
def test_the_same_rows_dealt_out(tmp_path: Path, form: str):
    source, line = FORMS[form]
    made = candidate_here(tmp_path, "interleaved_ranks", HEAD + source)
    assert made.risk == "order" and added(made) == [line]
    after = applied(tmp_path, made.diff)["train.py"]
    for count, world in ((12, 2), (13, 2), (14, 3), (3, 1), (9, 4)):
        runs, dealt = of_all(HEAD + source, count, world), of_all(after, count, world)
        assert sorted(chain(*runs)) == sorted(chain(*dealt)), (count, world)
        sizes = [[len(rows) for rows in each] for each in (runs, dealt)]
        assert sizes[0] == sizes[1] or ("rounded up" in form and max(sizes[1]) - min(sizes[1]) <= 1)
        assert all(b - a == world for rows in dealt for a, b in pairwise(rows))


REFUSED = {
    "numbers of rows past the end": """
def mine(rows, rank, world):
    part = -(-len(rows) // world)
    return list(range(rank * part, (rank + 1) * part))  # here
""",
    "a limit of its own": """
def mine(rows, limit, rank, world):
    part = math.ceil(len(rows) / world)
    return rows[rank * part : min((rank + 1) * part, limit)]  # here
""",
    "folds": "def mine(rows, fold, k):\n    n = len(rows) // k\n    return rows[fold * n : (fold + 1) * n]  # here\n",
    "windows": "def mine(rows, rank, n):\n    return rows[rank * n : (rank + 1) * n]  # here\n",
    "another end": "def mine(rows, rank, world):\n    n = len(rows) // world\n    return rows[rank * n : (rank + 2) * n]  # here\n",
    "dealt already": "def mine(rows, rank, world):\n    return rows[rank::world]  # here\n",
    "a part, rounded up": (
        "def mine(rows, rank, world):\n    n = -(-len(rows[1:]) // world)\n    return rows[rank * n : (rank + 1) * n]  # here\n"
    ),
    "columns": "def mine(rows, rank, world):\n    return torch.chunk(rows, world, dim=1)[rank]  # here\n",
    "of another function": (
        "class Share:\n    def __init__(self, rows, world):\n        self.n = len(rows) // world\n\n"
        "    def mine(self, rows, rank):\n        return rows[rank * self.n : (rank + 1) * self.n]  # here\n"
    ),
}


@pytest.mark.parametrize("form", REFUSED)
def test_refused(tmp_path: Path, form: str):
    with pytest.raises(UsageError, match="no place where each rank takes a run"):
        candidate_here(tmp_path, "interleaved_ranks", HEAD + REFUSED[form])


PART = "    n = len({0}) // world\n    return {0}[rank * n : (rank + 1) * n]  # here\n"
NO_SAMPLES = {
    "a file as one stream": (
        "def mine(path, rank, world):\n    rows = np.memmap(path, dtype=np.uint16)\n" + PART.format("rows"),
        "is a stream",
    ),
    "tokens": ("def mine(tokens, rank, world):\n" + PART.format("tokens"), "is a stream"),
    "a text that callers pass": (
        "def mine(rows, rank, world):\n" + PART.format("rows") + "\n\nmine(open('a').read(), 0, 2)\n",
        "is a stream",
    ),
    "windows": (
        """
rank, world = ranks()
n = len(rows) // world
mine = rows[rank * n : (rank + 1) * n]  # here
x = torch.stack([mine[at : at + 32] for at in starts])
""",
        "is a window of neighbours",
    ),
    "a weight": (
        """
class Columns(torch.nn.Module):
    def __init__(self, full, rank, world):
        super().__init__()
        n = full.shape[0] // world
        self.part = torch.nn.Parameter(full[rank * n : (rank + 1) * n].clone())  # here
""",
        "is a part of a network",
    ),
    "state": ("def mine(state, rank, world):\n" + PART.format("state"), "is a part of a network"),
    "where results go": (
        "def work(out, rank, world):\n    n = len(out) // world\n    out[rank * n : (rank + 1) * n] = compute()  # here\n",
        "is where each rank puts its part",
    ),
    "cores": (
        """
import os
rank, world = 0, 2
cores = os.cpu_count() // world
os.sched_setaffinity(0, range(rank * cores, (rank + 1) * cores))  # here
""",
        "does not number rows",
    ),
    "numbers for something else": (
        "def work(count, rank, world):\n    n = count // world\n    reserve(range(rank * n, (rank + 1) * n))  # here\n",
        "does not number rows",
    ),
    "predictions": (
        "def predict(rows, rank, world):\n    n = len(rows) // world\n    return work(rows[rank * n : (rank + 1) * n])  # here\n",
        "trains on nothing",
    ),
    "results that are gathered": (
        "def mine(rows, rank, world):\n"
        + PART.format("rows")
        + "\n\ndef look(rows):\n    out = [None, None]\n    torch.distributed.all_gather_object(out, work(mine(rows, 0, 2)))\n",
        "puts parts of all ranks behind each other",
    ),
}


@pytest.mark.parametrize("form", NO_SAMPLES)
def test_runs_of_what_is_no_list_of_samples(tmp_path: Path, form: str):
    source, reason = NO_SAMPLES[form]
    with pytest.raises(UsageError, match=reason):
        candidate_here(tmp_path, "interleaved_ranks", HEAD + source)


def test_elsewhere_in_the_program(tmp_path: Path):
    run = "def {}(rows, rank, world):\n    n = len(rows) // world\n    return rows[rank * n : (rank + 1) * n]\n\n\n"
    work = "def step(batch):\n    return batch.sum()  # here\n"
    made = candidate_here(tmp_path, "interleaved_ranks", run.format("mine") + work)
    assert added(made) == ["    return rows[rank : n * world : world]"]
    with pytest.raises(UsageError, match="more than one place"):
        candidate_here(tmp_path, "interleaved_ranks", run.format("mine") + run.format("yours") + work)


def test_outside_of_functions(tmp_path: Path):
    source = """
rank, world = ranks()
rows = sorted(read(), key=len)
part = (len(rows) + world - 1) // world
mine = rows[rank * part : (rank + 1) * part]  # here
"""
    assert added(candidate_here(tmp_path, "interleaved_ranks", HEAD + source)) == ["mine = rows[rank::world]  # here"]
