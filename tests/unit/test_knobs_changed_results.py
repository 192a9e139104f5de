"""Results are kept only where nobody changes them, however they are passed on; and one knob's fault never costs the whole plan."""

from __future__ import annotations

import pytest
from knob_scenes import added, finding, program, repeated, summary

from trainflash.errors import UsageError
from trainflash.knobs import kinds
from trainflash.knobs.edits import locating
from trainflash.schema import Location

READ = "import numpy as np\ndef read(path):\n    return np.load(path)\n"


def memo(tmp_path, source, name="read", **files):
    made = program(tmp_path, train_py=source, **files)
    at = made.line("train.py", f"def {name}(")
    return made.propose("memoize_function", summary(repeated=(repeated(at, name),)), findings=[finding("repeated_work", at)])


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\ndef load(path):\n    return np.load(path)\nfor path in paths:\n    train(load(path))\n",
        "def load(node):\n    return node if node < 2 else load(node - 1) + 1\nfor path in paths:\n    train(load(path))\n",
        "def load(node):\n    return other(node)\ndef other(node):\n    return load(node) if node else [node]\ntrain(load(3))\n",
    ],
    ids=["the name of a library's function", "recursion", "mutual recursion"],
)
def test_functions_that_call_one_of_their_own_name_are_read_to_the_end(tmp_path, source):
    assert added(memo(tmp_path, source, "load"))[-1] == "@functools.lru_cache(maxsize=None, typed=True)"


def test_a_loop_that_calls_a_recursive_helper_is_read_to_the_end(tmp_path):
    helper = "def flat(x):\n    return [x] if not isinstance(x, list) else flat(x[0])\n"
    source = f"import torch\n{helper}for step in range(9):\n    mask = torch.ones(8, 8)\n    train(flat(mask))\n"
    made = program(tmp_path, train_py=source)
    at = made.line("train.py", "mask = torch")
    assert added(made.propose("hoist_invariant", summary(), at=at)) == ["mask = torch.ones(8, 8)"]


def test_a_fault_of_one_knob_is_its_refusal(tmp_path, monkeypatch):
    def broken(edit, scene):
        raise RecursionError("too deep")

    monkeypatch.setitem(locating.FINDERS, kinds.Memoize, broken)
    made = program(tmp_path, train_py="import torch\nfor step in range(9):\n    mask = torch.ones(8, 8)\n    train(mask)\n")
    found = finding("repeated_work", Location("train.py", 3), ["memoize_function", "hoist_invariant"])
    candidates, refused, _ = made.plan(summary(), found)
    assert [each.knob for each in candidates] == ["hoist_invariant"]
    (faulty,) = [each for each in refused if each.knob == "memoize_function"]
    assert "TrainFlash itself failed on this program (RecursionError: too deep)" in faulty.reason


@pytest.mark.parametrize(
    ("source", "augment"),
    [
        ("import augment\ndef read(i):\n    return augment.crop(i)\n", "def crop(i):\n    return random.random() + i\n"),
        ("import augment as a\ndef read(i):\n    return a.crop(i)\n", "def crop(i):\n    return random.random() + i\n"),
        ("from augment import Crop\ndef read(i):\n    return Crop(i).run()\n",
         "class Crop:\n    def __init__(self, i):\n        self.i = i\n    def run(self):\n        return random.random()\n"),
        ("from augment import Crop\ndef read(i):\n    return Crop(i).kept\n",
         "class Crop:\n    def __init__(self, i):\n        self.kept = random.random()\n"),
    ],
)  # fmt: skip
def test_random_numbers_of_another_file_are_seen(tmp_path, source, augment):
    with pytest.raises(UsageError, match=r"`random\.random` at augment\.py:\d+ draws"):
        memo(tmp_path, source, augment_py=f"import random\n{augment}")


NORMALISE = "def normalise(image):\n    image -= 3.0\n    image /= 2.0\n    return image\n"


