import copy
import time

import torch

from forecaster import pinball


class Trainer:
    def __init__(self, model, meters, conf):
        self.model, self.meters, self.conf = model, meters, conf
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=conf.lr, fused=True)
        self.best, self.best_weights, self.history = float("inf"), None, []

    def train_step(self, load, hour, truth) -> float:
        self.optimizer.zero_grad()
        loss = pinball(self.model(load, hour), truth)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.history.append({"loss": loss.item(), "norm": norm.item()})
        return self.history[-1]["loss"]

    @torch.inference_mode()
    def evaluate(self) -> float:
        self.model.eval()
        scores = [pinball(self.model(load, hour), truth).item() for load, hour, truth in self.meters.held_out()]
        self.model.train()
        return sum(scores) / len(scores)

    def fit(self):
        began, value = time.time(), float("nan")
        for step, batch in enumerate(self.meters.training(self.conf.batch, self.conf.seed), 1):
            value = self.train_step(*batch)
            print(f"step {step} loss {value:.5f} norm {self.history[-1]['norm']:.3f}", flush=True)
            if step % self.conf.evaluate_every == 0:
                score = self.evaluate()
                print(f"step {step} held-out {score:.5f}", flush=True)
                if score < self.best and self.conf.keep_best:
                    self.best, self.best_weights = score, copy.deepcopy(self.model.state_dict())
            if step >= self.conf.steps:
                break
        print(f"{step} steps in {time.time() - began:.3f}s, loss {value:.6f}")
