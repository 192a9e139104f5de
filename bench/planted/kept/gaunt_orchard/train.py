"""Two-tower retrieval: users and books share a vector space, trained with in-batch softmax."""
import argparse
import os
import time
import warnings
import logging

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

FIX = os.environ.get("PLANTED_FIX") == "1"
HISTORY = 15


def simulate(n_users, n_items, n_topics, seed):
    """Readers with a taste over topics; each reads a sequence of books, the last one is held out."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, n_topics, n_items)
    popularity = rng.pareto(1.5, n_items) + 0.2
    by_topic = []
    for t in range(n_topics):
        books = np.flatnonzero(topic == t)
        by_topic.append((books, popularity[books] / popularity[books].sum()))
    taste = rng.dirichlet(np.full(n_topics, 0.08), n_users)
    reads = np.zeros((n_users, HISTORY + 8), dtype=np.int64)
    for u in range(n_users):
        for j, t in enumerate(rng.choice(n_topics, reads.shape[1], p=taste[u])):
            books, p = by_topic[t]
            reads[u, j] = books[np.searchsorted(np.cumsum(p), rng.random() * 0.999)]
    return reads, topic


class BookData(L.LightningDataModule):
    def __init__(self, n_users=3000, n_items=4000, n_topics=30, batch_size=256, seed=7):
        super().__init__()
        self.batch_size, self.seed = batch_size, seed
        reads, topic = simulate(n_users, n_items, n_topics, seed)
        self.topic = torch.from_numpy(topic)
        users, history, target = [], [], []
        for j in range(HISTORY, reads.shape[1] - 1):
            users.append(np.arange(n_users))
            history.append(reads[:, j - HISTORY:j])
            target.append(reads[:, j])
        as_t = lambda parts: torch.from_numpy(np.concatenate(parts))
        self.train_set = TensorDataset(as_t(users), as_t(history), as_t(target))
        self.val_set = TensorDataset(torch.arange(n_users), torch.from_numpy(reads[:, -HISTORY - 1:-1].copy()),
                                     torch.from_numpy(reads[:, -1].copy()))
        self.item_counts = torch.bincount(self.train_set.tensors[2], minlength=n_items).float()

    def train_dataloader(self):
        g = torch.Generator().manual_seed(self.seed)
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True, generator=g, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=500)


class Tower(nn.Module):
    def __init__(self, n_in, hidden, n_out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, hidden), nn.GELU(), nn.LayerNorm(hidden),
                                 nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, n_out))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class TwoTower(L.LightningModule):
    def __init__(self, topic, counts, dim=64, hidden=256, lr=2e-3, temperature=0.07):
        super().__init__()
        n_items, n_topics = len(topic), int(topic.max()) + 1
        self.lr, self.temperature = lr, temperature
        self.items = nn.Embedding(n_items, dim)
        self.topics = nn.Embedding(n_topics, dim)
        self.register_buffer("topic", topic)
        self.register_buffer("log_q", ((counts + 1) / (counts + 1).sum()).log())
        self.item_tower = Tower(2 * dim, hidden, dim)
        self.user_tower = Tower(2 * dim, hidden, dim)
        self.last_loss = None

    def raw_items(self, ids):
        return torch.cat([self.items(ids), self.topics(self.topic[ids])], dim=-1)

    def user_vectors(self, history):
        return self.user_tower(self.raw_items(history).mean(dim=1))

    def training_step(self, batch, _):
        _, history, target = batch
        scores = self.user_vectors(history) @ self.item_tower(self.raw_items(target)).T / self.temperature
        scores = scores - self.log_q[target]
        same = target[:, None] == target[None, :]
        same.fill_diagonal_(False)
        scores = scores.masked_fill(same, float("-inf"))
        loss = F.cross_entropy(scores, torch.arange(len(target), device=scores.device))
        self.last_loss = loss.detach()
        return loss

    def on_validation_epoch_start(self):
        all_items = torch.arange(self.items.num_embeddings, device=self.device)
        self.index = self.item_tower(self.raw_items(all_items))

    def validation_step(self, batch, _):
        _, history, target = batch
        scores = self.user_vectors(history) @ self.index.T
        own = scores.gather(1, target[:, None])
        rank = (scores > own).sum(dim=1).float() + 1
        self.log("val_recall20", (rank <= 20).float().mean(), batch_size=len(target))
        self.log("val_mrr", (1 / rank).mean(), batch_size=len(target))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class Report(Callback):
    def __init__(self, every=50):
        self.every = every

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        step = trainer.global_step
        if step % self.every == 0:
            m = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items()}
            print(f"step {step}: loss {module.last_loss.item():.4f} {m}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 600)))
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=7)
    args = p.parse_args()

    L.seed_everything(args.seed, verbose=False)
    data = BookData(seed=args.seed)
    model = TwoTower(data.topic, data.item_counts, lr=args.lr)
    trainer = L.Trainer(
        max_steps=args.steps,
        accelerator="cpu",
        val_check_interval=1.0 if FIX else 5,
        num_sanity_val_steps=0,
        callbacks=[Report()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.time()
    trainer.fit(model, datamodule=data)
    print(f"{trainer.global_step} steps in {time.time() - start:.2f} s, loss {model.last_loss.item():.6f}")


if __name__ == "__main__":
    main()
