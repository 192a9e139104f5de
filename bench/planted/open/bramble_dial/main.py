import torch
from gauges import draw
from reader import DialReader
from torch import nn
from trainer import Trainer, TrainerArguments


def main() -> None:
    args = TrainerArguments()
    torch.manual_seed(args.seed)
    Trainer(DialReader(), nn.SmoothL1Loss(), draw(4096, args.seed), args).train()


if __name__ == "__main__":
    main()
