"""Finds bugs with DDP on the CPU. torchrun --standalone --nproc_per_node=2 train.py"""

import os
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from network import BugFinder
from snippets import RankBatches, Sizes, Snippets, stack


@dataclass
class Run:
    snippets: int = 1920
    batch: int = 8
    epochs: int = 8
    lr: float = 1e-3
    clip: float = 1.0
    report: int = 10
    seed: int = 47


class Trainer:
    def __init__(self, run: Run):
        self.run, self.rank, self.world = run, dist.get_rank(), dist.get_world_size()
        sizes = Sizes()
        data = Snippets(run.snippets, sizes, run.seed)
        self.batches = RankBatches(len(data), run.batch, self.rank, self.world, run.seed)
        self.loader = DataLoader(data, batch_sampler=self.batches, collate_fn=stack)
        model = BugFinder(sizes.vocab, sizes.bugs, sizes.longest)
        self.model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=run.lr, fused=True)
        self.step, self.value = 0, float("nan")

    def report(self, loss: torch.Tensor) -> None:
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        self.value = mean.item() / self.world
        if self.rank == 0:
            print(f"step {self.step} loss {self.value:.4f}", flush=True)

    def train_step(self, tokens: torch.Tensor, bugs: torch.Tensor) -> torch.Tensor:
        loss = F.cross_entropy(self.model(tokens), bugs)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.run.clip)
        self.optimizer.step()
        self.step += 1
        return loss

    def fit(self) -> float:
        limit = int(os.environ.get("PLANTED_STEPS", self.run.epochs * len(self.loader)))
        begun = time.perf_counter()
        for epoch in range(self.run.epochs):
            self.batches.set_epoch(epoch)
            for tokens, bugs in self.loader:
                loss = self.train_step(tokens, bugs)
                if self.step % self.run.report == 0 or self.step == limit:
                    self.report(loss)
                if self.step >= limit:
                    return time.perf_counter() - begun
        return time.perf_counter() - begun


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    run = Run()
    torch.manual_seed(run.seed)
    trainer = Trainer(run)
    seconds = trainer.fit()
    if trainer.rank == 0:
        print(f"{trainer.step} steps in {seconds:.2f}s, loss {trainer.value:.6f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
