"""Values that others read too, or that something else decides: an edit there would change more than it says, or nothing."""

from __future__ import annotations

import os

import pytest
from knob_runs import run_for
from knob_scenes import added, finding, loader, program, summary

from trainflash import knobs
from trainflash.errors import UsageError
from trainflash.schema import Location

HEAD = "from torch.utils.data import DataLoader\n"
PARSER = HEAD + "import argparse, yaml\nparser = argparse.ArgumentParser()\n{options}\nargs = parser.parse_args()\n{use}\n"


def workers(folder, source, command="python train.py", **files):
    made = program(folder, command, train_py=source, **files)
    at = made.line("train.py", "# here")
    run = summary(loaders=(loader("train", at),))
    return made, made.propose("dataloader_workers", run, value="2", findings=(finding("input_cpu", at),))


def test_loaders_may_share_their_number_of_workers(tmp_path):
    source = f"{HEAD}kw = {{'num_workers': 0}}\nval = DataLoader(b, **kw)\ntrain = DataLoader(a, **kw)  # here\n"
    assert added(workers(tmp_path, source)[1]) == ["kw = {'num_workers': 2}"]


OPTION = "parser.add_argument('--workers', type=int, default=0)\n"
USE = "train = DataLoader(a, num_workers=args.workers)  # here"


def test_defaults_that_are_unpacked_win(tmp_path):
    source = PARSER.format(options=OPTION + "parser.set_defaults(**yaml.safe_load(open('c.yaml')))", use=USE)
    made, candidate = workers(tmp_path, source, c_yaml="lr: 1\nworkers: 0  # few\n")
    assert made.apply(candidate) and made.read("c.yaml") == "lr: 1\nworkers: 2  # few\n"


def test_unpacked_defaults_that_lack_it_do_not(tmp_path):
    source = PARSER.format(options=OPTION + "parser.set_defaults(**{'lr': 1})", use=USE)
    assert added(workers(tmp_path, source)[1]) == ["parser.add_argument('--workers', type=int, default=2)"]


def test_an_argument_by_its_place_is_left_to_the_command(tmp_path):
    source = PARSER.format(options="parser.add_argument('workers', type=int, nargs='?', default=0)", use=USE)
    with pytest.raises(UsageError, match="by its place"):
        workers(tmp_path, source, "python train.py 0")


@pytest.mark.parametrize("word", ["--no-pin-it", "--no_pin_it"])
def test_a_switch_that_the_command_turns_off_is_not_edited_in_its_class(tmp_path, word):
    source = "import tyro\nfrom dataclasses import dataclass\n@dataclass\nclass Config:\n    pin_it: bool = True\ncfg = tyro.cli(Config)\n"
    made = program(tmp_path, f"python train.py {word}", train_py=f"{HEAD}{source}a = DataLoader(d, pin_memory=cfg.pin_it)  # here\n")
    at = made.line("train.py", "# here")
    with pytest.raises(UsageError, match=f"{word} is set in the command itself"):
        made.propose("pin_memory", summary(device="cuda:x", loaders=(loader("train", at),)), findings=(finding("h2d", at),))


@pytest.mark.parametrize("link", ["file", "folder"])
def test_no_patch_goes_through_a_link(tmp_path, link):
    entry = "entry/train.py" if link == "folder" else "entry.py"
    made = program(tmp_path, f"python {entry}", real__train_py=f"{HEAD}t = DataLoader(a)\n")
    os.symlink("real" if link == "folder" else "real/train.py", tmp_path / ("entry" if link == "folder" else "entry.py"))
    at = Location(entry, 2)
    with pytest.raises(UsageError, match="is a link"):
        made.propose("dataloader_workers", summary(loaders=(loader("train", at),)), value="2", findings=(finding("input_cpu", at),))


def test_what_can_only_be_switched_on_is_not_switched_on_by_false(tmp_path):
    source = "import torch\nnet = torch.nn.Linear(1, 1)\nopt = torch.optim.SGD(net.parameters(), lr=1)\n"
    made = program(tmp_path, train_py=source)
    at = made.line("train.py", "optim")
    run, found = run_for(knobs.get("torch_compile"), at, at)
    assert added(made.propose("torch_compile", run, value="true", findings=(found,))) == ["net.compile()"]
    with pytest.raises(UsageError, match="cannot be switched off here"):
        made.propose("torch_compile", run, value="false", findings=(found,))
