"""Matrix factorisation with side MLP on implicit feedback, BPR loss."""

import argparse
import math
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--users", type=int, default=2500)
    p.add_argument("--items", type=int, default=3000)
    p.add_argument("--per-user", type=int, default=30)
    p.add_argument("--dim", type=int, default=48)
    p.add_argument("--batch-size", type=int, default=2048)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--l2", type=float, default=1e-4)
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 1500)))
    p.add_argument("--log-every", type=int, default=100)
    p.add_argument("--eval-every", type=int, default=10)
    p.add_argument("--topk", type=int, default=20)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


def make_interactions(args):
    rng = np.random.default_rng(args.seed)
    tastes = rng.normal(size=(args.users, 8))
    traits = rng.normal(size=(args.items, 8))
    popularity = rng.gumbel(size=args.items)
    train, held_out = [], np.zeros(args.users, dtype=np.int64)
    for u in range(args.users):
        score = traits @ tastes[u] + popularity + rng.gumbel(size=args.items)
        liked = np.argsort(-score)[: args.per_user]
        rng.shuffle(liked)
        held_out[u] = liked[0]
        train.extend((u, i) for i in liked[1:])
    return np.array(train, dtype=np.int64), torch.from_numpy(held_out)


class Recommender(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.bias = nn.Embedding(n_items, 1)
        self.user_mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, dim))
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def user_vector(self, u):
        x = self.user(u)
        return x + self.user_mlp(x)

    def forward(self, u, i):
        return (self.user_vector(u) * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)

    def score_all(self, u):
        return self.user_vector(u) @ self.item.weight.T + self.bias.weight.squeeze(-1)


@torch.no_grad()
def evaluate(model, seen, held_out, topk):
    model.eval()
    hits, ndcg = 0, 0.0
    users = torch.arange(len(held_out))
    for chunk in users.split(256):
        scores = model.score_all(chunk)
        scores[seen[chunk]] = -1e9
        top = scores.topk(topk, dim=1).indices
        found = (top == held_out[chunk].unsqueeze(1)).nonzero()
        hits += len(found)
        ndcg += sum(1.0 / math.log2(rank + 2) for rank in found[:, 1].tolist())
    model.train()
    return hits / len(users), ndcg / len(users)


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    pairs, held_out = make_interactions(args)
    seen = torch.zeros(args.users, args.items, dtype=torch.bool)
    seen[pairs[:, 0], pairs[:, 1]] = True
    pairs = torch.from_numpy(pairs)
    if os.environ.get("PLANTED_FIX") == "1":
        args.eval_every = 500

    model = Recommender(args.users, args.items, args.dim)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    gen = torch.Generator().manual_seed(args.seed)
    best = 0.0

    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        idx = torch.randint(len(pairs), (args.batch_size,), generator=gen)
        u, pos = pairs[idx].T
        neg = torch.randint(args.items, (args.batch_size,), generator=gen)
        diff = model(u, pos) - model(u, neg)
        reg = model.user(u).pow(2).sum(-1).mean() + model.item(pos).pow(2).sum(-1).mean()
        loss = -F.logsigmoid(diff).mean() + args.l2 * reg
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if step % args.eval_every == 0:
            hr, ndcg = evaluate(model, seen, held_out, args.topk)
            best = max(best, hr)
        if step % args.log_every == 0:
            print(f"step {step} loss {loss.item():.4f} best HR@{args.topk} {best:.4f}")
    took = time.perf_counter() - start
    print(f"{args.steps} steps in {took:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
