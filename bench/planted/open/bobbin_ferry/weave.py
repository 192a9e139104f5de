import json
import os
import time

import torch
from torch import nn

from patterns import Pillow
from vault import Vault


def stack(*wide):
    layers = []
    for a, b in zip(wide, wide[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


class Weaver:
    """Least-squares GAN; whatever else is to happen during training is hooked in."""

    def __init__(self, plan):
        self.plan = plan
        self.pillow = Pillow(plan["pins"], plan["seed"])
        self.maker = stack(plan["noise"], plan["width"], plan["width"], plan["pins"])
        self.judge = stack(plan["pins"], plan["width"], plan["width"], 1)
        self.parts = {"maker": self.maker, "judge": self.judge}
        for name in ("maker", "judge"):
            knobs = {"lr": plan["rate"][name], "betas": (0.5, 0.99), "fused": True}
            self.parts[name + "_adam"] = torch.optim.Adam(self.parts[name].parameters(), **knobs)
        self.hooks, self.step, self.losses = [], 0, (None, None)

    def every(self, steps, hook):
        self.hooks.append((steps, hook))

    def fake(self):
        return torch.tanh(self.maker(torch.randn(self.plan["batch"], self.plan["noise"])))

    def turn(self, name, loss):
        adam = self.parts[name + "_adam"]
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss.detach()

    def once(self):
        true, false = self.pillow.draw(self.plan["batch"]), self.fake()
        told = (self.judge(true) - 1).square().mean() + self.judge(false.detach()).square().mean()
        judged = self.turn("judge", told)
        made = self.turn("maker", (self.judge(false) - 1).square().mean())
        self.losses = judged, made

    def run(self, steps):
        while self.step < steps:
            self.once()
            self.step += 1
            for gap, hook in self.hooks:
                if self.step % gap == 0:
                    hook(self)

    def state(self):
        return {"step": self.step, **{name: part.state_dict() for name, part in self.parts.items()}}


def tell(weaver):
    judged, made = weaver.losses
    print(f"{weaver.step}: judge {judged.item():.4f} maker {made.item():.4f}", flush=True)


def main():
    with open("lace.json") as file:
        plan = json.load(file)
    torch.manual_seed(plan["seed"])
    weaver, vault = Weaver(plan), Vault(**plan["vault"])
    weaver.every(plan["hooks"]["tell"], tell)
    weaver.every(plan["hooks"]["vault"], lambda w: vault.put(w.step, w.state()))
    steps = int(os.environ.get("PLANTED_STEPS", 900))
    began = time.perf_counter()
    weaver.run(steps)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {weaver.losses[1].item():.5f}")


if __name__ == "__main__":
    main()
