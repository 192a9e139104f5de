import torch


class SpokenWords:
    """Synthetic filterbank features of short words: (frames, bands) with a word class."""

    def __init__(self, frames=24, bands=32, words=10, seed=50):
        self.g = torch.Generator().manual_seed(seed)
        self.templates = torch.randn(words, frames, bands, generator=self.g)
        self.frames, self.words = frames, words

    def take(self, count):
        label = torch.randint(0, self.words, (count,), generator=self.g)
        shift = torch.randint(0, 4, (count,), generator=self.g)
        clean = torch.stack([self.templates[w].roll(int(s), 0) for w, s in zip(label, shift)])
        return clean + 1.5 * torch.randn(clean.shape, generator=self.g), label
