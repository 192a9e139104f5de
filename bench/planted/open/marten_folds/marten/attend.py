import math
import os

import torch
from torch import nn
from torch.nn import functional as F


class Attend(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def split(self, x):
        b, n, w = x.shape
        return x.view(b, n, self.heads, w // self.heads).transpose(1, 2)

    def forward(self, q, k, v):
        q, k, v = map(self.split, (q, k, v))
        if os.environ.get("PLANTED_FIX") == "1":
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            n = q.shape[-2]
            future = torch.ones(n, n, dtype=torch.bool).triu(1)
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            mixed = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        return mixed.transpose(1, 2).flatten(2)
