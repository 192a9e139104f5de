"""Knowledge distillation: a wristband-sized student learns from the transformer teacher."""
import argparse
import json
import os
import random

import numpy as np
import torch
import yaml
from torch.nn import functional as F

from data import loaders
from losses import distillation_loss, hint_loss
from models import Student, Teacher


class Distiller:
    def __init__(self, config):
        self.config = config
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.train_loader, self.test_loader = loaders(config["batch_size"])
        self.teacher = Teacher().to(self.device)
        self.teacher.load_state_dict(torch.load(config["teacher"], map_location=self.device))
        self.teacher.eval()
        for parameter in self.teacher.parameters():
            parameter.requires_grad_(False)
        self.student = Student().to(self.device)
        self.optimizer = torch.optim.AdamW(self.student.parameters(), lr=config["lr"],
                                           weight_decay=config["weight_decay"])
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, config["epochs"] * len(self.train_loader))
        self.history = []

    def train_epoch(self):
        self.student.train()
        total = 0.0
        for x, y in self.train_loader:
            x, y = x.to(self.device), y.to(self.device)
            with torch.no_grad():
                teacher_logits, teacher_features = self.teacher(x)
            logits, features = self.student(x)
            loss = distillation_loss(logits, teacher_logits, y, self.config["temperature"], self.config["alpha"])
            loss = loss + self.config["hint_weight"] * hint_loss(features, teacher_features)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self, model):
        model.eval()
        right, loss = 0, 0.0
        for x, y in self.test_loader:
            x, y = x.to(self.device), y.to(self.device)
            logits, _ = model(x)
            loss += F.cross_entropy(logits, y, reduction="sum").item()
            right += (logits.argmax(1) == y).sum().item()
        n = len(self.test_loader.dataset)
        return loss / n, right / n

    @torch.no_grad()
    def agreement(self):
        """How often the student says what the teacher says."""
        self.student.eval()
        same = 0
        for x, _ in self.test_loader:
            x = x.to(self.device)
            same += (self.student(x)[0].argmax(1) == self.teacher(x)[0].argmax(1)).sum().item()
        return same / len(self.test_loader.dataset)

    def save(self, name):
        os.makedirs(self.config["output"], exist_ok=True)
        torch.save(self.student.state_dict(), os.path.join(self.config["output"], name))

    def fit(self):
        best = 0.0
        for epoch in range(self.config["epochs"]):
            train_loss = self.train_epoch()
            test_loss, accuracy = self.evaluate(self.student)
            _, teacher_accuracy = self.evaluate(self.teacher)
            row = dict(epoch=epoch, train_loss=train_loss, test_loss=test_loss, accuracy=accuracy,
                       teacher_accuracy=teacher_accuracy, agreement=self.agreement())
            self.history.append(row)
            print(" ".join(f"{k} {v:.5f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)
            if accuracy > best:
                best = accuracy
                self.save("best.pt")
        self.save("last.pt")
        with open(os.path.join(self.config["output"], "history.json"), "w") as f:
            json.dump(self.history, f, indent=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.yaml")
    parser.add_argument("--epochs", type=int)
    args = parser.parse_args()
    with open(args.config) as f:
        config = yaml.safe_load(f)
    if args.epochs:
        config["epochs"] = args.epochs
    random.seed(config["seed"])
    np.random.seed(config["seed"])
    torch.manual_seed(config["seed"])
    Distiller(config).fit()


if __name__ == "__main__":
    main()
