"""Full-batch node classification. python train.py"""

import os
import time

import torch
import torch.nn.functional as F

import citations
from network import CitationNet

CONFIG = {
    "hidden": 128,
    "lr": 5e-3,
    "weight_decay": 5e-4,
    "steps": 1100,
    "check_every": 60,
    "seed": 12,
    "smoothing": 0.1,
}


class EarlyStop:
    """Keeps the best accuracy and how long ago it was."""

    def __init__(self, patience: int):
        self.patience, self.best, self.age = patience, 0.0, 0

    def __call__(self, accuracy: float) -> bool:
        self.age = 0 if accuracy > self.best else self.age + 1
        self.best = max(self.best, accuracy)
        return self.age > self.patience


def accuracy_of(model, graph) -> float:
    model.eval()
    with torch.no_grad():
        guess = model(graph.words, graph.edges)[graph.held_out].argmax(1)
    model.train()
    return (guess == graph.topics[graph.held_out]).float().mean().item()


def train() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(CONFIG["seed"])
    graph = citations.make()
    model = CitationNet(graph.words.size(1), CONFIG["hidden"], int(graph.topics.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"], weight_decay=CONFIG["weight_decay"])
    stop = EarlyStop(patience=100)
    limit = int(os.environ.get("PLANTED_STEPS", CONFIG["steps"]))
    history = []
    begun = time.perf_counter()
    for step in range(1, limit + 1):
        logits = model(graph.words, graph.edges)
        loss = F.cross_entropy(logits[graph.train], graph.topics[graph.train], label_smoothing=CONFIG["smoothing"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        print(f"step {step:4d} | loss {history[-1]:.4f} | mean of last ten {sum(history[-10:]) / len(history[-10:]):.4f}")
        if step % CONFIG["check_every"] == 0:
            accuracy = accuracy_of(model, graph)
            print(f"  held out: {accuracy:.3f}")
            if stop(accuracy):
                break
    print(f"{step} steps in {time.perf_counter() - begun:.2f}s, loss {history[-1]:.6f}")


if __name__ == "__main__":
    train()
