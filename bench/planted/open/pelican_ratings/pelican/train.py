"""python -m pelican.train"""

import torch

from pelican.callbacks import Ranking, Report, Snapshot
from pelican.config import read
from pelican.data import Interactions
from pelican.towers import TwoTowers
from pelican.trainer import Trainer


def main():
    config = read()
    torch.manual_seed(config.seed)
    data = Interactions(config)
    model = TwoTowers(config, data)
    callbacks = [
        Ranking(data, config.ranking_every, config.ranking_users),
        Snapshot(config.snapshot_every),
        Report(config.report_every),
    ]
    Trainer(model, data, config, callbacks).fit()


if __name__ == "__main__":
    main()
