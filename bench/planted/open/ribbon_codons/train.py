"""Train the codon tagger; run.sh has the usual figures."""

import argparse
import tempfile
import time
from pathlib import Path

import torch
from genes import CODONS, Genome
from tagger import Tagger
from torch.nn.functional import cross_entropy


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--genes", type=int, default=3000)
    parser.add_argument("--shortest", type=int, default=48)
    parser.add_argument("--longest", type=int, default=128)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--genes-per-step", type=int, default=64)
    parser.add_argument("--codons-at-once", type=int, required=True, help="how many codons pass through the model together")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=40)
    parser.add_argument("--evaluate-every", type=int, default=50)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seed", type=int, default=41)
    return parser.parse_args()


def backward(model: Tagger, codons: torch.Tensor, tags: torch.Tensor, budget: int) -> float:
    """Adds the gradient of the mean loss over all codons, in passes that fit the budget."""
    rows, codons_known = max(1, budget // codons.shape[1]), (tags >= 0).sum()
    total = 0.0
    for part, tag in zip(codons.split(rows), tags.split(rows), strict=True):
        loss = cross_entropy(model(part).flatten(0, 1), tag.flatten(), ignore_index=-1, reduction="sum") / codons_known
        loss.backward()
        total += loss.item()
    return total


@torch.no_grad()
def accuracy(model: Tagger, genome: Genome, count: int) -> float:
    model.eval()
    codons, tags = genome.draw(count)
    right = (model(codons).argmax(-1) == tags)[codons != CODONS]
    model.train()
    return right.float().mean().item()


def main() -> None:
    args = options()
    torch.manual_seed(args.seed)
    train = Genome(args.genes, args.shortest, args.longest, args.seed)
    valid = Genome(args.genes // 10, args.shortest, args.longest, args.seed)
    model = Tagger(args.width, args.layers, args.heads, args.longest)
    optimizer = torch.optim.AdamW(model.parameters(), args.lr, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / args.warmup))
    with tempfile.TemporaryDirectory() as folder:
        best, began = 0.0, time.perf_counter()
        for step in range(1, args.steps + 1):
            codons, tags = train.draw(args.genes_per_step)
            optimizer.zero_grad()
            loss = backward(model, codons, tags, args.codons_at_once)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if step % 10 == 0:
                print(f"step {step}: loss {loss:.4f}, gradient {norm:.3f}, {codons.numel()} codons")
            if step % args.evaluate_every == 0:
                score = accuracy(model, valid, 32)
                print(f"step {step}: accuracy {score:.3f}")
                if score > best:
                    best = score
                    torch.save({"model": model.state_dict(), "args": vars(args)}, Path(folder) / "tagger.pt")
        print(f"{args.steps} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
