"""Trains the teacher; its weights lie in weights/teacher.pt."""
import os

import torch
from torch.nn import functional as F

from data import loaders
from models import Teacher

if __name__ == "__main__":
    torch.manual_seed(0)
    train, test = loaders(64)
    model = Teacher()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        model.train()
        for x, y in train:
            loss = F.cross_entropy(model(x)[0], y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x)[0].argmax(1) == y).sum().item() for x, y in test)
        print(f"epoch {epoch} accuracy {right / len(test.dataset):.4f}", flush=True)
    os.makedirs("weights", exist_ok=True)
    torch.save(model.state_dict(), "weights/teacher.pt")
