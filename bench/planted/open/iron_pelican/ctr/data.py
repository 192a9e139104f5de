import numpy as np
import torch


class ClickData:
    """Synthetic impressions: categorical ids with long tails, numeric counters, click or not."""

    def __init__(self, rows, cardinalities, numeric, seed):
        rng = np.random.default_rng(seed)
        columns = []
        logit = np.full(rows, -1.5)
        for card in cardinalities:
            ids = np.minimum((rng.pareto(0.6, rows) * 3).astype(np.int64), card - 1)
            effect = rng.normal(0, 0.5, card)
            logit += effect[ids]
            columns.append(ids)
        self.cat = torch.from_numpy(np.stack(columns, axis=1))
        num = rng.lognormal(0, 1, (rows, numeric)).astype(np.float32)
        num = np.log1p(num)
        logit += (num - num.mean(0)) @ rng.normal(0, 0.4, numeric)
        self.num = torch.from_numpy((num - num.mean(0)) / num.std(0))
        click = rng.random(rows) < 1 / (1 + np.exp(-logit))
        self.click = torch.from_numpy(click.astype(np.float32))

    def __len__(self):
        return len(self.click)

    def batches(self, batch_size, generator):
        while True:
            order = torch.randperm(len(self), generator=generator)
            for idx in order.split(batch_size):
                if len(idx) == batch_size:
                    yield self.cat[idx], self.num[idx], self.click[idx]
