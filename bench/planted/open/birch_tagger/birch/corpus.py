import torch


def make_corpus(sentences, length, vocabulary, tags, seed):
    g = torch.Generator().manual_seed(seed)
    rank = torch.rand(sentences, length, generator=g)
    tokens = (vocabulary * rank**3).long()
    home = torch.randint(0, tags, (vocabulary,), generator=g)
    labels = home[tokens]
    labels[:, 1:] = torch.where(tokens[:, :-1] % 5 == 0, labels[:, :-1], labels[:, 1:])
    return tokens, labels


def batches(tokens, labels, size, seed):
    g = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(tokens), generator=g).split(size):
            yield tokens[rows], labels[rows]
