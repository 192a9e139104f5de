"""Distils the station's panel into one small pupil."""

import os
import time

import torch
from torch.nn.functional import cross_entropy, kl_div, log_softmax

from callbacks import Rewind, Voice
from nets import Panel, pupil
from trays import course


class Trainer:
    def __init__(self, net, panel, seeds, batch, lr, callbacks):
        self.net, self.panel, self.batch = net, panel, batch
        self.seen, self.kind = seeds
        self.optimizer = torch.optim.RMSprop(net.parameters(), lr=lr, momentum=0.5)
        self.callbacks = callbacks
        self.step = self.rewound = 0
        self.loss = None

    def state_dict(self):
        return {"step": self.step, "net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state):
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])

    def one(self, generator):
        rows = torch.randint(len(self.seen), (self.batch,), generator=generator)
        seen = self.seen[rows]
        told = self.net(seen)
        soft = kl_div(log_softmax(told, 1), self.panel(seen), log_target=True, reduction="batchmean")
        self.loss = 0.6 * soft + 0.4 * cross_entropy(told, self.kind[rows])
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()
        self.step += 1

    def fit(self, steps, generator):
        for _ in range(steps):
            self.one(generator)
            for callback in self.callbacks:
                callback.after_step(self)


def main():
    torch.manual_seed(8)
    generator = torch.Generator().manual_seed(80)
    seeds = course(6000, generator)
    trainer = Trainer(pupil(512), Panel(96), seeds, batch=64, lr=1e-4, callbacks=[Rewind("states"), Voice(100)])
    steps = int(os.environ.get("PLANTED_STEPS", 2400))
    began = time.perf_counter()
    trainer.fit(steps, generator)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {trainer.loss.item():.5f}")


if __name__ == "__main__":
    main()
