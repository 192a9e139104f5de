"""Train the listener with accelerate: python train.py [settings.yaml]"""

import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import torch
import yaml
from accelerate import Accelerator
from accelerate.utils import set_seed
from batches import Layout, make_batcher
from listener import BLANK, Listener, edits, transcribe
from recordings import FieldRecordings, SimilarLengths, invent
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore", category=UserWarning)


def error_rate(model: torch.nn.Module, loader: DataLoader) -> float:
    wrong = total = 0
    model.eval()
    with torch.inference_mode():
        for batch in loader:
            for scores, length, target, count in zip(
                model(batch["features"]), batch["feature_lengths"], batch["targets"], batch["target_lengths"], strict=True
            ):
                wrong += edits(transcribe(scores[:length]), target[:count].tolist())
                total += int(count)
    model.train()
    return wrong / total


def main() -> None:
    here = Path(__file__).parent
    settings = yaml.safe_load(Path(sys.argv[1] if len(sys.argv) > 1 else here / "settings.yaml").read_text())
    steps = int(os.environ.get("PLANTED_STEPS", settings["steps"]))
    set_seed(settings["seed"])
    accelerator = Accelerator(cpu=True)
    model = Listener(**settings["model"])
    batcher = make_batcher(Layout(stride=settings["model"]["stride"], blank=BLANK))
    heard = invent(settings["recordings"], settings["seed"])
    held = settings["held_out"]
    train = FieldRecordings(heard[held:], settings["seed"], augment=True)
    sampler = SimilarLengths(train.lengths(), settings["batch_size"], settings["seed"])
    loader = DataLoader(train, batch_sampler=sampler, collate_fn=batcher)
    valid = DataLoader(FieldRecordings(heard[:held], 0, augment=False), held, collate_fn=batcher)
    optimizer = torch.optim.AdamW(model.parameters(), **settings["optimizer"])
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=settings["optimizer"]["lr"], total_steps=1000)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

    step, loss, folder = 0, torch.tensor(float("nan")), tempfile.TemporaryDirectory()
    began = time.perf_counter()
    while step < steps:
        for batch in loader:
            with accelerator.accumulate(model):
                loss, _ = accelerator.unwrap_model(model).loss(batch)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), settings["clip"])
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            step += 1
            if step % settings["log_every"] == 0:
                accelerator.print(f"{step:5d}  loss {loss.item():.4f}  lr {schedule.get_last_lr()[0]:.2e}")
            if step % settings["evaluate_every"] == 0:
                accelerator.print(f"{step:5d}  syllable error rate {error_rate(model, valid):.3f}")
                accelerator.save_model(model, folder.name)
            if step >= steps:
                break
    seconds = time.perf_counter() - began
    accelerator.end_training()
    folder.cleanup()
    print(f"{step} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
