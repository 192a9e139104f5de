import os

import numpy as np
import torch

from driftwood import Trainer, TwoTower

STEPS = int(os.environ.get("PLANTED_STEPS", "600"))
USERS, ITEMS, ROWS, BATCH = 3000, 1200, 64_000, 512


def impressions(seed):
    rng = np.random.default_rng(seed)
    taste, theme = rng.normal(size=(USERS, 6)), rng.normal(size=(ITEMS, 6))
    user, item = rng.integers(0, USERS, ROWS), (ITEMS * rng.beta(1, 2.5, ROWS)).astype(int)
    score = (taste[user] * theme[item]).sum(1) * 0.8 - 1.0 + rng.normal(0, 0.4, ROWS)
    click = rng.random(ROWS) < 1 / (1 + np.exp(-score))
    ux = taste[user][:, :4] + rng.normal(0, 0.5, (ROWS, 4))
    ix = theme[item][:, :4] + rng.normal(0, 0.5, (ROWS, 4))
    f = lambda a: torch.tensor(a, dtype=torch.float32)
    return {"user": torch.tensor(user), "item": torch.tensor(item), "user_x": f(ux), "item_x": f(ix), "click": f(click)}


def main():
    torch.manual_seed(5)
    table = impressions(23)

    def batches(epoch):
        order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(900 + epoch))
        for idx in order.split(BATCH):
            yield {k: v[idx] for k, v in table.items()}

    model = TwoTower(USERS, ITEMS, 4, 4)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 50))
    trainer = Trainer(model, opt, STEPS, sched)
    took = trainer.fit(batches)
    print(f"{trainer.step} steps in {took:.2f} s, loss {trainer.last_loss.item():.6f}")


if __name__ == "__main__":
    main()
