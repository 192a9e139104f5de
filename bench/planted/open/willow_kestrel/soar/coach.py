"""The coach trains; helpers look over its shoulder."""

import os
import time

import torch
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Helper:
    def before(self, coach: "Coach") -> None: ...
    def after_step(self, coach: "Coach") -> None: ...
    def after(self, coach: "Coach") -> None: ...


class Coach:
    def __init__(self, model: nn.Module, bank, plan: dict, helpers: list[Helper]) -> None:
        self.model, self.bank, self.plan, self.helpers = model, bank, plan, helpers
        self.optimizer = torch.optim.AdamW(model.parameters(), plan["rate"], fused=True)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 2000)
        self.step, self.loss, self.began = 0, float("nan"), 0.0

    def __getstate__(self) -> dict:
        if FIXED:
            kept = {name: part for name, part in vars(self).items() if name not in ("helpers", "bank")}
            return kept | {"cursor": self.bank.rng.bit_generator.state}
        else:
            return {name: part for name, part in vars(self).items() if name != "helpers"}

    def tell(self, moment: str) -> None:
        for helper in self.helpers:
            getattr(helper, moment)(self)

    def fit(self, steps: int) -> None:
        self.began = time.perf_counter()
        self.tell("before")
        while self.step < steps:
            past, climb = self.bank.draw(self.plan["batch"], self.plan["past"], self.plan["ahead"])
            self.optimizer.zero_grad()
            loss = nn.functional.huber_loss(self.model(past), climb)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            self.step, self.loss = self.step + 1, loss.detach()
            self.tell("after_step")
        self.tell("after")
