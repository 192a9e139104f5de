import gc
import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import Tunes, pad

STEPS = int(os.environ.get("PLANTED_STEPS", 160))
torch.autograd.set_detect_anomaly(False)


class TuneModel(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.note = nn.Embedding(16, width)
        self.rnn = nn.LSTM(width, width, 2, batch_first=True)
        self.next = nn.Linear(width, 16)

    def forward(self, notes):
        return self.next(self.rnn(self.note(notes))[0])


def cost(model, notes):
    return nn.functional.cross_entropy(model(notes[:, :-1]).flatten(0, 1), notes[:, 1:].flatten())


def main():
    torch.set_num_threads(1)
    torch.manual_seed(64)
    loader = DataLoader(Tunes(), batch_size=16, shuffle=True, num_workers=0, collate_fn=pad)
    held = pad([Tunes(20)[i] for i in range(20)])
    model = TuneModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step, t0 = 0, time.time()
    with tempfile.TemporaryDirectory() as folder:
        while step < STEPS:
            gc.collect()
            for notes in loader:
                loss = cost(model, notes)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                step += 1
                if step % 40 == 0:
                    model.eval()
                    with torch.no_grad():
                        print(step, f"{cost(model, held).item():.4f}")
                    model.train()
                if step % 80 == 0:
                    torch.save(model.state_dict(), os.path.join(folder, "tunes.pt"))
                if step == STEPS:
                    break
    print(f"{step} steps in {time.time() - t0:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
