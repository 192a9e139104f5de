from torch import nn

from osier.mixing import Mixing


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.one, self.two = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.mixing = Mixing(s.width, s.heads, s.window, s.mixing)
        self.mlp = nn.Sequential(nn.Linear(s.width, 3 * s.width), nn.ReLU(), nn.Linear(3 * s.width, s.width))

    def forward(self, x):
        x = x + self.mixing(self.one(x))
        return x + self.mlp(self.two(x))


class GenomeModel(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed = nn.Embedding(5, s.width)
        self.local = nn.Conv1d(s.width, s.width, 5, padding=2, groups=s.width)
        self.layers = nn.ModuleList([Layer(s) for _ in range(s.layers)])
        self.norm = nn.LayerNorm(s.width)
        self.head = nn.Linear(s.width, 4)

    def forward(self, letters):
        x = self.embed(letters)
        x = x + self.local(x.transpose(1, 2)).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
