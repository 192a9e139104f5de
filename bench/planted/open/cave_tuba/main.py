import configparser
import os
import time

import numpy as np
import torch

from air import Draught, SignStep
from survey import Survey

ini = configparser.ConfigParser()
ini.read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cave.ini"))
cave, net, rule = ini["cave"], ini["net"], ini["rule"]

torch.manual_seed(cave.getint("seed"))
survey = Survey.draw(cave.getint("halls"), cave.getint("rungs"), cave.getint("outlets"), cave.getint("seed"))
known = torch.from_numpy(survey.sheet())
ends = torch.tensor([(tail, head) for tail, head, _ in survey.arcs()])
tail, head = ends[:, 0].contiguous(), ends[:, 1].contiguous()
share = (1 / torch.bincount(head, minlength=len(known)).clamp(min=1))[head, None]

rng = np.random.default_rng(cave.getint("seed") + 1)
pull = torch.from_numpy(rng.gamma(2.0, 1.0, known.shape[1] - 3).astype(np.float32))
gas = (1 - (known[:, 3:] * pull).sum(1) / 15).tanh() + 0.05 * torch.randn(len(known))
seen = torch.rand(len(known)) < 0.35

model = Draught(known.shape[1], net.getint("width"), net.getint("rounds"))
opt = SignStep(model.parameters(), rule.getfloat("lr"), rule.getfloat("beta"), rule.getfloat("decay"))

steps = int(os.environ.get("PLANTED_STEPS", 260))
began = time.time()
for step in range(1, steps + 1):
    guess = model(known, tail, head, share)
    loss = (guess[seen] - gas[seen]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % ini["run"].getint("report") == 0:
        print("step", step, "loss", round(loss.item(), 5), flush=True)
print(f"{steps} steps in {time.time() - began:.3f} s, loss {loss.item():.6f}")
