"""Train the picker with Fabric. The figures are in picker.ini."""

import configparser
import os
import tempfile
import time
from pathlib import Path

import torch
from archive import Archive, write_archive
from lightning.fabric import Fabric
from picker import Picker
from torch.utils.data import DataLoader
from windows import Windows, soft_targets


def endless(loader):
    while True:
        yield from loader


@torch.no_grad()
def mean_error(fabric: Fabric, model, loader) -> float:
    model.eval()
    errors = [(model(wave).argmax(-1) - ahead).abs().float().mean() for wave, ahead in loader]
    model.train()
    return float(fabric.all_reduce(torch.stack(errors).mean()))


def main() -> None:
    config = configparser.ConfigParser()
    config.read(Path(__file__).with_name("picker.ini"))
    data, fit = config["data"], config["fit"]
    steps = int(os.environ.get("PLANTED_STEPS", fit["steps"]))
    fabric = Fabric(accelerator="cpu", devices=1, precision="32-true")
    fabric.launch()
    fabric.seed_everything(fit.getint("seed"), verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        write_archive(Path(folder), data.getint("stations"), data.getint("samples"), data.getint("arrivals"), fit.getint("seed"))
        archive = Archive(Path(folder))
        border = int(len(archive.arrivals) * 0.95)
        train = Windows(archive, range(border), data.getint("window"), 1)
        valid = Windows(archive, range(border, len(archive.arrivals)), data.getint("window"), 2)
        train_loader, valid_loader = fabric.setup_dataloaders(
            DataLoader(train, fit.getint("batch_size"), shuffle=True, drop_last=True), DataLoader(valid, fit.getint("batch_size"))
        )
        model = Picker(fit.getint("width"))
        optimizer = torch.optim.AdamW(model.parameters(), fit.getfloat("lr"))
        model, optimizer = fabric.setup(model, optimizer)
        batches, average = endless(train_loader), None
        began = time.perf_counter()
        for step in range(1, steps + 1):
            wave, ahead = next(batches)
            scores = model(wave)
            loss = -(soft_targets(ahead, wave.shape[-1]) * scores.log_softmax(-1)).sum(-1).mean()
            fabric.backward(loss)
            fabric.clip_gradients(model, optimizer, max_norm=fit.getfloat("clip"))
            optimizer.step()
            optimizer.zero_grad()
            value = loss.item()
            average = value if average is None else 0.95 * average + 0.05 * value
            if step % fit.getint("log_every") == 0:
                fabric.print(f"step {step}  loss {value:.4f}  average {average:.4f}")
            if step % fit.getint("evaluate_every") == 0:
                fabric.print(f"step {step}  off by {mean_error(fabric, model, valid_loader) / 100:.2f} s")
                fabric.save(Path(folder) / "picker.ckpt", {"model": model, "optimizer": optimizer, "step": step})
        print(f"{step} steps in {time.perf_counter() - began:.2f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
