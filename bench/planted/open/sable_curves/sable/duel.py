import time

import torch
from torch.nn.functional import softplus

from . import players
from .curves import pulses
from .numerics import Numerics


class Duel:
    def __init__(self, recipe):
        torch.manual_seed(27)
        self.r = recipe
        self.g = torch.Generator().manual_seed(28)
        self.numerics = Numerics(**recipe["numerics"])
        self.maker = players.generator(recipe["noise"], recipe["points"], recipe["width"])
        self.judge = players.critic(recipe["points"], recipe["width"])
        self.maker_opt = torch.optim.Adam(self.maker.parameters(), lr=recipe["lr"], betas=(0.5, 0.99), fused=True)
        self.judge_opt = torch.optim.Adam(self.judge.parameters(), lr=recipe["lr"], betas=(0.5, 0.99), fused=True)
        self.judge_turn = self.numerics.checked(self.judge_turn)
        self.maker_turn = self.numerics.checked(self.maker_turn)

    def noise(self):
        return torch.randn(self.r["batch"], self.r["noise"], generator=self.g)

    def judge_turn(self, real):
        made = self.maker(self.noise()).detach()
        loss = softplus(-self.judge(real)).mean() + softplus(self.judge(made)).mean()
        self.apply(loss, self.judge, self.judge_opt)
        return loss

    def maker_turn(self):
        loss = softplus(-self.judge(self.maker(self.noise()))).mean()
        self.apply(loss, self.maker, self.maker_opt)
        return loss

    def apply(self, loss, player, opt):
        opt.zero_grad()
        loss.backward()
        self.numerics.limit(player.parameters())
        opt.step()

    def play(self, steps):
        start = time.time()
        for n in range(1, steps + 1):
            judged = self.judge_turn(pulses(self.r["batch"], self.r["points"], self.g))
            made = self.maker_turn()
            if n % 140 == 0:
                print(f"{n}: judge {judged.item():.3f} maker {made.item():.3f}")
        print(f"{steps} steps in {time.time() - start:.2f}s, loss {made.item():.6f}")
