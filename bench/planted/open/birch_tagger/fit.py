import os
import pathlib
import tempfile

import torch
import yaml

from birch.run import Run

if __name__ == "__main__":
    torch.set_num_threads(1)
    cfg = yaml.safe_load((pathlib.Path(__file__).parent / "tagger.yaml").read_text())
    with tempfile.TemporaryDirectory(prefix="tagger-") as folder:
        Run(cfg, folder).fit(int(os.environ.get("PLANTED_STEPS", cfg["steps"])))
