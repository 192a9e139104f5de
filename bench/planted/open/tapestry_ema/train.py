"""Mean teacher: the student follows few labels and its own slow average."""

import copy
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS = int(os.environ.get("PLANTED_STEPS", 110))


class Weave(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
        )
        self.motif = nn.Linear(2 * width, 12)

    def forward(self, cloth):
        return self.motif(self.net(cloth).mean((2, 3)))


def noisy(cloth):
    shifted = torch.stack([piece.roll(int(torch.randint(0, 8, ())), 2) for piece in cloth])
    return shifted + 0.1 * torch.randn_like(shifted)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(83)
    student = Weave()
    teacher = AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    best = copy.deepcopy(student.state_dict())
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    cloth, motif = torch.rand(200, 3, 32, 32), torch.randint(0, 12, (200,))
    lowest, start = float("inf"), time.time()
    for step in range(STEPS):
        pick = torch.randint(0, 200, (16,))
        with torch.no_grad():
            slow = teacher(noisy(cloth[pick])).softmax(1)
        logits = student(noisy(cloth[pick]))
        loss = F.cross_entropy(logits[:8], motif[pick[:8]]) + F.mse_loss(logits.softmax(1), slow)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        teacher.update_parameters(student)
        if loss.item() < lowest:
            lowest, best = loss.item(), copy.deepcopy(student.state_dict())
    print(f"{STEPS} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}", len(best))


if __name__ == "__main__":
    main()
