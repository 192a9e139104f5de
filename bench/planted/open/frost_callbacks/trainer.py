import time

from torch import nn


class Trainer:
    def __init__(self, model, optimizer, callbacks):
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks
        self.step, self.smooth, self.notes = 0, None, {}

    def _tell(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def fit(self, source, steps):
        begin = time.time()
        for x, y in source:
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self._tell("on_backward_end")
            self.optimizer.step()
            self.step += 1
            value = loss.item()
            self.smooth = value if self.smooth is None else 0.95 * self.smooth + 0.05 * value
            self._tell("on_step_end")
            if self.step == steps:
                break
        return time.time() - begin
