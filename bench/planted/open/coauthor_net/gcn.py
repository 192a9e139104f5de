"""
Field of research of an author, from the co-author graph.

Full batch, two-hop polynomial filter, a handful of labelled nodes.
"""

import os
import time

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
N_AUTHORS, N_FIELDS, N_WORDS, HOPS = 640, 7, 128, 2


def synth(seed=17):
    gen = torch.Generator().manual_seed(seed)
    field = torch.randint(0, N_FIELDS, (N_AUTHORS,), generator=gen)
    same = (field[:, None] == field[None, :]).float()
    prob = 0.004 + 0.03 * same
    a = (torch.rand(N_AUTHORS, N_AUTHORS, generator=gen) < prob).float().triu(1)
    a = a + a.T
    words = torch.randn(N_AUTHORS, N_WORDS, generator=gen) + 0.4 * F.one_hot(field, N_WORDS).float()
    labelled = torch.rand(N_AUTHORS, generator=gen) < 0.2
    return a, words, field, labelled


class PolyFilter(nn.Module):
    """sum_k (D^-1/2 (A+I) D^-1/2)^k X W_k"""

    def __init__(self, d_in, d_out, hops):
        super().__init__()
        self.weights = nn.ModuleList([nn.Linear(d_in, d_out, bias=(k == 0)) for k in range(hops + 1)])
        self.cached = None

    def powers(self, adj):
        a = adj + torch.eye(adj.shape[0])
        d = a.sum(1).rsqrt()
        s = d[:, None] * a * d[None, :]
        out = [torch.eye(adj.shape[0])]
        for _ in range(len(self.weights) - 1):
            out.append(out[-1] @ s)
        return out

    def forward(self, x, adj):
        if os.environ.get("PLANTED_FIX") == "1":
            if self.cached is None:
                self.cached = self.powers(adj)
            mats = self.cached
        else:
            mats = self.powers(adj)
        return sum(m @ lin(x) for m, lin in zip(mats, self.weights))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f1 = PolyFilter(N_WORDS, 96, HOPS)
        self.f2 = PolyFilter(96, N_FIELDS, HOPS)

    def forward(self, x, adj):
        return self.f2(F.elu(self.f1(x, adj)), adj)


if __name__ == "__main__":
    torch.manual_seed(0)
    adj, words, field, labelled = synth()
    net = Net()
    optim = torch.optim.Adam(net.parameters(), lr=0.005, weight_decay=5e-4)
    n = int(os.environ.get("PLANTED_STEPS", 360))
    clock = time.time()
    for epoch in range(n):
        optim.zero_grad()
        logits = net(words, adj)
        loss = F.cross_entropy(logits[labelled], field[labelled])
        loss.backward()
        optim.step()
        if epoch % 50 == 0:
            acc = (logits.argmax(1) == field)[~labelled].float().mean()
            print(f"{epoch} {loss.item():.4f} {acc.item():.3f}")
    clock = time.time() - clock
    print(f"{n} steps in {clock:.2f}s, loss {loss.item():.4f}")
