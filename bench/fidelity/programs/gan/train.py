# Generate heartbeat-like curves with a critic and a gradient penalty. No seed is set: every run draws other weights.
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH, LATENT = 48, 12
EPOCHS, BATCH, CRITIC_STEPS = 12, 64, 2
EVALUATE_EVERY, SAVE_EVERY = 20, 4


def make_curves(count):
    rng = np.random.default_rng(77)
    t = np.linspace(0, 1, LENGTH)
    curves = []
    for _ in range(count):
        centre, width = rng.uniform(0.3, 0.7), rng.uniform(0.03, 0.1)
        curve = np.exp(-(((t - centre) / width) ** 2)) - 0.4 * np.exp(-(((t - centre - 0.15) / 0.05) ** 2))
        curves.append(curve * rng.uniform(0.7, 1.3) + 0.1 * np.sin(2 * np.pi * (t + rng.random())))
    return torch.tensor(np.stack(curves), dtype=torch.float32)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(LATENT, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, LENGTH)
        )

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 12, 5, 2, 2), nn.LeakyReLU(0.2), nn.Conv1d(12, 24, 5, 2, 2), nn.LeakyReLU(0.2))
        self.head = nn.Linear(24 * LENGTH // 4, 1)

    def forward(self, x):
        return self.head(self.conv(x[:, None]).flatten(1)).squeeze(1)


def gradient_penalty(critic, real, fake):
    mix = torch.rand(real.shape[0], 1)
    middle = (mix * real + (1 - mix) * fake).requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(middle).sum(), middle, create_graph=True)
    return ((slope.norm(2, dim=1) - 1) ** 2).mean()


def score(generator, held_out, noise):
    """Distance of the first two moments and of the spectrum; the generator uses its running statistics."""
    generator.eval()
    made = torch.cat([generator(z[None]) for z in noise]).detach()
    generator.train()
    moments = F.mse_loss(made.mean(0), held_out.mean(0)) + F.mse_loss(made.std(0), held_out.std(0))
    spectrum = F.l1_loss(torch.fft.rfft(made).abs().mean(0), torch.fft.rfft(held_out).abs().mean(0))
    return moments.item(), spectrum.item()


curves = make_curves(760)
held_out, curves = curves[:160], curves[160:]
eval_noise = torch.randn(160, LATENT, generator=torch.Generator().manual_seed(5))
generator, critic = Generator(), Critic()
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_c = torch.optim.AdamW(critic.parameters(), lr=1e-3, betas=(0.5, 0.9), weight_decay=0.02)
sched_g = torch.optim.lr_scheduler.MultiStepLR(opt_g, [25, 45], gamma=0.5)
sched_c = torch.optim.lr_scheduler.MultiStepLR(opt_c, [50, 90], gamma=0.5)
step, epoch = 0, 0
if len(sys.argv) > 1:
    state = torch.load(sys.argv[1], weights_only=False)
    for name, thing in state["things"].items():
        globals()[name].load_state_dict(thing)
    step, epoch = state["step"], state["epoch"]
    torch.set_rng_state(state["rng"])
os.makedirs("gan_out", exist_ok=True)

while epoch < EPOCHS:
    order = torch.randperm(len(curves))
    for start in range(0, len(curves), BATCH):
        real = curves[order[start : start + BATCH]]
        count = real.shape[0]

        with torch.no_grad():
            fake = generator(torch.randn(count, LATENT))
        real_score, fake_score = critic(real), critic(fake)
        critic_loss = F.relu(1 - real_score).mean() + F.relu(1 + fake_score).mean()
        critic_loss = critic_loss + 5.0 * gradient_penalty(critic, real, fake)
        opt_c.zero_grad()
        critic_loss.backward()
        opt_c.step()
        sched_c.step()
        step += 1

        if step % CRITIC_STEPS == 0:
            made = generator(torch.randn(count, LATENT))
            generator_loss = -critic(made).mean() + 0.1 * F.mse_loss(made.mean(0), real.mean(0))
            opt_g.zero_grad()
            generator_loss.backward()
            opt_g.step()
            sched_g.step()
            if step % 10 == 0:
                print(f"{step}: critic {critic_loss.item():.4f} generator {generator_loss.item():.4f}", flush=True)
        if step % EVALUATE_EVERY == 0:
            moments, spectrum = score(generator, held_out, eval_noise)
            print(f"{step}: moments {moments:.5f} spectrum {spectrum:.4f}", flush=True)
    epoch += 1
    if epoch % SAVE_EVERY == 0:
        things = {n: globals()[n].state_dict() for n in ("generator", "critic", "opt_g", "opt_c", "sched_g", "sched_c")}
        torch.save({"things": things, "step": step, "epoch": epoch, "rng": torch.get_rng_state()}, f"gan_out/{epoch}.pt")
