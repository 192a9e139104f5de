"""Knowledge distillation on leaves. python train.py --alpha 0.7"""

import argparse
import os

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from engine import Distiller
from leaves import Leaves
from nets import student_net, teacher_net


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--steps", type=int, default=1800)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--alpha", type=float, default=0.7)
    p.add_argument("--heat", type=float, default=3.0)
    p.add_argument("--lr", type=float, default=0.03)
    p.add_argument("--check-every", type=int, default=250)
    p.add_argument("--teacher-steps", type=int, default=6)
    p.add_argument("--seed", type=int, default=57)
    return p.parse_args()


def short_teacher(loader, steps: int):
    """Stands in for the pretrained weights."""
    net = teacher_net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for _, (windows, labels) in zip(range(steps), loader, strict=False):
        loss = F.cross_entropy(net(windows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def main() -> None:
    torch.set_num_threads(1)
    args = options()
    torch.manual_seed(args.seed)
    loader = DataLoader(Leaves(1500, seed=3), batch_size=args.batch, shuffle=True, drop_last=True)
    distiller = Distiller(student_net(), short_teacher(loader, args.teacher_steps), loader, args)
    seconds = distiller.fit(int(os.environ.get("PLANTED_STEPS", args.steps)))
    torch.save(distiller.student.state_dict(), "student.pt")
    print(f"{distiller.step} steps in {seconds:.2f}s, loss {distiller.value:.6f}")


if __name__ == "__main__":
    main()
