import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ffn = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, keep):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.ffn(self.norm_b(x))


class BugFinder(nn.Module):
    def __init__(self, vocab: int, bugs: int, longest: int, width: int = 64, heads: int = 4, depth: int = 2):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.place = nn.Embedding(longest + 1, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.head = nn.Linear(width, bugs)

    def forward(self, tokens):
        keep = tokens != 0
        x = self.embed(tokens) + self.place(torch.arange(tokens.size(1)))
        for layer in self.layers:
            x = layer(x, keep[:, None, None, :])
        pooled = (x * keep[..., None]).sum(1) / keep.sum(1, keepdim=True)
        return self.head(pooled)
