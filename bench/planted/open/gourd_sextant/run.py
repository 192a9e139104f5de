import json
import os
import time
from pathlib import Path

import torch

from glaze import GlazeVAE
from hooks import Average, Clock, Report
from tiles import epochs, fire


def prepare(cfg):
    torch.manual_seed(cfg["seed"])
    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = cfg["compile"]["recompile_limit"]
    spectra = fire(**cfg["spectra"], seed=cfg["seed"])
    model = GlazeVAE(bands=cfg["spectra"]["bands"], **cfg["model"])
    return spectra, model, torch.compile(model, backend=cfg["compile"]["backend"])


def main():
    cfg = json.loads(Path("kiln.json").read_text())
    spectra, model, program = prepare(cfg)
    latent, batch = cfg["model"]["latent"], cfg["train"]["batch"]
    optimizer = torch.optim.Adam(model.parameters(), cfg["train"]["rate"])
    report = Report(cfg["report_every"])
    hooks = [Clock(), Average(model, cfg["keep"]), report]
    hooks[0].on_epoch(model, 0)
    program(spectra[:batch], torch.zeros(batch, latent)).backward()
    steps, step, began = int(os.environ.get("PLANTED_STEPS", cfg["train"]["steps"])), 0, time.perf_counter()
    for epoch, batches in enumerate(epochs(spectra, batch, torch.Generator().manual_seed(cfg["seed"]))):
        for hook in hooks:
            hook.on_epoch(model, epoch)
        for rows in batches[: steps - step]:
            optimizer.zero_grad()
            loss = program(rows, torch.randn(len(rows), latent))
            loss.backward()
            optimizer.step()
            step += 1
            report.add(loss.detach())
            for hook in hooks:
                hook.on_step(model, step)
        if step == steps:
            break
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
