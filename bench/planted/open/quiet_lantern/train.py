"""Metric learning: projection head on a pretrained trunk, supervised contrastive loss."""

import argparse
import logging
import os
import time
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class ProductImages(Dataset):
    """Products seen from several views: one prototype per id plus view noise."""

    def __init__(self, num_ids, views, size, seed):
        g = torch.Generator().manual_seed(seed)
        proto = torch.randn(num_ids, 3, size // 4, size // 4, generator=g)
        proto = F.interpolate(proto, size=(size, size), mode="bilinear")
        self.images = proto.repeat_interleave(views, 0)
        self.images += 0.6 * torch.randn(self.images.shape, generator=g)
        self.labels = torch.arange(num_ids).repeat_interleave(views)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        dy, dx = torch.randint(-3, 4, (2,)).tolist()
        return torch.roll(image, (dy, dx), (1, 2)), self.labels[i]


class PKSampler(Sampler):
    """Batches of P identities with K views each."""

    def __init__(self, num_ids, views, p, k, batches):
        self.num_ids, self.views, self.p, self.k, self.batches = num_ids, views, p, k, batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            ids = torch.randperm(self.num_ids)[: self.p]
            pick = torch.rand(self.p, self.views).argsort(1)[:, : self.k]
            yield (ids[:, None] * self.views + pick).flatten().tolist()


def conv_block(cin, cout, stride):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.GroupNorm(4, cout), nn.ReLU())


def pretrained_trunk(width, seed):
    torch.manual_seed(seed)
    return nn.Sequential(
        conv_block(3, width, 2),
        conv_block(width, 2 * width, 1),
        conv_block(2 * width, 2 * width, 2),
        conv_block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
    )


def supcon_loss(z, labels, temperature):
    sim = z @ z.T / temperature
    eye = torch.eye(len(z), dtype=torch.bool)
    sim = sim.masked_fill(eye, -1e9)
    log_prob = sim - sim.logsumexp(1, keepdim=True)
    positive = (labels[:, None] == labels[None]) & ~eye
    return -(log_prob * positive).sum(1).div(positive.sum(1)).mean()


class Embedder(L.LightningModule):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.trunk = pretrained_trunk(args.width, args.seed)
        if os.environ.get("PLANTED_FIX") == "1":
            self.trunk.requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(16 * args.width, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, images):
        feats = self.trunk(images)
        return F.normalize(self.head(feats), dim=1)

    def training_step(self, batch, batch_idx):
        images, labels = batch
        self.last_loss = supcon_loss(self(images), labels, self.args.temperature)
        return self.last_loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.head.parameters(), lr=self.args.lr)

    def on_train_start(self):
        self.started = time.perf_counter()

    def on_train_end(self):
        self.elapsed = time.perf_counter() - self.started


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ids", type=int, default=120)
    ap.add_argument("--views", type=int, default=8)
    ap.add_argument("--image-size", type=int, default=48)
    ap.add_argument("--p", type=int, default=8)
    ap.add_argument("--k", type=int, default=4)
    ap.add_argument("--width", type=int, default=12)
    ap.add_argument("--temperature", type=float, default=0.2)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--steps", type=int, default=1000)
    ap.add_argument("--seed", type=int, default=8)
    args = ap.parse_args()
    steps = int(os.environ.get("PLANTED_STEPS", args.steps))

    L.seed_everything(args.seed)
    data = ProductImages(args.ids, args.views, args.image_size, args.seed)
    loader = DataLoader(data, batch_sampler=PKSampler(args.ids, args.views, args.p, args.k, steps))
    model = Embedder(args)
    trainer = L.Trainer(
        max_steps=steps,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    print(f"{steps} steps in {model.elapsed:.2f} s, loss {model.last_loss.item():.6f}")


if __name__ == "__main__":
    main()
