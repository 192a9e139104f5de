import copy
import os


class Hook:
    def __init__(self, run, **settings):
        self.run = run
        self.since = 0
        vars(self).update(settings)

    def on_beat(self, step):
        pass

    def rested(self, step):
        return step - self.since >= self.rest


class Warm(Hook):
    def on_beat(self, step):
        for group in self.run.optimizer.param_groups:
            group["lr"] = self.run.rate * min(1.0, step / self.over)


class Diary(Hook):
    def on_beat(self, step):
        if self.rested(step):
            self.since = step
            print(f"{step}: loss {self.run.last.item():.4f}, best recall {self.run.best:.3f}", flush=True)


class Champion(Hook):
    """Keeps the weights of the best twins seen so far; a new one must beat the old one by a margin."""

    def better(self):
        recall = self.run.jury.recall(self.run.twins)
        return recall if recall > self.run.best + self.margin else None

    def on_beat(self, step):
        if os.environ.get("PLANTED_FIX") == "1":
            recall = None if not self.rested(step) else self.better()
        else:
            recall = self.better()
        if recall is not None and self.rested(step):
            self.run.best, self.run.kept = recall, copy.deepcopy(self.run.twins.state_dict())
        if self.rested(step):
            self.since = step


KNOWN = {"diary": Diary, "champion": Champion, "warm": Warm}
