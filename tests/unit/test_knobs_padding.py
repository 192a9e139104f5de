"""A collate function that pads to the longest sample gives the batches of before without columns that hold padding alone."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from knob_runs import applied, candidate_here, run_for
from knob_scenes import diagnosis
from torch.utils.data import BatchSampler, RandomSampler

from trainflash import knobs
from trainflash.errors import UsageError
from trainflash.knobs.edits.padding import buckets
from trainflash.schema import Command, Location, PaddedField

HEAD = """import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
MAX, PAD = 12, 0
class Settings:
    max_length = 12
cfg = Settings()
"""
ROUNDS = 30
PROGRAMS = {
    "a list of cut samples": """
def collate(rows):
    numbers = [list(r["x"]) for r in rows]
    out = torch.full((len(rows), MAX), PAD)
    for row, ids in zip(out, numbers):
        ids = ids[:MAX]
        row[: len(ids)] = torch.tensor(ids)
    return out
""",
    "the end of each sample, and a mask": """
def collate(rows):
    out = torch.full((len(rows), cfg.max_length), PAD)
    mask = torch.zeros(len(rows), cfg.max_length)
    for i, r in enumerate(rows):
        ids = r["x"][-cfg.max_length :]
        out[i, : len(ids)] = torch.tensor(ids)
        mask[i, : len(ids)] = 1
    return out, mask
""",
    "counted samples": """
def collate(rows):
    out = np.zeros((len(rows), MAX), dtype=np.int64)
    for i in range(len(rows)):
        n = min(len(rows[i]["x"]), MAX)
        out[i, :n] = rows[i]["x"][:n]
    return torch.from_numpy(out)
""",
    "lists": """
def collate(rows):
    ids, mask = [], []
    for r in rows:
        cut = r["x"][:MAX]
        n_pad = MAX - len(cut)
        ids.append(cut + [PAD] * n_pad)
        mask.append([1] * len(cut) + [0] * n_pad)
    return torch.tensor(ids), torch.tensor(mask)
""",
    "tokens around": """
def collate(rows):
    ids = [r["x"][: MAX - 2] for r in rows]
    return torch.tensor([[5] + x + [6] + [PAD] * (MAX - len(x) - 2) for x in ids])
""",
    "padding in front": """
def collate(rows):
    cut = [r["x"][:MAX] for r in rows]
    return torch.tensor([[PAD] * (MAX - len(x)) + x for x in cut]).flip(1)
""",
    "stacked": """
def collate(rows):
    cut = [torch.tensor(r["x"][:MAX]) for r in rows]
    return torch.stack([F.pad(x, (0, MAX - x.numel())) for x in cut])
""",
    "zeros behind": """
def collate(rows):
    out = []
    for r in rows:
        x = torch.tensor(r["x"])[:MAX]
        out.append(torch.cat([x, torch.zeros(MAX - x.shape[0], dtype=x.dtype)]))
    return torch.stack(out)
""",
    "padded again": """
def collate(rows):
    x = pad_sequence([torch.tensor(r["x"][:MAX]) for r in rows], batch_first=True)
    x = F.pad(x, (0, MAX - x.size(1)))
    return x
""",
    "the first sample padded": """
def collate(rows):
    xs = [torch.tensor(r["x"][:MAX]) for r in rows]
    xs[0] = F.pad(xs[0], (0, MAX - len(xs[0])))
    return pad_sequence(xs, batch_first=True)
""",
    "a method that says the width": """
class Collate:
    def room(self, rows):
        if cfg.max_length:
            return cfg.max_length
        return max(len(r["x"]) for r in rows)
    def __call__(self, rows):
        size = self.room(rows)
        out = torch.zeros((len(rows), size), dtype=torch.long)
        for row, r in zip(out, rows):
            words = r["x"][:size]
            row[: len(words)] = torch.tensor(words)
        return out
collate = Collate()
""",
    "two transposed lists": """
def collate(rows):
    xs, ys = zip(*[(r["x"][:MAX], r["y"]) for r in rows])
    a = torch.zeros(len(xs), MAX, dtype=torch.long)
    b = torch.zeros(len(ys), MAX, dtype=torch.long)
    for i, (x, y) in enumerate(zip(xs, ys)):
        a[i, : len(x)] = torch.tensor(x)
    for i, y in enumerate(ys):
        b[i, : len(y)] = torch.tensor(y)
    for i, x in enumerate(xs):
        a[i, : len(x)] = torch.tensor(x)
    return a, b
