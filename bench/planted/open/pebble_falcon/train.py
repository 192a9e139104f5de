"""Credit default model: embeddings for the categorical columns, MLP on top."""

import json
import os
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from torch import nn

HERE = Path(__file__).parent


def make_table(rows, categorical, numeric, seed):
    rng = np.random.default_rng(seed)
    cats = np.stack([rng.integers(0, n, rows) for n in categorical], axis=1)
    nums = rng.normal(size=(rows, numeric))
    nums[:, 0] = np.exp(nums[:, 0])
    nums[:, 3] = nums[:, 2] * 0.7 + nums[:, 3] * 0.3
    effect = sum(rng.normal(0, 0.5, n)[cats[:, i]] for i, n in enumerate(categorical))
    score = effect + nums @ rng.normal(0, 0.35, numeric) + 0.6 * nums[:, 1] * nums[:, 2] - 1.8
    default = rng.random(rows) < 1 / (1 + np.exp(-score))
    nums = (nums - nums.mean(0)) / nums.std(0)
    return cats, nums.astype(np.float32), default.astype(np.float32)


class CreditNet(nn.Module):
    def __init__(self, categorical, numeric, embed_dim, hidden):
        super().__init__()
        self.embeddings = nn.ModuleList([nn.Embedding(n, embed_dim) for n in categorical])
        width = embed_dim * len(categorical) + numeric
        layers = []
        for h in hidden:
            layers += [nn.Linear(width, h), nn.LayerNorm(h), nn.SiLU()]
            width = h
        self.mlp = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, cats, nums):
        embedded = [emb(cats[:, i]) for i, emb in enumerate(self.embeddings)]
        return self.mlp(torch.cat(embedded + [nums], dim=1)).squeeze(1)


class History:
    """Appends one record per logged step to a JSON-lines file."""

    def __init__(self, path):
        self.file = open(path, "w")

    def log(self, step, loss, logits, target, model):
        prob = torch.sigmoid(logits.detach()).numpy()
        truth = target.numpy().astype(int)
        record = {
            "step": step,
            "loss": float(loss),
            "auc": float(roc_auc_score(truth, prob)),
            "ap": float(average_precision_score(truth, prob)),
            "f1": float(f1_score(truth, prob > 0.5, zero_division=0)),
            "weights": {name: p.norm().item() for name, p in model.named_parameters()},
            "grads": {name: p.grad.norm().item() for name, p in model.named_parameters()},
        }
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def close(self):
        self.file.close()


def batches(tensors, batch_size, generator):
    n = len(tensors[0])
    while True:
        order = torch.randperm(n, generator=generator)
        for i in range(0, n - batch_size + 1, batch_size):
            pick = order[i : i + batch_size]
            yield [t[pick] for t in tensors]


def main():
    params = json.loads((HERE / "params.json").read_text())
    torch.manual_seed(params["seed"])
    steps = int(os.environ.get("PLANTED_STEPS", params["steps"]))
    log_every = 1
    if os.environ.get("PLANTED_FIX") == "1":
        log_every = 50

    cats, nums, default = make_table(params["rows"], params["categorical"], params["numeric"], params["seed"])
    tensors = [torch.from_numpy(a) for a in (cats, nums, default)]
    cut = int(0.9 * params["rows"])
    train_part = [t[:cut] for t in tensors]
    test_cats, test_nums, test_target = [t[cut:] for t in tensors]

    model = CreditNet(params["categorical"], params["numeric"], params["embed_dim"], params["hidden"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=params["lr"], weight_decay=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    history = History(HERE / params["history"])
    generator = torch.Generator().manual_seed(params["seed"])

    start = time.perf_counter()
    for step, (c, x, y) in enumerate(batches(train_part, params["batch_size"], generator), start=1):
        logits = model(c, x)
        loss = loss_fn(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % log_every == 0:
            history.log(step, loss, logits, y, model)
        if step == steps:
            break
    elapsed = time.perf_counter() - start
    history.close()

    model.eval()
    with torch.no_grad():
        prob = torch.sigmoid(model(test_cats, test_nums)).numpy()
    print(f"test auc {roc_auc_score(test_target.numpy(), prob):.4f}")
    print(f"{step} steps in {elapsed:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
