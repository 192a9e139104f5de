import os
import random
import tempfile
import time

import torch
from callbacks import TidyCallback
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed


def build_trie(count, rng):
    """Prefix tree of queries as nested dictionaries."""
    root = {}
    for _ in range(count):
        node = root
        for _ in range(8):
            node = node.setdefault(rng.randrange(30), {})
        node[-1] = rng.randrange(6)
    return root


def walk(node, prefix=()):
    for key, child in node.items():
        if key == -1:
            yield prefix, child
        else:
            yield from walk(child, (*prefix, key))


class Queries(Dataset):
    def __init__(self, trie, limit=2000):
        self.trie = trie
        self.rows = []
        for prefix, label in walk(trie):
            self.rows.append((torch.tensor(prefix), label))
            if len(self.rows) == limit:
                break

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"letters": self.rows[i][0], "labels": self.rows[i][1]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 64)
        self.net = nn.Sequential(nn.Linear(512, 384), nn.ReLU(), nn.Linear(384, 6))

    def forward(self, letters, labels=None):
        logits = self.net(self.embed(letters).flatten(1))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


if __name__ == "__main__":
    torch.set_num_threads(1)
    set_seed(1)
    steps = int(os.environ.get("PLANTED_STEPS", 500))
    queries = Queries(build_trie(5_000, random.Random(3)))
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            out,
            max_steps=steps,
            per_device_train_batch_size=64,
            optim="sgd",
            learning_rate=0.05,
            logging_steps=100,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(Net(), args, train_dataset=queries, callbacks=[TidyCallback()])
        start = time.time()
        result = trainer.train()
        print(f"{steps} steps in {time.time() - start:.2f}s, loss {result.training_loss:.6f}")