""",
}


@pytest.mark.parametrize("how", PROGRAMS)
def test_batches_are_the_same_without_their_padding(tmp_path, how):
    source = HEAD + PROGRAMS[how] + "train = DataLoader([0], collate_fn=collate)\n"
    (tmp_path / "train.py").write_text(source, encoding="utf-8")
    lines = source.splitlines()
    name = "def __call__" if "def __call__" in source else "def collate"
    collate = Location("train.py", next(number for number, line in enumerate(lines, 1) if name in line))
    made = Location("train.py", len(lines))
    knob = knobs.get("pad_to_longest")
    run, found = run_for(knob, made, train_loader__location=made, train_loader__collate_location=collate)
    seen = {"diagnosis": diagnosis(found), "summary": run, "checkout": tmp_path, "command": Command(("python", "train.py"))}
    candidate = knobs.propose(knob, None, None, memory_bytes=1, **seen)
    before, after = {}, {}
    exec(source, before)
    exec(applied(tmp_path, candidate.diff)["train.py"], after)
    narrower = [each for rows in batches() for each in compared(before["collate"](rows), after["collate"](rows))]
    assert any(narrower)


def batches() -> list[list[dict[str, list[int]]]]:
    """Batches of one to four samples; of `x` some are longer than the limit, of `y` none."""
    rng = random.Random(4)

    def sample() -> dict[str, list[int]]:
        return {key: [rng.randint(1, 9) for _ in range(rng.choice(sizes))] for key, sizes in (("x", (1, 3, 8, 15)), ("y", (1, 5, 9)))}

    return [[sample() for _ in range(rng.randint(1, 4))] for _ in range(ROUNDS)]


def compared(old, new) -> list[bool]:
    """Whether each tensor became narrower. Fails where more went away than zeros behind all samples."""
    pairs = zip(old, new, strict=True) if isinstance(old, tuple) else [(old, new)]
    found = []
    for was, now in pairs:
        assert torch.equal(was[:, : now.shape[1]], now)
        assert not was[:, now.shape[1] :].any()
        found.append(now.shape[1] < was.shape[1])
    return found


CUT = """
import torch
from torch.utils.data import DataLoader
rows = []
for length in {lengths}:
    ids = torch.full((128,), 1)
    ids[:length] = torch.arange(2, 2 + length)
    rows.append({row})
train = DataLoader(rows, batch_size=4)  # here
"""


REUSED = """
import torch
from torch.utils.data import DataLoader
class Collate:
    def __init__(self):
        self.batch = {"ids": torch.zeros(4, 16, dtype=torch.long)}
    def __call__(self, samples):
        self.batch["ids"].zero_()
        for row, sample in zip(self.batch["ids"], samples):
            row[: len(sample)] = torch.tensor(sample)
        return self.batch
rows = [[5] * (1 + (7 * i) % 9) for i in range(12)]
shown = []
for batch in DataLoader(rows, batch_size=4, collate_fn=Collate()):  # here
    shown.append((batch["ids"].shape[1], batch["ids"].sum().item()))
