import time
import argparse
import os

import torch
from torch import nn

from grads import AdaptiveClip
from nfnet import PlateNet
from plates import make_loader

STEPS = int(os.environ.get("PLANTED_STEPS", "500"))


class Fitter:
    def __init__(self, args):
        self.args = args
        self.loader = make_loader(args.images, args.batch_size, args.seed)
        torch.manual_seed(args.seed)
        self.net = PlateNet()
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=1000)
        self.clip = AdaptiveClip([p for n, p in self.net.named_parameters() if not n.startswith("head")], ratio=args.clip)
        self.step = 0

    def update(self, images, kinds):
        self.optimizer.zero_grad()
        loss = self.criterion(self.net(images), kinds)
        loss.backward()
        self.clip()
        self.optimizer.step()
        self.schedule.step()
        return loss

    def run(self):
        began = time.perf_counter()
        while True:
            for images, kinds in self.loader:
                loss = self.update(images, kinds)
                self.step += 1
                if self.step % self.args.log_every == 0 or self.step == STEPS:
                    print(f"[{self.step:05d}] loss={loss.item():.6f} lr={self.schedule.get_last_lr()[0]:.4f}")
                if self.step >= STEPS:
                    print(f"{self.step} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")
                    return


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=2400)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--clip", type=float, default=0.02)
    parser.add_argument("--log-every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=29)
    Fitter(parser.parse_args()).run()
