"""A small trainer with a configuration, a log file and checkpoints."""

import json
import os

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, model, config, train_set, val_set, folder="out"):
        self.model = model
        self.config = config
        self.folder = folder
        self.order = torch.Generator().manual_seed(config["seed"])
        self.train_loader = DataLoader(train_set, batch_size=config["batch_size"], shuffle=True, drop_last=True, generator=self.order)
        self.val_loader = DataLoader(val_set, batch_size=config["batch_size"], generator=torch.Generator())
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"], weight_decay=config["weight_decay"], foreach=False)
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, milestones=config["milestones"], gamma=config["gamma"])
        self.step = 0
        self.epoch = 0
        self.best = float("inf")
        os.makedirs(folder, exist_ok=True)
        self.log_file = open(os.path.join(folder, "log.jsonl"), "a")

    def log(self, **values):
        self.log_file.write(json.dumps({"step": self.step, **values}) + "\n")
        self.log_file.flush()

    def loss(self, batch):
        history, future = batch
        return F.smooth_l1_loss(self.model(history), future)

    def train_step(self, batch):
        self.optimizer.zero_grad()
        loss = self.loss(batch)
        loss.backward()
        norms = [p.grad.norm() ** 2 for p in self.model.parameters()]
        total = float(sum(norms)) ** 0.5
        if total > self.config["clip"]:
            for p in self.model.parameters():
                p.grad.mul_(self.config["clip"] / (total + 1e-6))
        self.optimizer.step()
        self.scheduler.step()
        self.step += 1
        return loss.item()

    def evaluate(self):
        self.model.eval()
        total, count = 0.0, 0
        for batch in self.val_loader:
            total += self.loss(batch).item() * len(batch[0])
            count += len(batch[0])
        self.model.train()
        return total / count

    def state(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "step": self.step,
            "epoch": self.epoch,
            "rng": torch.get_rng_state(),
            "order": self.order_at_epoch,
        }

    def save(self):
        torch.save(self.state(), os.path.join(self.folder, f"step_{self.step}.pt"))

    def load(self, path):
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.step, self.epoch = state["step"], state["epoch"]
        self.order.set_state(state["order"])
        return state["rng"]

    def fit(self, resume=None):
        config = self.config
        rng = self.load(resume) if resume else None
        skip = self.step - self.epoch * len(self.train_loader)
        self.model.train()
        torch.autograd.set_detect_anomaly(config["detect_anomaly"])
        while self.epoch < config["epochs"]:
            self.order_at_epoch = self.order.get_state()
            for i, batch in enumerate(self.train_loader):
                if i < skip:
                    continue
                if rng is not None:
                    torch.set_rng_state(rng)
                    rng = None
                loss = self.train_step(batch)
                if self.step % config["log_every"] == 0:
                    self.log(loss=loss, lr=self.optimizer.param_groups[0]["lr"])
                if self.step % config["eval_every"] == 0:
                    score = self.evaluate()
                    self.best = min(self.best, score)
                    self.log(val_loss=score)
                    print(f"[{self.step}] validation {score:.5f} best {self.best:.5f}", flush=True)
                if self.step % config["save_every"] == 0:
                    self.save()
            skip = 0
            self.epoch += 1
        self.log_file.close()