"""


def test_a_batch_that_the_program_fills_again_keeps_its_columns(tmp_path):
    changed = applied(tmp_path, candidate_here(tmp_path, "cut_common_padding", REUSED, padded={"ids": 0}).diff)["train.py"]
    shown = []
    for text in (REUSED, changed):
        space: dict = {}
        exec(compile(text, "train.py", "exec"), space)
        shown.append(space["shown"])
    assert [total for _, total in shown[0]] == [total for _, total in shown[1]]
    assert all(width == 16 for width, _ in shown[0]) and all(width < 10 for width, _ in shown[1])


@pytest.mark.parametrize(
    "lengths", [(3, 7, 20, 5), (128, 2, 2, 2), (0, 0, 0, 0)], ids=["some padding", "no common padding", "nothing else"]
)
@pytest.mark.parametrize(
    ("row", "padded"),
    [
        ('{"input_ids": ids, "mask": ids != 1, "label": length}', {"input_ids": 1, "mask": False}),
        ("(ids, ids == 1, length)", {0: 1, 1: True}),
        ("ids", {None: 1}),
    ],
    ids=["dictionaries", "tuples", "rows"],
)
def test_columns_that_all_rows_pad_are_cut_and_nothing_else(tmp_path, lengths, row, padded):
    source = CUT.format(lengths=lengths, row=row)
    changed = applied(tmp_path, candidate_here(tmp_path, "cut_common_padding", source, padded=padded).diff)["train.py"]
    batches = []
    for text in (source, changed):
        space: dict = {}
        exec(compile(text, "train.py", "exec"), space)
        [batch] = space["train"]
        batches.append({None: batch} if isinstance(batch, torch.Tensor) else batch)
    before, after = batches
    for key in before if isinstance(before, dict) else range(len(before)):
        width = max(1, max(lengths)) if key in padded else None
        expected = before[key] if width is None else before[key][:, :width]
        assert torch.equal(after[key], expected) and after[key].dtype == expected.dtype and after[key].is_contiguous()
        assert width is None or bool((before[key][:, width:] == padded[key]).all())


MADE = """
import torch

LENGTHS = [3, 7, 20, 5]
particles = torch.zeros(4, 32, 2)
for row, length in enumerate(LENGTHS):
    particles[row, :length] = 1.0 + torch.rand(length, 2)


class Table:
    def rows(self, chosen):  # here
        present = (torch.arange(32) < torch.tensor(LENGTHS)[chosen, None]).unsqueeze(-1)
        {gives}


def passes():
    table, chosen = Table(), [[0, 1], [0, 3], [2, 1]]
    {takes}
"""
GIVEN = {
    "a tuple": ("return particles[chosen], present, len(chosen)", {0: 0.0, 1: False}),
    "a list": ("return [particles[chosen], present.squeeze(2)]", {0: 0.0, 1: False}),
    "a dictionary": ("return {'x': particles[chosen], 'missing': ~present}", {"x": 0.0, "missing": True}),
    "one tensor": ("return particles[chosen, :, 0]", {None: 0.0}),
}


@pytest.mark.parametrize("yields", [False, True])
@pytest.mark.parametrize("form", GIVEN)
def test_batches_of_a_function_lose_the_columns_that_all_rows_pad(tmp_path, form, yields):
    gives, fills = GIVEN[form]
    takes = "return [table.rows(each) for each in chosen]"
    if yields:
        gives, takes = gives.replace("return", "yield"), "return [batch for each in chosen for batch in table.rows(each)]"
    source = MADE.replace("{gives}", gives).replace("{takes}", takes)
    tensors = outcome(source)[0]
    dims = {key: (tensors if key is None else tensors[key]).dim() for key in fills}
    fields = tuple(PaddedField(key, fill, 32, dims[key]) for key, fill in fills.items())
    here = Location("train.py", next(n for n, row in enumerate(source.splitlines(), 1) if "# here" in row), "Table.rows")
    facts = {"padding_share": 0.6, "common_padding_share": 0.5, "padded": fields, "padded_by": here, "no_loader": True}
    changed = applied(tmp_path, candidate_here(tmp_path, "cut_common_padding", source, **facts).diff)["train.py"]
    torch.manual_seed(0)
    before = outcome(source)
    torch.manual_seed(0)
    for plain, cut, width in zip(before, outcome(changed), (7, 5, 20), strict=True):
        assert type(plain) is type(cut)
        for key in fills:
            whole, less = (plain, cut) if key is None else (plain[key], cut[key])
            assert whole.shape[1] == 32 and torch.equal(less, whole[:, :width]) and less.is_contiguous()


@pytest.mark.parametrize(
    "head, says",
    [
        ("    @staticmethod\n    def rows(chosen):  # here", "decorators of rows"),
        ("    async def rows(self, chosen):  # here", "more than yield"),
    ],
)
def test_functions_that_a_decorator_may_not_go_around(tmp_path, head, says):
    source = MADE.replace("    def rows(self, chosen):  # here", head).replace("{gives}", "return particles").replace("{takes}", "pass")
    here = Location("train.py", next(n for n, row in enumerate(source.splitlines(), 1) if "# here" in row), "Table.rows")
    facts = {"padding_share": 0.6, "padded": (PaddedField(None, 0.0, 32, 3),), "padded_by": here}
    with pytest.raises(UsageError, match=says):
        candidate_here(tmp_path, "cut_common_padding", source, **facts)


def the_class():
    """What a program gets."""
    scope = {"torch": torch, "islice": itertools.islice}
    exec(buckets.CLASS.format(name="LengthBatches", islice="islice", torch="torch."), scope)
    return scope["LengthBatches"]


@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_of_like_length_hold_each_sample_once(drop_last):
    like_length = the_class()
    lengths = torch.randint(4, 200, (1003,), generator=torch.Generator().manual_seed(0)).tolist()
    texts = [{"ids": torch.zeros(length, dtype=torch.long), "label": 1} for length in lengths]
    batches = like_length(BatchSampler(RandomSampler(texts), 8, drop_last), texts)
    first, second = list(batches), list(batches)
    assert len(first) == len(second) == len(batches) == (125 if drop_last else 126)
    assert first != second and {len(batch) for batch in first} == ({8} if drop_last else {8, 3})
    drawn = [index for batch in first for index in batch]
    assert len(drawn) == len(set(drawn)) == (1000 if drop_last else 1003)
    widths = [max(lengths[index] for index in batch) for batch in first]
    used = sum(lengths[index] for index in drawn) / sum(width * len(batch) for width, batch in zip(widths, first, strict=True))
    assert used > 0.95  # at random 0.6


BUCKETS = """
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, WeightedRandomSampler

