class Hook:
    def begin(self, run): ...

    def batch_end(self, run): ...


class SelfPaced(Hook):
    def __init__(self, pacer):
        self.pacer = pacer

    def batch_end(self, run):
        self.pacer.remember(run.rows.tolist(), run.each.tolist())
        self.pacer.advance(run.step)


class Confusion(Hook):
    """Counts who is taken for whom, in a dictionary."""

    def __init__(self):
        self.counts = {}

    def batch_end(self, run):
        for pair in zip(run.label.tolist(), run.guess.tolist()):
            self.counts[pair] = self.counts.get(pair, 0) + 1

    def worst(self):
        wrong = {k: v for k, v in self.counts.items() if k[0] != k[1]}
        return max(wrong, key=wrong.get) if wrong else None


class Screen(Hook):
    def __init__(self, confusion, every):
        self.confusion, self.every = confusion, every

    def batch_end(self, run):
        if run.step % self.every == 0:
            right = (run.label == run.guess).float().mean().item()
            print(f"{run.step}: loss {run.loss.item():.4f} right {right:.2f} worst {self.confusion.worst()}", flush=True)


class Stack(Hook):
    def __init__(self, *hooks):
        self.hooks = hooks

    def batch_end(self, run):
        for hook in self.hooks:
            hook.batch_end(run)