@pytest.mark.parametrize(
    "rest",
    [
        f"{NORMALISE}for p in paths:\n    train(normalise(read(p)))\n",
        f"{NORMALISE}for p in paths:\n    train(normalise(image=read(p)[0]))\n",
        f"{NORMALISE}def get(p):\n    return read(p)\nfor p in paths:\n    train(normalise(get(p)))\n",
        "for p in paths:\n    x = read(p)['x']\n    x -= 3.0\n",
        "for p in paths:\n    x, y = read(p)\n    x -= 3.0\n",
        "for p in paths:\n    read(p)[0] = 1\n",
        "for p in paths:\n    read(p).T.sort()\n",
        "for p in paths:\n    x = read(p)\n    y = x.reshape(-1)\n    y[0] = 1\n",
        "import torch\nfor p in paths:\n    x = torch.from_numpy(read(p))\n    x.mul_(2)\n",
        "for p in paths:\n    for row in read(p):\n        row /= 2\n",
        "for p in paths:\n    for i, row in enumerate(read(p)):\n        row[i] = 2\n",
        "for p in paths:\n    batch['x'] = read(p)\n    batch['x'] -= 2\n",
        "for p in paths:\n    if (x := read(p)) is not None:\n        x += 1\n",
        "for p in paths:\n    np.random.shuffle(read(p))\n",
        "for p in paths:\n    np.add.at(read(p), 0, 1)\n",
        "for p in paths:\n    np.subtract(read(p), 3.0, out=read(p))\n",
        "for p in paths:\n    x = read(p)\n    np.subtract(x, 3.0, x)\n",
        "def same(x):\n    return x if x.ndim else None\nfor p in paths:\n    x = same(read(p))\n    x -= 1\n",
        "for p in paths:\n    batch = {'x': read(p)}\n    batch['x'] -= 1\n",
        "for p in paths:\n    rows = [read(p), 3]\n    for row in rows:\n        row -= 1\n",
        "for p in paths:\n    rows = sorted([read(p)])\n    rows[0].sort()\n",
        "class Scale:\n    def apply(self, x):\n        x *= 2\n        return x\nfor p in paths:\n    train(Scale().apply(read(p)))\n",
    ],
)
def test_a_result_that_somebody_changes_is_not_kept(tmp_path, rest):
    with pytest.raises(UsageError, match="its result is changed at"):
        memo(tmp_path, READ + rest)


@pytest.mark.parametrize(
    "rest",
    [
        "def normalise(image):\n    return (image - 3.0) / 2.0\nfor p in paths:\n    train(normalise(read(p)))\n",
        "def mean(image):\n    total = 0.0\n    total += image.sum()\n    return total\nfor p in paths:\n    train(mean(read(p)))\n",
        "for p in paths:\n    x = read(p) - 3.0\n    x /= 2.0\n",
        "for p in paths:\n    x = read(p).copy()\n    x /= 2.0\n",
        "for p in paths:\n    n = read(p).shape[0]\n    n += 1\n",
        "for p in paths:\n    rows.append(read(p))\n",
        "for p in paths:\n    x = np.stack([read(p), read(p)])\n    x -= 1\n",
        "for p in paths:\n    count = 0\n    for i, row in enumerate(read(p)):\n        i += 1\n        count += 1\n",
        "for p in paths:\n    rows, names = [read(p)], [p]\n    rows.append(3)\n    names += [p]\n",
        "for p in paths:\n    heapq.heappush(queue, (1.0, read(p)))\nimport heapq\n",
        "for p in paths:\n    torch.manual_seed(read(p).seed)\nimport torch\n",
        "def best(image):\n    return image.max()\nfor p in paths:\n    x = best(read(p))\n    x += 1\n",
    ],
)
def test_a_result_of_which_something_new_is_made_is_kept(tmp_path, rest):
    assert added(memo(tmp_path, READ + rest))[-1] == "@functools.lru_cache(maxsize=None, typed=True)"


@pytest.mark.parametrize(
    "source",
    [
        "TABLE = {'a': [1]}\ndef read(word):\n    found = [TABLE['a']]\n    found.append(word)\n    return found\nfor w in words:\n"
        "    ids, labels = [TABLE['a']], [-100]\n    for k, piece in enumerate(read(w)):\n        ids.append(TABLE[piece])\n",
        "def read(path):\n    rows: list[int] = []\n    rows.append(path)\n    return rows\n",
        "from torch import nn\ndef read(width):\n    return nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True))\n",
        "import time\ndef read(path):\n    time.sleep(0.01)\n    return path\n",
        "import random\nfrom base import Base\nclass Rows(Base):\n    def __init__(self, rows):\n        super().__init__()\n"
        "        self.rows = rows\nclass Other:\n    def __init__(self):\n        self.x = random.random()\n"
        "def read(path):\n    return Rows(path)\n",
    ],
    ids=["containers of its own", "declared with its type", "a switch of another object", "waiting", "a constructor of another class"],
)
def test_what_the_function_makes_for_itself_it_may_change(tmp_path, source):
    assert "@functools.lru_cache(maxsize=None, typed=True)" in added(memo(tmp_path, source))


IMAGE = """from PIL import Image, ImageDraw
def read(path):
    return Image.open(path).convert("RGB").resize((48, 48))
for path in paths:
    image = read(path)
    CHANGE
    train(image)
"""


@pytest.mark.parametrize(
    "change", ["image.paste(other)", "image.thumbnail((8, 8))", "ImageDraw.Draw(image).line(xy)", "image.putpixel(xy, 0)"]
)
def test_an_image_that_somebody_draws_into_is_not_kept(tmp_path, change):
    assert memo(tmp_path, IMAGE.replace("    CHANGE\n", ""))
    with pytest.raises(UsageError, match="its result is changed at"):
        memo(tmp_path, IMAGE.replace("CHANGE", change))
