"""Denoise with a critic: python train.py [--resume runs/epoch2.pt]"""

import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from nets import Critic, Denoiser
from signals import Fixed, Noisy, clean_signals

SEED = 77
EPOCHS = 5
BATCH = 16
WORKERS = 2
ADVERSARIAL = 0.05


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)


def critic_loss(critic, noisy, fake, real):
    on_real = critic(noisy, real)
    on_fake = critic(noisy, fake)
    return F.binary_cross_entropy_with_logits(on_real, torch.ones_like(on_real)) + F.binary_cross_entropy_with_logits(
        on_fake, torch.zeros_like(on_fake)
    )


def denoiser_loss(critic, noisy, fake, real):
    verdict = critic(noisy, fake)
    adversarial = F.binary_cross_entropy_with_logits(verdict, torch.ones_like(verdict))
    return F.mse_loss(fake, real) + ADVERSARIAL * adversarial


def validate(denoiser, dataset):
    errors = []
    for noisy, clean in DataLoader(dataset, batch_size=1, generator=torch.Generator()):
        errors.append(F.mse_loss(denoiser(noisy), clean).item())
    return sum(errors) / len(errors)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    os.makedirs("runs", exist_ok=True)
    train_set = Noisy(clean_signals(512, seed=31), level=0.4)
    val_set = Fixed(clean_signals(96, seed=32), level=0.4, seed=33)

    denoiser, critic = Denoiser(), Critic()
    opt_d = torch.optim.Adam(denoiser.parameters(), lr=2e-3)
    opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.99))
    sched_d = torch.optim.lr_scheduler.CosineAnnealingLR(opt_d, T_max=EPOCHS)
    sched_c = torch.optim.lr_scheduler.CosineAnnealingLR(opt_c, T_max=EPOCHS)
    parts = {"denoiser": denoiser, "critic": critic, "opt_d": opt_d, "opt_c": opt_c, "sched_d": sched_d, "sched_c": sched_c}
    first = 0
    if sys.argv[1:2] == ["--resume"]:
        saved = torch.load(sys.argv[2])
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        torch.set_rng_state(saved["rng"])
        first = saved["epoch"]

    smooth = None
    loader = DataLoader(train_set, BATCH, shuffle=True, num_workers=WORKERS, worker_init_fn=seed_worker)
    for epoch in range(first, EPOCHS):
        for noisy, clean in loader:
            fake = denoiser(noisy)
            opt_c.zero_grad()
            loss_c = critic_loss(critic, noisy, fake.detach(), clean)
            loss_c.backward()
            opt_c.step()

            opt_d.zero_grad()
            loss_d = denoiser_loss(critic, noisy, fake, clean)
            loss_d.backward()
            opt_d.step()
            value = loss_d.item()
            smooth = value if smooth is None else 0.98 * smooth + 0.02 * value
        sched_d.step()
        sched_c.step()
        score = validate(denoiser, val_set)
        with open("runs/scores.txt", "a") as f:
            f.write(f"{epoch + 1} {score:.6f}\n")
        print(f"epoch {epoch + 1}: smoothed {smooth:.3f}", flush=True)
        saved = {name: part.state_dict() for name, part in parts.items()}
        saved["rng"] = torch.get_rng_state()
        saved["epoch"] = epoch + 1
        torch.save(saved, f"runs/epoch{epoch + 1}.pt")


if __name__ == "__main__":
    main()
