import io
import os

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from stamps.registry import TRANSFORMS

FIXED = os.environ.get("PLANTED_FIX") == "1"


class StampDataset(Dataset):
    def __init__(self, records: list[tuple[bytes, int]], transforms: tuple[str, ...] = ("halve", "normalise")) -> None:
        self.records = records
        self.transforms = [TRANSFORMS[name] for name in transforms]
        if FIXED:
            self.images = [self.load(i) for i in range(len(records))]

    def __len__(self) -> int:
        return len(self.records)

    def load(self, i: int) -> Tensor:
        with Image.open(io.BytesIO(self.records[i][0])) as file:
            pixels = np.asarray(file.convert("RGB"), dtype=np.float32) / 255
        image = torch.from_numpy(pixels).permute(2, 0, 1)
        for transform in self.transforms:
            image = transform(image)
        return image

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        if FIXED:
            return self.images[i], self.records[i][1]
        return self.load(i), self.records[i][1]
