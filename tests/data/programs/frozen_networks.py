"""Networks that nobody trains beside one that is: `python frozen_networks.py teacher|backbone|augmented|average|dropout|unfrozen`."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
kind = sys.argv[1]
rows = torch.randn(96, 3, 16, 16)
wanted = torch.randint(0, 4, (96,))


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Dropout(0.1), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2304, 4))


class Headed(nn.Module):
    """A frozen backbone in front of a trained head."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.head = network(), nn.Linear(4, 4)
        for parameter in self.backbone.parameters():
            parameter.requires_grad = False

    def train(self, mode: bool = True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        found = self.backbone(x)  # the part
        return self.head(found)


teacher = network().train(kind == "dropout")
student = Headed() if kind in ("backbone", "unfrozen") else network()
optimizer = torch.optim.SGD([each for each in student.parameters() if each.requires_grad], lr=0.01)
student.train()
for step in range(120):
    if step % 6 == 0:
        order = torch.randperm(96)
    chosen = order[step % 6 * 16 : step % 6 * 16 + 16]
    x = rows[chosen] + 0.1 * torch.randn(16, 3, 16, 16) if kind == "augmented" else rows[chosen]
    if kind not in ("backbone", "unfrozen"):
        with torch.no_grad():
            answer = teacher(x)  # the teacher
    else:
        answer = None
    given = student(x)
    loss = nn.functional.cross_entropy(given, wanted[chosen])
    if answer is not None:
        loss = loss + (given - answer).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if kind == "average":
        for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
            old.data.mul_(0.99).add_(new.data, alpha=0.01)
    if kind == "unfrozen" and step == 8:
        for parameter in student.backbone.parameters():
            parameter.requires_grad = True
        optimizer.add_param_group({"params": list(student.backbone.parameters())})
print(loss.item(), torch.rand(1).item())