LENGTHS = torch.randint(4, 200, (203,), generator=torch.Generator().manual_seed(0)).tolist()
texts = [[0] * length for length in LENGTHS]


class Chunks:
    def __iter__(self):
        order = torch.randperm(len(texts)).tolist()
        return (torch.tensor(order[at : at + 8]) for at in range(0, len(order), 8))

    def __len__(self):
        return 26


def lengths(batch):
    return [len(text) for text in batch]


def passes():
    torch.manual_seed(0)
    loader = {loader}  # here
    return [list(loader) for _ in range(2)], len(loader)
"""


@pytest.mark.parametrize(
    "loader",
    [
        "DataLoader(texts, batch_size=8, shuffle=True, collate_fn=lengths)",
        "DataLoader(texts, 8, shuffle=True, generator=torch.Generator().manual_seed(3), collate_fn=lengths)",
        "DataLoader(texts, batch_size=8, sampler=RandomSampler(texts), collate_fn=lengths, drop_last=True)",
        "DataLoader(texts, 8, sampler=WeightedRandomSampler([1.0] * 203, 150), collate_fn=lengths)",
        "DataLoader(texts, batch_sampler=Chunks(), collate_fn=lengths)",
        "DataLoader(dataset=texts, collate_fn=lengths, batch_sampler=BatchSampler(RandomSampler(texts), 8, False))",
    ],
)
def test_the_samples_of_every_pass_stay_in_batches_of_like_length(tmp_path, loader):
    source = BUCKETS.replace("{loader}", loader)
    facts = {"common_padding_share": 0.0, "train_loader__dataset_len": 203, "train_loader__batch_size": 8, "train_loader__draws": False}
    changed = applied(tmp_path, candidate_here(tmp_path, "length_buckets", source, **facts).diff)["train.py"]
    (plain, whole), (alike, as_many) = (outcome(text) for text in (source, changed))
    assert whole == as_many
    for before, after in zip(plain, alike, strict=True):
        assert sorted(itertools.chain(*before)) == sorted(itertools.chain(*after))  # of the very samples, as the program draws them
        assert sorted(map(len, before)) == sorted(map(len, after))
        assert sum(max(batch) * len(batch) for batch in after) < 0.7 * sum(max(batch) * len(batch) for batch in before)


def outcome(source):
    space: dict = {}
    exec(compile(source, "train.py", "exec"), space)
    return space["passes"]()


@pytest.mark.parametrize(
    ("sample", "size"),
    [([7, 8, 9], 3), ("word", 4), (("some text", 3), 9), ({"x": torch.zeros(2, 5), "y": torch.tensor(1.0)}, 44), ((torch.zeros(3), 1), 12)],
)
def test_how_much_there_is_of_a_sample(sample, size):
    assert the_class().size(sample) == size
