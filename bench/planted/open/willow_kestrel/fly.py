"""Teach the pilot how a glider will climb."""

import os
import tempfile
from pathlib import Path

import torch
import yaml
from soar.coach import Coach
from soar.flights import FlightBank
from soar.helpers import Logbook, Speak
from soar.pilot import Pilot

if __name__ == "__main__":
    config = yaml.safe_load(Path(__file__).with_name("fly.yaml").read_text())
    torch.manual_seed(config["bank"]["seed"])
    bank = FlightBank(**config["bank"])
    pilot = Pilot(config["bank"]["channels"], **config["pilot"])
    with tempfile.TemporaryDirectory() as folder:
        helpers = [Logbook(Path(folder), config["logbook"]), Speak(config["speak"])]
        Coach(pilot, bank, config["plan"], helpers).fit(int(os.environ.get("PLANTED_STEPS", config["steps"])))
