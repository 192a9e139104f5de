import argparse
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from nets import big_net, small_net
from objective import blend
from shapes import draw

HERE = Path(__file__).resolve().parent
STEPS = int(os.environ.get("PLANTED_STEPS", "400"))


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--classes", type=int, default=6)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--temperature", type=float, default=3.0)
    p.add_argument("--alpha", type=float, default=0.7)
    p.add_argument("--warm-teacher", type=int, default=12, help="updates for the teacher before distilling")
    p.add_argument("--report", type=int, default=25)
    return p.parse_args()


def sampler(x, y, batch, seed):
    g = torch.Generator().manual_seed(seed)

    def next_batch():
        idx = torch.randint(0, len(x), (batch,), generator=g)
        return x[idx], y[idx]

    return next_batch


def get_teacher(args, next_batch):
    teacher = big_net(args.classes)
    opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(args.warm_teacher):
        x, y = next_batch()
        loss = F.cross_entropy(teacher(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"teacher loss {loss.item():.4f}")
    return teacher.eval()


def make_updater(student, objective, args):
    opt = torch.optim.SGD(student.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.StepLR(opt, 120, 0.3)

    def update(x, y):
        loss = objective(x, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        return loss.detach()

    return update


def main():
    args = parse()
    torch.manual_seed(8)
    x, y = draw(3000, args.classes, seed=40)
    vx, vy = draw(400, args.classes, seed=41)
    next_batch = sampler(x, y, args.batch, seed=42)
    teacher = get_teacher(args, next_batch)
    student = small_net(args.classes)
    update = make_updater(student, blend(student, teacher, args.temperature, args.alpha), args)

    begin = time.perf_counter()
    for step in range(1, STEPS + 1):
        loss = update(*next_batch())
        if step % args.report == 0:
            print(f"{step:4d}/{STEPS} loss {loss.item():.4f}", flush=True)
    took = time.perf_counter() - begin

    with torch.no_grad():
        acc = (student(vx).argmax(-1) == vy).float().mean().item()
    torch.save(student.state_dict(), HERE / "student.pt")
    print(f"student accuracy {acc:.3f}")
    print(f"{STEPS} steps in {took:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
