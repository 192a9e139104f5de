"""A citation graph in the manner of Cora: papers, words, topics. Seeded, nothing is downloaded."""

from dataclasses import dataclass

import torch


@dataclass
class Citations:
    words: torch.Tensor
    topics: torch.Tensor
    edges: torch.Tensor
    train: torch.Tensor
    held_out: torch.Tensor


def make(papers: int = 720, vocabulary: int = 256, topics: int = 7, seed: int = 4) -> Citations:
    g = torch.Generator().manual_seed(seed)
    topic = torch.randint(topics, (papers,), generator=g)
    centre = torch.rand(topics, vocabulary, generator=g) * 0.08
    words = (torch.rand(papers, vocabulary, generator=g) < centre[topic] + 0.02).float()
    one = torch.randint(papers, (papers * 6,), generator=g)
    other = torch.randint(papers, (papers * 6,), generator=g)
    likes = (topic[one] == topic[other]) | (torch.rand(len(one), generator=g) < 0.12)
    edges = torch.stack([one[likes], other[likes]])
    order = torch.randperm(papers, generator=g)
    return Citations(words, topic, edges, order[: papers // 2], order[papers // 2 :])
