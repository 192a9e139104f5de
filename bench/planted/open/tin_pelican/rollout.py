import os

import torch
from torch import nn

FIXED = os.environ.get("PLANTED_FIX") == "1"


def init_net(stations, features, hidden):
    return nn.ModuleDict(
        {
            "station": nn.Embedding(stations, hidden),
            "rnn": nn.GRU(features, hidden, num_layers=2, batch_first=True),
            "head": nn.Sequential(nn.Linear(2 * hidden, 128), nn.ReLU(), nn.Linear(128, features)),
        }
    )


def forecast(net, who, context, horizon):
    """Feeds the forecast back hour by hour; (batch, horizon, features)."""
    place = net["station"](who)
    steps = []
    if FIXED:
        fed, state = context, None
        for _ in range(horizon):
            hidden, state = net["rnn"](fed, state)
            nxt = fed[:, -1] + net["head"](torch.cat([hidden[:, -1], place], -1))
            steps.append(nxt)
            fed = nxt.unsqueeze(1)
    else:
        window = context
        for _ in range(horizon):
            hidden, _ = net["rnn"](window)
            nxt = window[:, -1] + net["head"](torch.cat([hidden[:, -1], place], -1))
            steps.append(nxt)
            window = torch.cat([window, nxt.unsqueeze(1)], 1)
    return torch.stack(steps, 1)
