import os
import tempfile
import time

import torch
from collate import SetCollator
from torch import nn
from torch.utils.data import Dataset
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments

MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 1000))


class Sets(Dataset):
    def __init__(self, n=1200):
        g = torch.Generator().manual_seed(0)
        self.labels = torch.randint(0, 4, (n,), generator=g)
        sizes = torch.randint(30, 60, (n,), generator=g).tolist()
        self.points = [torch.randn(s, 4, generator=g) + 0.3 * k for s, k in zip(sizes, self.labels.tolist(), strict=True)]

    def __len__(self):
        return len(self.points)

    def __getitem__(self, i):
        return {"points": self.points[i], "labels": self.labels[i].item()}


class DeepSet(PreTrainedModel):
    config_class = PretrainedConfig

    def __init__(self, config):
        super().__init__(config)
        self.phi = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.rho = nn.Linear(64, 4)
        self.post_init()

    def forward(self, points, mask, labels=None):
        pooled = (self.phi(points) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        logits = self.rho(pooled)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            max_steps=MAX_STEPS,
            per_device_train_batch_size=24,
            learning_rate=1e-3,
            logging_steps=100,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=1,
        )
        trainer = Trainer(model=DeepSet(PretrainedConfig()), args=args, train_dataset=Sets(), data_collator=SetCollator())
        start = time.time()
        result = trainer.train()
        print(f"{MAX_STEPS} steps in {time.time() - start:.2f}s, loss {result.training_loss:.6f}")
