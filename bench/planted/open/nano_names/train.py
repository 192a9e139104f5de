import time

import config as c
import torch
from model import NameModel

torch.set_num_threads(1)
torch.manual_seed(1337)
VOCAB = 48
stream = (torch.randint(0, 7, (60_000,)).cumsum(0) % VOCAB).long()
splits = {"train": stream[:54_000], "val": stream[54_000:]}
picker = {name: torch.Generator().manual_seed(n) for n, name in enumerate(splits)}


def get_batch(split, g):
    data = splits[split]
    ix = torch.randint(len(data) - c.block_size, (c.batch_size,), generator=g)
    return torch.stack([data[i : i + c.block_size] for i in ix]), torch.stack([data[i + 1 : i + 1 + c.block_size] for i in ix])


@torch.no_grad()
def estimate_loss(model):
    out = {}
    model.eval()
    for split in splits:
        losses = torch.zeros(c.eval_iters)
        for k in range(c.eval_iters):
            x, y = get_batch(split, picker[split])
            losses[k] = model(x, y)[1]
        out[split] = losses.mean()
    model.train()
    return out


model = NameModel(VOCAB)
optimizer = torch.optim.AdamW(model.parameters(), lr=c.learning_rate)
g = torch.Generator().manual_seed(7)
start = time.time()
for it in range(c.max_iters):
    if it % c.eval_interval == 0:
        losses = estimate_loss(model)
        print(f"step {it}: train {losses['train']:.4f}, val {losses['val']:.4f}")
    x, y = get_batch("train", g)
    _, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(f"{c.max_iters} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
