import torch


class Flock:
    """Many small worlds at once, stepped with tensors."""

    def __init__(self, worlds=512, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.place = torch.randn(worlds, 8, generator=self.g)

    def step(self, move):
        wind = 0.05 * torch.randn(self.place.shape, generator=self.g)
        self.place = 0.98 * self.place + 0.1 * move + wind
        return self.place, -self.place.square().mean(1)
