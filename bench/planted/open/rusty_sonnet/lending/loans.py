"""Loans of a made-up library: readers with tastes, titles with subjects."""

import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset


class Loans(Dataset):
    def __init__(self, readers: int, titles: int, loans: int, subjects: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        taste = torch.randint(subjects, (readers,), generator=generator)
        shelf = titles // subjects
        self.reader = torch.randint(readers, (loans,), generator=generator)
        near = taste[self.reader] * shelf + torch.randint(shelf, (loans,), generator=generator)
        anywhere = torch.randint(titles, (loans,), generator=generator)
        self.title = torch.where(torch.rand(loans, generator=generator) < 0.8, near, anywhere)
        self.season = torch.randint(4, (loans,), generator=generator)

    def __len__(self) -> int:
        return len(self.reader)

    def __getitems__(self, numbers: list[int]) -> dict[str, torch.Tensor]:
        rows = torch.tensor(numbers)
        return {"reader": self.reader[rows], "title": self.title[rows], "season": self.season[rows]}


class LoanData(L.LightningDataModule):
    def __init__(self, batch: int, **sizes: int) -> None:
        super().__init__()
        self.batch, self.sizes = batch, sizes

    def setup(self, stage: str) -> None:
        self.loans = Loans(**self.sizes)

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.loans, self.batch, shuffle=True, drop_last=True, collate_fn=lambda rows: rows)
