"""Elements of tensors that are read one by one: the changed program computes exactly the same, or the change is refused."""

from __future__ import annotations

import pytest
from knob_runs import applied, candidate_here

from trainflash.errors import UsageError

HEAD = "import numpy as np\nimport torch\n\n\n"
FORMS = {
    "two counts": """
def work():
    value, done = torch.randn(7, 3), torch.zeros(7, 3)
    total = []
    for g in range(3):
        ahead = 0.0
        for t in reversed(range(7)):
            ahead = value[t, g].item() + 0.9 * ahead * (1.0 - done[t, g].item())  # here
            total.append(ahead + float(value[t - 1, g]))
    return total
""",
    "a column of single numbers": """
def work():
    scores = torch.randn(5, 1).sigmoid()
    return [scores[i].item() for i in range(5)] + [rounded(scores)]


def rounded(scores):
    total = 0.0
    for i in range(len(scores)):
        total += scores[i].item()  # here
    return total
""",
    "elements of a loop": """
def work():
    truth, guess = torch.arange(6) % 3, torch.randn(6, 3).argmax(1)
    table = torch.zeros(3, 3)
    for one, other in zip(truth, guess):
        table[one.item(), other.item()] += 1  # here
    return table.tolist()
""",
    "elements with a count": """
def work():
    losses = torch.randn(9).abs()
    best, at = -1.0, None
    for n, loss in enumerate(losses):
        if loss.item() > best:
            best, at = loss.item(), n  # here
    return best, at
""",
    "a comprehension": """
def work():
    return sum(int(v) * 2 for v in torch.arange(8) + 1)  # here
""",
    "rows of an array": """
def work():
    grid = np.arange(12.0).reshape(3, 4)
    cells = []
    for t in range(3):
        cells.append(tuple(float(v) * 0.5 for v in grid[t]))  # here
    return cells
""",
    "kept under a name": """
def work():
    items = [{"edges": torch.arange(10).view(2, 5)}, {"edges": torch.arange(6).view(2, 3) + 4}]
    source = []
    for item in items:
        for edge in range(item["edges"].shape[1]):
            source.append((int(item["edges"][0, edge]), int(item["edges"][1, edge]) + 1))  # here
    return source
""",
    "a field of the object": """
class Board:
    def __init__(self):
        self.table = torch.randn(4, 4)

    def best(self):
        found = []
        for row in range(4):
            for column in range(row, 4):
                found.append(self.table[row][column].item())  # here
        return found


def work():
    return Board().best()
""",
}
REFUSED = {
    "set in the loop": (
        """
def work(rows: torch.Tensor):
    for i in range(5):
        print(rows[i].item())  # here
        rows = torch.roll(rows, i)
""",
        "`rows` is set in the loop",
    ),
    "changed in place": (
        """
def work():
    value = torch.zeros(5)
    for i in range(4):
        value[i + 1] = value[i].item() + 1  # here
""",
        "may change `value` in the loop",
    ),
    "changed by another name": (
        """
def work():
    value = torch.zeros(5)
    flat = value.view(-1)
    for i in range(4):
        flat[i + 1] = value[i].item() + 1  # here
""",
        "may change `value` in the loop",
    ),
    "changed under the name of its whole": (
        """
def work():
    whole = torch.zeros(2, 5)
    value = whole[0]
    for i in range(4):
        whole[0, i + 1] = 1.0 + value[i].item()  # here
""",
        "may change `value` in the loop",
    ),
    "a list of tensors": (
        """
def work():
    losses = [torch.zeros(()) for _ in range(3)]
    for i in range(3):
        print(losses[i].item())  # here
""",
        "is not known to be a tensor",
    ),
    "whatever is handed in": (
        """
def work(values):
    return sum(v.item() for v in values)  # here
""",
        "is not known to be a tensor",
    ),
    "more than a number": (
        """
def work():
    for v in torch.randn(5):
        print(v.item(), v.dtype)  # here
""",
        "is used here as more than a number",
    ),
    "indices that are tensors": (
        """
def work(order):
    value = torch.randn(5)
    for i in order:
        print(value[i].item())  # here
""",
        "is not picked by counted indices",
    ),
    "no loop": (
        """
def work():
    loss = torch.randn(5)
    return loss[0].item()  # here
""",
        "stands in no loop",
    ),
    "nothing asked for": (
        """
def work():
    for v in torch.randn(5):
        print(v)  # here
""",
        "no element of a tensor is asked for",
    ),
}


def outcome(source):
    space: dict = {}
    exec(compile(HEAD + "torch.manual_seed(5)\n" + source.removeprefix(HEAD), "train.py", "exec"), space)
    return space["work"]()


@pytest.mark.parametrize("form", FORMS)
def test_the_numbers_are_the_same(tmp_path, form):
    source = HEAD + FORMS[form].lstrip("\n")
    changed = applied(tmp_path, candidate_here(tmp_path, "plain_numbers", source).diff)["train.py"]
    assert ".tolist()" in changed and changed.count(".item()") < max(1, source.count(".item()"))
    assert outcome(changed) == outcome(source)


@pytest.mark.parametrize("form", REFUSED)
def test_what_may_be_other_numbers_is_refused(tmp_path, form):
    source, reason = REFUSED[form]
    with pytest.raises(UsageError, match=reason):
        candidate_here(tmp_path, "plain_numbers", HEAD + source.lstrip("\n"))
