"""Explain heating bills: python bills.py run.steps=100 model.hidden=48"""

import os
import sys
import time

import torch
from heat.additive import Additive
from heat.conf import compose
from heat.descent import Descent
from heat.homes import forever, homes

conf = compose(sys.argv[1:])
torch.manual_seed(conf.run.seed)
steps = int(os.environ.get("PLANTED_STEPS", conf.run.steps))
table = homes(conf.data.homes, conf.data.gauges, conf.data.seed)
model = Additive(conf.data.gauges, **vars(conf.model))
descent = Descent(model, **vars(conf.optim))
batches = forever(*table, conf.run.batch, conf.run.seed)

began, smooth = time.perf_counter(), None
for step in range(1, steps + 1):
    readings, bill = next(batches)
    loss = descent.follow(torch.nn.functional.mse_loss(model(readings), bill))
    smooth = loss if smooth is None else 0.95 * smooth + 0.05 * loss
    if step % conf.run.report == 0:
        print(f"[{step:5d}] mse {smooth:.4f}", flush=True)
print(f"{steps} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")
