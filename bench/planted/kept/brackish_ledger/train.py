import argparse
import os
import time

import torch
import torch.nn.functional as F
import yaml
from sklearn.metrics import roc_auc_score
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from data import FIELDS, make_log
from model import ClickModel


def batches(dataset, batch_size, generator):
    """Endless shuffled batches; the dataset is indexed with a whole batch at once."""
    sampler = BatchSampler(RandomSampler(dataset, generator=generator), batch_size, drop_last=True)
    loader = DataLoader(dataset, sampler=sampler, batch_size=None)
    while True:
        yield from loader


@torch.no_grad()
def evaluate(model, dataset):
    model.eval()
    ids, numeric, click = dataset[:]
    p = torch.sigmoid(model(ids, numeric))
    model.train()
    return roc_auc_score(click.numpy(), p.numpy())


def train(cfg, steps):
    torch.manual_seed(cfg["seed"])
    data_cfg, tc = cfg["data"], cfg["train"]
    train_set = make_log(data_cfg, data_cfg["rows"], seed=1)
    test_set = make_log(data_cfg, data_cfg["test_rows"], seed=2)
    model = ClickModel([data_cfg[f] for f in FIELDS], cfg["model"]["dim"], cfg["model"]["hidden"])
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters")
    opt = torch.optim.Adagrad(model.parameters(), lr=tc["lr"], initial_accumulator_value=0.1)
    stream = batches(train_set, tc["batch_size"], torch.Generator().manual_seed(cfg["seed"]))

    start, running = time.time(), 0.0
    for step in range(1, steps + 1):
        ids, numeric, click = next(stream)
        loss = F.binary_cross_entropy_with_logits(model(ids, numeric), click)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
        if step % tc["log_every"] == 0:
            print(f"step {step:5d}  logloss {running / tc['log_every']:.4f}")
            running = 0.0
    elapsed = time.time() - start
    print(f"test auc {evaluate(model, test_set):.4f}")
    print(f"{steps} steps in {elapsed:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "config.yaml"))
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 600)))
    args = parser.parse_args()
    with open(args.config) as f:
        train(yaml.safe_load(f), args.steps)
