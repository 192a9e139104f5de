import time

import torch
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, model, data, processor, batch_size=12, lr=3e-4, seed=0):
        self.model = model
        order = torch.Generator().manual_seed(seed)
        self.loader = DataLoader(data, batch_size, shuffle=True, drop_last=True, collate_fn=processor, generator=order)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)

    def inputs(self):
        while True:
            yield from self.loader

    def train(self, max_steps, log_every=50):
        self.model.train()
        began = time.time()
        for step, inputs in enumerate(self.inputs(), 1):
            loss, _ = self.model(**inputs)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % log_every == 0:
                print({"step": step, "loss": round(loss.item(), 4)})
            if step == max_steps:
                break
        print(f"{max_steps} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")
