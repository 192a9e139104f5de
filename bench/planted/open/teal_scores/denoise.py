import os
import pathlib
import tempfile

import yaml

from teal.fit import Denoiser

cfg = yaml.safe_load(pathlib.Path(__file__).with_name("teal.yaml").read_text())
with tempfile.TemporaryDirectory() as folder:
    Denoiser(cfg, folder).fit(int(os.environ.get("PLANTED_STEPS", cfg["steps"])))
