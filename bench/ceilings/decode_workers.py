"""Images are decoded in two worker processes that cannot keep up; the fix decodes them once."""

import os
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
FIX = os.environ.get("PLANTED_FIX") == "1"


class Images(Dataset):
    """Compressed grey images; decoded at each access, or once."""

    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        raw = [(torch.randn(64, 256, generator=generator) * 20).to(torch.int8).numpy().tobytes() for _ in range(1024)]
        self.packed = [zlib.compress(image, 1) for image in raw]
        self.decoded = [self.decode_twice(index) for index in range(1024)] if FIX else None

    def decode(self, index):
        values = torch.frombuffer(bytearray(zlib.decompress(self.packed[index])), dtype=torch.int8)
        return values.float().view(64, 256).mean(dim=0)

    def decode_twice(self, index):
        return sum(self.decode(index) + 0.01 * torch.rand(1) for _ in range(4)) / 4

    def __len__(self):
        return 1024

    def __getitem__(self, index):
        image = self.decoded[index] if FIX else self.decode_twice(index)
        return image + 0.01 * torch.rand(1), index % 10


def main():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(Images(), batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
    for _epoch in range(1000000):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
