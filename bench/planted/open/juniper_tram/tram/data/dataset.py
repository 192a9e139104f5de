import torch
from torch.utils.data import Dataset

from .depot import Depot


class Rides(Dataset):
    """A ride and the wear of its wheels; the next ride on the list stands in for one that is not there."""

    def __init__(self, depot: Depot) -> None:
        self.depot = depot

    def __len__(self) -> int:
        return self.depot.rides

    def __getitem__(self, ride: int) -> tuple[torch.Tensor, torch.Tensor]:
        track = self.depot.fetch(ride)
        while track is None:
            ride = (ride + 1) % len(self)
            track = self.depot.fetch(ride)
        whole = torch.from_numpy(track)
        return whole[:, :-1], whole[0, -1]
