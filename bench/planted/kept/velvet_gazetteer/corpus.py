import numpy as np
import torch

PAD, MASK, FIRST = 0, 1, 2


def synthetic_corpus(n_tokens, vocab, topics, seed):
    """A topic-switching stream of word ids with Zipf frequencies and frequent bigrams."""
    rng = np.random.default_rng(seed)
    words = vocab - FIRST
    topic_words = rng.permutation(words)
    span = words // topics
    ranks = np.minimum(rng.zipf(1.3, n_tokens) - 1, span - 1)
    topic = np.repeat(rng.integers(0, topics, n_tokens // 50 + 1), 50)[:n_tokens]
    stream = topic_words[topic * span + ranks]
    follow = rng.integers(0, words, words)
    for i in np.flatnonzero(rng.random(n_tokens - 1) < 0.35):
        stream[i + 1] = follow[stream[i]]
    return torch.from_numpy(stream + FIRST)


class MaskedBatches:
    def __init__(self, stream, size, length, vocab, masking, seed):
        n = len(stream) // length
        self.rows = stream[:n * length].view(n, length)
        self.size, self.vocab, self.masking = size, vocab, masking
        self.gen = torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            for idx in torch.randperm(len(self.rows), generator=self.gen).split(self.size):
                if len(idx) == self.size:
                    yield self.mask(self.rows[idx])

    def mask(self, tokens):
        m = self.masking
        chosen = torch.rand(tokens.shape, generator=self.gen) < m["probability"]
        labels = torch.where(chosen, tokens, torch.full_like(tokens, -100))
        dice = torch.rand(tokens.shape, generator=self.gen)
        noise = torch.randint(FIRST, self.vocab, tokens.shape, generator=self.gen)
        corrupted = torch.where(dice < m["keep"], tokens, torch.full_like(tokens, MASK))
        corrupted = torch.where(dice > 1 - m["random"], noise, corrupted)
        return torch.where(chosen, corrupted, tokens), labels
