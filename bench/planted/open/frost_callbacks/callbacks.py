import os


class Callback:
    def on_backward_end(self, trainer):
        pass

    def on_step_end(self, trainer):
        pass


class Printer(Callback):
    def __init__(self, every):
        self.every = every

    def on_step_end(self, trainer):
        if trainer.step % self.every == 0:
            print(f"step {trainer.step}  loss {trainer.smooth:.4f}  health {trainer.notes.get('health', 0):.3f}", flush=True)


class GradientHealth(Callback):
    """How many gradient entries are tiny, how many are huge, and do they agree with the step before?"""

    def __init__(self, small=1e-7, large=1.0):
        self.small, self.large = small, large
        self.before = {}

    def on_backward_end(self, trainer):
        if os.environ.get("PLANTED_FIX") == "1" and trainer.step % 50:
            return
        tiny = huge = agree = total = 0
        for name, p in trainer.model.named_parameters():
            values = p.grad.flatten()[:3500].tolist()
            earlier = self.before.get(name, values)
            for now, then in zip(values, earlier):
                size = abs(now)
                if size < self.small:
                    tiny += 1
                elif size > self.large:
                    huge += 1
                if now * then > 0:
                    agree += 1
                total += 1
            self.before[name] = values
        trainer.notes["health"] = agree / total - (tiny + huge) / total
