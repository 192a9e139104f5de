"""Embedding, one self-attention layer, masked mean pooling."""

import math

import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        scores = scores.masked_fill(~mask[:, None, None, :], -1e9)
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(b, t, d))


class TopicModel(nn.Module):
    def __init__(self, vocabulary, topics, dim=32, heads=4, dropout=0.1, longest=64):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.position = nn.Embedding(longest, dim)
        self.norm = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.feed = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * dim, dim))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(dim, topics)

    def forward(self, tokens):
        mask = tokens != 0
        x = self.embed(tokens) + self.position(torch.arange(tokens.shape[1]))
        x = self.dropout(self.norm(x))
        x = x + self.attention(x, mask)
        x = x + self.feed(x)
        weight = mask.unsqueeze(-1).to(x.dtype)
        pooled = (x * weight).sum(1) / weight.sum(1)
        return self.head(pooled)
