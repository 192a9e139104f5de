"""Things done around the steps."""

import torch


class Callback:
    def on_step_end(self, trainer):
        pass

    def on_fit_end(self, trainer):
        pass


class Report(Callback):
    def __init__(self, every):
        self.every = every

    def on_step_end(self, trainer):
        if trainer.step % self.every == 0:
            print(f"step {trainer.step} loss {trainer.value:.4f} best recall {trainer.best:.3f}", flush=True)


class Snapshot(Callback):
    """Keeps a copy of the weights in memory."""

    def __init__(self, every):
        self.every = every
        self.copy = None

    def on_step_end(self, trainer):
        if trainer.step % self.every == 0:
            self.copy = {name: value.clone() for name, value in trainer.model.state_dict().items()}


class Ranking(Callback):
    """Recall@20 over held-out interactions, seen items left out."""

    def __init__(self, data, every, users, k=20):
        self.every, self.k, self.data = every, k, data
        truth: dict[int, set[int]] = {}
        for user, item in data.test.tolist():
            truth.setdefault(user, set()).add(item)
        self.users = torch.tensor(sorted(truth)[:users])
        self.truth = truth

    def on_step_end(self, trainer):
        if trainer.step % self.every:
            return
        recall = self.measure(trainer.model)
        trainer.best = max(trainer.best, recall)

    @torch.no_grad()
    def measure(self, model) -> float:
        model.eval()
        items = model.items(torch.arange(len(model.item_features)), model.item_features)
        hits = total = 0
        for chunk in self.users.split(100):
            scores = model.users(chunk, model.user_features) @ items.T
            for row, user in enumerate(chunk.tolist()):
                scores[row, list(self.data.seen[user])] = -2.0
            top = scores.topk(self.k, dim=1).indices.tolist()
            for user, ranked in zip(chunk.tolist(), top, strict=True):
                hits += len(self.truth[user].intersection(ranked))
                total += len(self.truth[user])
        model.train()
        return hits / max(total, 1)
