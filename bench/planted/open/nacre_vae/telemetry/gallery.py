"""A few drawn samples per hundred steps, as arrays; the web page draws them."""

import pathlib

import numpy as np
import torch


class Gallery:
    def __init__(self, folder, pictures=8):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.pictures = pictures

    def hang(self, step, model):
        state = torch.get_rng_state()
        torch.manual_seed(step)
        np.save(self.folder / f"{step:06d}.npy", model.sample(self.pictures).numpy())
        torch.set_rng_state(state)
