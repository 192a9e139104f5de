import torch
from torch.utils.data import Dataset


class Museum(Dataset):
    """Features of pictures and captions that share a hidden meaning."""

    picture, caption = 768, 512

    def __init__(self, n=6400, meaning=48, seed=8):
        g = torch.Generator().manual_seed(seed)
        hidden = torch.randn(n, meaning, generator=g)
        self.pictures = torch.tanh(hidden @ torch.randn(meaning, self.picture, generator=g) / 7) + 0.3 * torch.randn(
            n, self.picture, generator=g
        )
        self.captions = torch.tanh(hidden @ torch.randn(meaning, self.caption, generator=g) / 7) + 0.3 * torch.randn(
            n, self.caption, generator=g
        )

    def __len__(self):
        return len(self.pictures)

    def __getitems__(self, rows):
        return self.pictures[rows], self.captions[rows]
