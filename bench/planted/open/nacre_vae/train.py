"""Ladder VAE for shell outlines (polar radii): three latent layers, free bits, warm-up of the KL."""

import os

import torch
from ladder import LadderVAE
from loop import epochs
from outlines import make_outlines
from telemetry.throughput import Throughput
from telemetry.gallery import Gallery

torch.set_num_threads(1)


def objective(model, batch, beta):
    recon, kls = model(batch)
    fit = 0.5 * ((recon - batch) ** 2).sum(1).mean() * 20
    kl = sum(torch.clamp(k.mean(0), min=0.02).sum() for k in kls)
    return (fit + beta * kl) / batch.shape[1]


def main():
    torch.manual_seed(6)
    steps = int(os.environ.get("PLANTED_STEPS", 2200))
    data = make_outlines()
    model = LadderVAE(data.shape[1])
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    meter, gallery = Throughput(), Gallery("gallery")
    smooth = None
    with meter.running(model):
        for step, batch in epochs(data, 64, steps):
            loss = objective(model, batch, min(1.0, step / 300))
            opt.zero_grad()
            loss.backward()
            opt.step()
            smooth = loss.item() if smooth is None else 0.97 * smooth + 0.03 * loss.item()
            meter.tick(len(batch))
            if step % 100 == 0:
                print(f"step {step} loss {smooth:.4f} {meter}", flush=True)
                gallery.hang(step, model)
    print(f"{steps} steps in {meter.seconds:.2f}s, loss {smooth:.4f}")


if __name__ == "__main__":
    main()
