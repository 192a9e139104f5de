import argparse
import os
import time

import numpy as np
import torch

from rollout import forecast, init_net
from series import draw_windows, make_panel

p = argparse.ArgumentParser()
p.add_argument("--stations", type=int, default=60)
p.add_argument("--hours", type=int, default=3000)
p.add_argument("--context", type=int, default=48)
p.add_argument("--horizon", type=int, default=4)
p.add_argument("--hidden", type=int, default=64)
p.add_argument("--batch", type=int, default=24)
p.add_argument("--lr", type=float, default=2e-3)
p.add_argument("--seed", type=int, default=5)
p.add_argument("--log-every", type=int, default=50)
args = p.parse_args()
STEPS = int(os.environ.get("PLANTED_STEPS", "260"))


def weighted_huber(pred, true):
    load = torch.nn.functional.huber_loss(pred[..., 0], true[..., 0])
    temp = torch.nn.functional.huber_loss(pred[..., 1], true[..., 1])
    return load + 0.2 * temp


torch.manual_seed(args.seed)
panel = make_panel(args.stations, args.hours, args.seed)
train, test = panel[:, :2600], panel[:, 2600:]
net = init_net(args.stations, panel.shape[-1], args.hidden)
opt = torch.optim.Adam(net.parameters(), lr=args.lr)
rng = np.random.default_rng(args.seed + 1)

t0 = time.perf_counter()
loss_now = 0.0
for step in range(1, STEPS + 1):
    who, ctx, future = draw_windows(train, args.batch, args.context, args.horizon, rng)
    loss = weighted_huber(forecast(net, who, ctx, args.horizon), future)
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    loss_now = loss.item()
    if step % args.log_every == 0:
        print(f"[{step}/{STEPS}] huber {loss_now:.5f}", flush=True)
spent = time.perf_counter() - t0

with torch.no_grad():
    who, ctx, future = draw_windows(test, 128, args.context, args.horizon, np.random.default_rng(99))
    mae = (forecast(net, who, ctx, args.horizon) - future)[..., 0].abs().mean(0)
print("test mae per hour:", " ".join(f"{v:.3f}" for v in mae.tolist()))
print(f"{STEPS} steps in {spent:.2f} s, loss {loss_now:.6f}")
