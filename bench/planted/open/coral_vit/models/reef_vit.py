import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .registry import register_model


class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, dim, num_heads, mlp_ratio=4):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, num_heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_ratio * dim), nn.GELU(), nn.Linear(mlp_ratio * dim, dim))
        self.grad_ckpt = False

    def _mlp(self, x):
        return self.mlp(self.norm2(x))

    def _whole(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self._mlp(x)

    def forward(self, x):
        if self.grad_ckpt and self.training:
            return checkpoint(self._whole, x, use_reentrant=False)
        return self._whole(x)


class Stage(nn.Module):
    def __init__(self, dim, depth, num_heads):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(dim, num_heads) for _ in range(depth)])
        self.grad_ckpt = False

    def forward(self, x):
        if self.grad_ckpt and self.training:
            return checkpoint(self.blocks, x, use_reentrant=False)
        return self.blocks(x)


class ReefViT(nn.Module):
    def __init__(self, img=32, patch=4, dim=96, depths=(2, 2), num_heads=4, num_classes=8):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.pos = nn.Parameter(torch.zeros(1, (img // patch) ** 2, dim))
        self.stages = nn.ModuleList([Stage(dim, d, num_heads) for d in depths])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def set_grad_checkpointing(self, enable=True):
        for module in self.modules():
            if hasattr(module, "grad_ckpt"):
                module.grad_ckpt = enable

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        for stage in self.stages:
            x = stage(x)
        return self.head(self.norm(x).mean(1))


@register_model
def reef_vit_nano(**kwargs):
    return ReefViT(**kwargs)
