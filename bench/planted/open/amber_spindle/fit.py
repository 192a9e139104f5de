"""python fit.py --specimens 80000"""

import argparse
import logging
import os
import time
import warnings

import lightning as L
from moths.module import Cabinet, Sorter


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--specimens", type=int, default=80000)
    parser.add_argument("--side", type=int, default=48)
    parser.add_argument("--classes", type=int, default=14)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=12)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--beta", type=float, default=0.999)
    parser.add_argument("--steps", type=int, default=220)
    parser.add_argument("--seed", type=int, default=11)
    return parser.parse_args()


class Clock(L.Callback):
    def __init__(self) -> None:
        self.began = time.perf_counter()

    def on_train_batch_end(self, trainer: L.Trainer, module: Sorter, outputs, batch, batch_idx: int) -> None:
        if trainer.global_step % 40 == 0:
            print(f"step {trainer.global_step} loss {module.latest.item():.4f}", flush=True)

    def on_train_end(self, trainer: L.Trainer, module: Sorter) -> None:
        seconds = time.perf_counter() - self.began
        print(f"{trainer.global_step} steps in {seconds:.2f}s, loss {module.latest.item():.6f}")


def main() -> None:
    args = parse()
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(args.seed, verbose=False)
    cabinet = Cabinet(args.specimens, args.side, args.classes, args.batch, args.beta, args.seed)
    trainer = L.Trainer(
        accelerator="cpu", max_steps=int(os.environ.get("PLANTED_STEPS", args.steps)), logger=False, callbacks=[Clock()],
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Sorter(args.classes, args.width, args.rate), datamodule=cabinet)


if __name__ == "__main__":
    main()
