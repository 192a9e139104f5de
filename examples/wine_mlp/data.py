"""The wine data as standardised tensors."""

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


def make_loaders(config: dict, seed: int) -> tuple[DataLoader, DataLoader, int, int]:
    """Train and test loaders, number of features, number of classes."""
    wine = load_wine()
    train_x, test_x, train_y, test_y = train_test_split(
        wine.data, wine.target, test_size=config["test_fraction"], random_state=seed, stratify=wine.target
    )
    mean, std = train_x.mean(axis=0), train_x.std(axis=0)
    train_x = torch.tensor((train_x - mean) / std, dtype=torch.float32)
    test_x = torch.tensor((test_x - mean) / std, dtype=torch.float32)
    train_y, test_y = torch.tensor(train_y), torch.tensor(test_y)

    generator = torch.Generator().manual_seed(seed)
    copies = config["copies"]
    noisy = train_x.repeat(copies, 1)
    noisy += config["noise"] * torch.randn(noisy.shape, generator=generator)
    train_set = TensorDataset(noisy, train_y.repeat(copies))
    test_set = TensorDataset(test_x, test_y)

    train_loader = DataLoader(train_set, batch_size=config["batch_size"], shuffle=True, drop_last=True, generator=generator)
    test_loader = DataLoader(test_set, batch_size=len(test_set))
    return train_loader, test_loader, train_x.shape[1], len(wine.target_names)
