import random
from pathlib import Path

import numpy as np
import torch
import yaml

from recsys.data import PairSampler, make_interactions
from recsys.model import NeuMF
from recsys.trainer import Trainer


def main():
    config = yaml.safe_load((Path(__file__).parent / "config.yaml").read_text())
    seed = config["seed"]
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

    data = make_interactions(seed=seed, **config["data"])
    sampler = PairSampler(data, config["train"]["batch_size"], config["data"]["negatives"], seed)
    model = NeuMF(data.num_users, data.num_items, **config["model"])
    trainer = Trainer(model, data, sampler, **config["train"])
    loss = trainer.fit()

    if trainer.best_state is not None:
        model.load_state_dict(trainer.best_state)
        print(f"best ndcg@{trainer.top_k} {trainer.best_ndcg:.4f}")
    print(f"{trainer.step} steps in {trainer.elapsed:.2f} s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
