import numpy as np
import torch
from torch.utils.data import Dataset

from depot import SIDE
from visitor import Visitor


class Sheets(Dataset):
    """Sheets of the depot by number; each is turned one of eight ways, the same for the same sheet and seed."""

    def __init__(self, path, numbers, seed):
        self.visitor, self.numbers = Visitor(path), numbers
        self.ways = np.random.default_rng(seed).integers(0, 8, len(numbers))

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, at):
        answer = np.frombuffer(self.visitor.sheet(self.numbers[at]), np.uint8)
        leaf = np.rot90(answer[:-1].reshape(SIDE, SIDE), self.ways[at] % 4)
        leaf = leaf[:, ::-1] if self.ways[at] >= 4 else leaf
        return torch.from_numpy(leaf.copy()), int(answer[-1])
