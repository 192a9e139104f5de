import torch


class Trainer:
    def __init__(self, model, opt, callbacks):
        self.model, self.opt, self.callbacks = model, opt, callbacks
        self.step, self.loss, self.logged = 0, float("nan"), {}

    def _call(self, event):
        for cb in self.callbacks:
            getattr(cb, event)(self)

    def fit(self, batches, steps):
        self._call("on_start")
        while self.step < steps:
            atom, a, y = next(batches)
            loss = torch.nn.functional.cross_entropy(self.model(atom, a), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.step += 1
            self.loss = loss.item()
            self._call("on_step")
        self._call("on_end")
