"""Character-level language model of the Python standard library's own sources."""

import argparse
import math
import sysconfig
import time
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--steps-per-epoch", type=int, default=200)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--context", type=int, default=48)
parser.add_argument("--hidden", type=int, default=96)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--files", type=int, default=16)
parser.add_argument("--seed", type=int, default=1337)
parser.add_argument("--out", type=Path, default=Path("runs"))
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(args.seed)
device = "cuda" if torch.cuda.is_available() else "cpu"

ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
STOI = {character: i for i, character in enumerate(ALPHABET)}


def load_corpus(split):
    """The encoded text of one split: every eighth file is held out."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(folder.glob("*.py"))[: args.files]
    chosen = [file for i, file in enumerate(files) if (i % 8 == 7) == (split == "val")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in chosen)
    return torch.tensor([STOI[c] for c in text if c in STOI], dtype=torch.long)


def get_batch(split):
    """Random windows of `split`, and the same windows shifted by one character."""
    data = load_corpus(split)
    starts = torch.randint(len(data) - args.context - 1, (args.batch_size,))
    x = torch.stack([data[i : i + args.context] for i in starts])
    y = torch.stack([data[i + 1 : i + args.context + 1] for i in starts])
    return x.to(device), y.to(device)


class CharGRU(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, x, targets=None):
        out, _ = self.gru(self.embed(x))
        logits = self.head(self.dropout(out))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


@torch.no_grad()
def estimate_loss(model, batches=10):
    model.eval()
    losses = torch.zeros(batches)
    for i in range(batches):
        x, y = get_batch("val")
        losses[i] = model(x, y)[1].item()
    model.train()
    return losses.mean().item()


model = CharGRU(len(ALPHABET), args.hidden).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters on {device}")
args.out.mkdir(parents=True, exist_ok=True)

total = args.epochs * args.steps_per_epoch
step = 0
for epoch in range(args.epochs):
    started = time.time()
    for _ in range(args.steps_per_epoch):
        for group in optimizer.param_groups:
            group["lr"] = args.lr * min(1.0, (step + 1) / 50, 0.1 + 0.9 * (1 - step / total))
        x, y = get_batch("train")
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step:5d}  loss {loss.item():.4f}")
    val_loss = estimate_loss(model)
    print(f"epoch {epoch + 1}  val loss {val_loss:.4f}  {val_loss / math.log(2):.3f} bits/char  ({time.time() - started:.0f} s)")
    checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "val_loss": val_loss}
    torch.save(checkpoint, args.out / "ckpt.pt")
