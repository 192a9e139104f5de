"""What is done beside the training: hooks of the loop."""

import os

import torch


class Hook:
    def on_step(self, shed): ...

    def on_round(self, shed): ...


class Tally(Hook):
    def __init__(self, every):
        self.every, self.losses = every, []

    def on_step(self, shed):
        self.losses.append(shed.loss.detach())
        if len(self.losses) == self.every:
            print(f"step {shed.step}: {torch.stack(self.losses).mean().item():.4f}", flush=True)
            self.losses.clear()


class ShowRing(Hook):
    """How often a staple finds its own fleece among all those that stayed at home."""

    def __init__(self, clip, lot, seed):
        g = torch.Generator().manual_seed(seed)
        rows = torch.arange(clip.count)
        self.gallery, self.entries, self.lot = clip.staples(rows, g), clip.staples(rows, g), lot
        self.best, self.round = 0.0, 0

    @torch.inference_mode()
    def found(self, net):
        net.eval()
        home = torch.cat([net(part) for part in self.gallery.split(self.lot)])
        away = torch.cat([net(part) for part in self.entries.split(self.lot)])
        net.train()
        return ((away @ home.T).argmax(1) == torch.arange(len(home))).float().mean().item()

    def on_round(self, shed):
        self.round += 1
        if os.environ.get("PLANTED_FIX") == "1" and self.round % 10:
            return
        share = self.found(shed.net)
        if share > self.best:
            self.best = share
            print(f"round {self.round}: {share:.3f} find their fleece", flush=True)
