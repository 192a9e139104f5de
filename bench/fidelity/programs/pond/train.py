"""Trains a diffusion model on small pictures; the averaged weights are evaluated and sampled from."""
import argparse
import copy
import json
import os

import torch
from diffusion import Diffusion
from net import Net
from pictures import draw
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {
    "epochs": 12,
    "batch": 32,
    "pictures": 320,
    "held_out": 120,
    "steps": 100,
    "classes": 3,
    "blank": 0.15,
    "lr": 2e-3,
    "weight_decay": 0.01,
    "clip": 0.5,
    "ema": 0.97,
    "evaluate_every": 3,
    "save_every": 2,
    "log_every": 5,
    "folder": "runs",
}


class Average:
    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for kept, new in zip(self.model.parameters(), model.parameters()):
            kept.mul_(self.decay).add_(new, alpha=1 - self.decay)


class Run:
    def __init__(self, config):
        self.config = config
        torch.manual_seed(11)
        self.diffusion = Diffusion(config["steps"])
        self.model = Net(config["classes"])
        self.average = Average(self.model, config["ema"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config["lr"], weight_decay=config["weight_decay"], foreach=False)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda epoch: min(1.0, (epoch + 1) / 3) * 0.92**epoch)
        self.shuffle = torch.Generator().manual_seed(5)
        self.loader = DataLoader(TensorDataset(*draw(config["pictures"], 1)), config["batch"], shuffle=True, generator=self.shuffle)
        self.held_out = DataLoader(TensorDataset(*draw(config["held_out"], 2)), 40, generator=torch.Generator())
        self.step, self.epoch = 0, 0

    def train_step(self, clean, label):
        config = self.config
        turned = torch.rand(len(clean)) < 0.5
        clean = torch.where(turned[:, None, None, None], clean.flip(3), clean)
        label = torch.where(torch.rand(len(label)) < config["blank"], config["classes"], label)
        t = torch.randint(config["steps"], (len(clean),))
        noise = torch.randn(clean.shape)
        loss = self.diffusion.loss(self.model, clean, label, t, noise)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), config["clip"])
        self.optimizer.step()
        self.average.update(self.model)
        return loss

    @torch.no_grad()
    def evaluate(self):
        model, generator = self.average.model, torch.Generator().manual_seed(77)
        total = 0.0
        for clean, label in self.held_out:
            t = torch.randint(self.config["steps"], (len(clean),), generator=generator)
            noise = torch.randn(clean.shape, generator=generator)
            total += self.diffusion.loss(model, clean, label, t, noise).item() * len(clean)
        label = torch.arange(12) % self.config["classes"]
        pictures = self.diffusion.sample(model, label, torch.randn(12, 1, 12, 12, generator=generator))
        return total / len(self.held_out.dataset), pictures.std().item()

    def state(self):
        return {
            "model": self.model.state_dict(),
            "average": self.average.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "rng": torch.get_rng_state(),
            "step": self.step,
            "epoch": self.epoch,
        }

    def save(self):
        torch.save(self.state(), os.path.join(self.config["folder"], f"state_{self.epoch:02d}.pt"))

    def load(self, path):
        saved = torch.load(path, weights_only=False)
        self.model.load_state_dict(saved["model"])
        self.average.model.load_state_dict(saved["average"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.scheduler.load_state_dict(saved["scheduler"])
        self.shuffle.set_state(saved["shuffle"])
        torch.set_rng_state(saved["rng"])
        self.step, self.epoch = saved["step"], saved["epoch"]

    def train(self):
        config = self.config
        os.makedirs(config["folder"], exist_ok=True)
        while self.epoch < config["epochs"]:
            self.model.train()
            for clean, label in self.loader:
                loss = self.train_step(clean, label)
                self.step += 1
                if self.step % config["log_every"] == 0:
                    print(json.dumps({"step": self.step, "loss": round(loss.item(), 6)}), flush=True)
            self.scheduler.step()
            self.epoch += 1
            if self.epoch % config["evaluate_every"] == 0:
                loss, spread = self.evaluate()
                print(json.dumps({"epoch": self.epoch, "held_out": round(loss, 6), "spread": round(spread, 5)}), flush=True)
            if self.epoch % config["save_every"] == 0:
                self.save()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume")
    options = parser.parse_args()
    run = Run(CONFIG)
    if options.resume:
        run.load(options.resume)
    run.train()
