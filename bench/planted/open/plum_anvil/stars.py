import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from reviews import MAX_TOKENS, VOCAB, collate, write_reviews

STEPS = int(os.environ.get("PLANTED_STEPS", "260"))
torch.manual_seed(3)

dim, heads, layers = 64, 4, 2
train_rows = write_reviews(2400, seed=1)
test_rows = write_reviews(160, seed=2)
train_loader = DataLoader(
    train_rows, batch_size=16, shuffle=True, drop_last=True, collate_fn=collate, generator=torch.Generator().manual_seed(4)
)
test_loader = DataLoader(test_rows, batch_size=16, collate_fn=collate)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x, keep):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, heads, dim // heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None, :])
        x = x + self.out(a.transpose(1, 2).reshape(b, t, dim))
        return x + self.ff(self.n2(x))


class StarReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.places = nn.Embedding(MAX_TOKENS, dim)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = nn.Linear(dim, 5)

    def forward(self, tokens, keep):
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, keep)
        w = keep.unsqueeze(-1).float()
        return self.head((x * w).sum(1) / w.sum(1))


model = StarReader()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
print(sum(p.numel() for p in model.parameters()), "parameters")

step = 0
t0 = time.time()
while step < STEPS:
    for tokens, keep, stars in train_loader:
        logits = model(tokens, keep)
        loss = F.cross_entropy(logits, stars)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 20 == 0:
            print("step", step, "loss", round(loss.item(), 4))
        if step >= STEPS:
            break
elapsed = time.time() - t0

model.eval()
right = 0
with torch.no_grad():
    for tokens, keep, stars in test_loader:
        right += (model(tokens, keep).argmax(-1) == stars).sum().item()
print("test accuracy", right / len(test_rows))
print(f"{step} steps in {elapsed:.2f} s, loss {loss.item():.6f}")
