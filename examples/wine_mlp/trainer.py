"""Training loop, evaluation and checkpoints."""

import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, config, model, train_loader, test_loader):
        self.config = config
        self.model = model
        self.train_loader = train_loader
        self.test_loader = test_loader
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config["optim"]["lr"], weight_decay=config["optim"]["weight_decay"])
        self.epochs = config["train"]["epochs"]
        total = self.epochs * len(train_loader)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, max_lr=4 * config["optim"]["lr"], total_steps=total)
        self.output_dir = Path(config["train"]["output_dir"])
        self.output_dir.mkdir(parents=True, exist_ok=True)
        self.step = 0
        torch.autograd.set_detect_anomaly(self.config["debug"]["detect_anomaly"])

    def fit(self):
        for epoch in range(1, self.epochs + 1):
            self.train_epoch(epoch)
            metrics = {"epoch": epoch, "step": self.step, **self.evaluate()}
            print(f"epoch {epoch:2d}  test loss {metrics['test_loss']:.4f}  accuracy {metrics['accuracy']:.3f}")
            self.save(metrics)

    def train_epoch(self, epoch):
        self.model.train()
        for features, labels in self.train_loader:
            loss = self.train_step(features, labels)
            if self.step % self.config["train"]["log_every"] == 0:
                print(f"epoch {epoch:2d}  step {self.step:5d}  loss {loss.item():.4f}")

    def train_step(self, features, labels):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(features), labels)
        if self.config["debug"]["check_finite"] and not math.isfinite(loss.item()):
            raise RuntimeError(f"loss is {loss.item()} at step {self.step}")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config["optim"]["grad_clip"])
        self.optimizer.step()
        self.scheduler.step()
        self.step += 1
        return loss

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        loss, correct, count = 0.0, 0, 0
        for features, labels in self.test_loader:
            logits = self.model(features)
            loss += F.cross_entropy(logits, labels, reduction="sum").item()
            correct += (logits.argmax(dim=1) == labels).sum().item()
            count += len(labels)
        return {"test_loss": loss / count, "accuracy": correct / count}

    def save(self, metrics):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}
        torch.save(state, self.output_dir / "checkpoint.pt")
        with open(self.output_dir / "metrics.jsonl", "a") as file:
            file.write(json.dumps(metrics) + "\n")
