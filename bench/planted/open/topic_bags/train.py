import os
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from corpus import WORDS, Abstracts, count_words
from ntm import NeuralTopics
from torch.utils.data import DataLoader


def main():
    torch.set_num_threads(1)
    set_seed(10)
    steps = int(os.environ.get("PLANTED_STEPS", 130))
    accelerator = Accelerator(cpu=True)
    model = NeuralTopics(WORDS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loader = DataLoader(Abstracts(), batch_size=32, shuffle=True, drop_last=True, collate_fn=count_words)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    step, start = 0, time.time()
    while step < steps:
        for bow in loader:
            loss = model(bow)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step >= steps:
                break
    accelerator.print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
