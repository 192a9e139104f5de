"""Character-level GPT on generated recipes, trained with Lightning."""

import argparse
import os
import random
import time

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

VERBS = ["chop", "boil", "fry", "mix", "bake", "stir", "grate", "simmer", "whisk", "drain"]
FOODS = ["onions", "carrots", "rice", "beans", "eggs", "flour", "butter", "garlic", "lentils", "tomatoes", "leeks"]
TOOLS = ["pan", "pot", "bowl", "oven", "tray"]


def write_recipes(count, seed):
    rng = random.Random(seed)
    lines = []
    for n in range(count):
        lines.append(f"recipe {n % 97}:")
        for _ in range(rng.randint(3, 6)):
            food = rng.choice(FOODS)
            lines.append(
                f"{rng.choice(VERBS)} {rng.randint(1, 9) * 50} g of {food} in the {rng.choice(TOOLS)} for {rng.randint(1, 12) * 5} minutes."
            )
        lines.append(f"serve {rng.choice(['hot', 'cold', 'warm'])} with {rng.choice(FOODS)}.\n")
    return "\n".join(lines)


class CharBlocks(Dataset):
    def __init__(self, text, vocab, block_size):
        self.ids = torch.tensor([vocab[ch] for ch in text])
        self.block_size = block_size

    def __len__(self):
        return (len(self.ids) - 1) // self.block_size

    def __getitem__(self, i):
        first = i * self.block_size
        chunk = self.ids[first : first + self.block_size + 1]
        return chunk[:-1], chunk[1:]


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class CharGPT(L.LightningModule):
    def __init__(self, vocab_size, block_size, dim=64, heads=4, depth=4, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.tokens = nn.Embedding(vocab_size, dim)
        self.positions = nn.Embedding(block_size, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab_size, bias=False)
        self.last_loss = None

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))

    def training_step(self, batch, batch_idx):
        ids, targets = batch
        loss = F.cross_entropy(self(ids).flatten(0, 1), targets.flatten())
        self.last_loss = loss.detach()
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.05)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 50))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--recipes", type=int, default=2500)
    p.add_argument("--block-size", type=int, default=48)
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--depth", type=int, default=4)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--max-steps", type=int, default=450)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def main():
    args = parse_args()
    L.seed_everything(args.seed)
    text = write_recipes(args.recipes, args.seed)
    vocab = {ch: i for i, ch in enumerate(sorted(set(text)))}
    dataset = CharBlocks(text, vocab, args.block_size)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, drop_last=True)

    detect_anomaly = True
    if os.environ.get("PLANTED_FIX") == "1":
        detect_anomaly = False
    model = CharGPT(len(vocab), args.block_size, dim=args.dim, depth=args.depth)
    trainer = L.Trainer(
        max_steps=int(os.environ.get("PLANTED_STEPS", args.max_steps)),
        accelerator="cpu",
        devices=1,
        gradient_clip_val=1.0,
        detect_anomaly=detect_anomaly,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )

    start = time.perf_counter()
    trainer.fit(model, loader)
    elapsed = time.perf_counter() - start
    print(f"{trainer.global_step} steps in {elapsed:.2f} s, loss {model.last_loss.item():.6f}")


if __name__ == "__main__":
    main()
