"""What the workshop's machine offers; read once, before anything is computed."""

import configparser
import os
from pathlib import Path

import torch


def read(name="hall.ini"):
    ini = configparser.ConfigParser()
    with open(Path(__file__).with_name(name)) as file:
        ini.read_file(file)
    return ini


def settle(ini, seed):
    node = ini["node"]
    lanes = node.getint("sockets") * node.getint("cores")
    if os.environ.get("PLANTED_FIX") == "1":
        torch.set_num_threads(min(lanes, torch.get_num_threads()))
    else:
        torch.set_num_threads(lanes)
    torch.manual_seed(seed)
    return f"{node['name']}, {node.getint('memory_gb')} GB"
