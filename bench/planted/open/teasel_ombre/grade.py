import json
import os
import time

import torch

from board import Agreement, Board, Warm
from classer import Classer, ordinal_loss
from fleece import shear


def main():
    with open("clip.json") as file:
        conf = json.load(file)
    torch.manual_seed(conf["seed"])
    (seen, grade), kept_back = shear(conf)
    net = Classer(conf["width"])
    optimizer = torch.optim.Adam(net.parameters(), conf["rate"])
    callbacks = [Warm(optimizer, conf["rate"]), Board(Agreement(net, *kept_back), conf["board_every"])]
    steps = int(os.environ.get("PLANTED_STEPS", conf["steps"]))
    began = time.perf_counter()
    for step in range(1, steps + 1):
        rows = torch.randint(len(seen), (conf["batch"],))
        loss = ordinal_loss(net(seen[rows]), grade[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for callback in callbacks:
            callback.after_step(step, loss)
    for callback in callbacks:
        callback.at_end()
    print(f"{steps} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
