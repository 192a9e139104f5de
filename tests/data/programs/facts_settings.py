"""A loop with one debug setting left on. Arguments: on=…, steps=…"""

import logging
import sys

import torch
from torch import nn

OPTIONS = {"on": "nothing", "steps": "60"} | dict(argument.split("=", 1) for argument in sys.argv[1:])
ON = OPTIONS["on"]


def switch_on():
    if ON == "tracemalloc":
        import tracemalloc

        tracemalloc.start()
    if ON == "cprofile":
        import cProfile

        cProfile.Profile().enable()
    if ON == "settrace":
        sys.settrace(lambda frame, event, argument: None)
    if ON == "logging":
        logging.basicConfig(level=logging.DEBUG, filename="/dev/null")
    if ON == "quiet_logging":
        logging.basicConfig(level=logging.WARNING, filename="/dev/null")
    if ON == "deterministic":
        torch.use_deterministic_algorithms(True)


def main():
    torch.set_num_threads(1)
    switch_on()
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    short = None
    for step in range(int(OPTIONS["steps"])):
        if ON == "short_cprofile" and step == 7:
            import cProfile

            short = cProfile.Profile()
            short.enable()
        if short is not None and step == 10:
            short.disable()
        optimizer.zero_grad()
        model(torch.ones(4, 8)).square().mean().backward()
        optimizer.step()
        for number in range(3):
            logging.getLogger("train").debug("detail %d", number)


if __name__ == "__main__":
    main()
