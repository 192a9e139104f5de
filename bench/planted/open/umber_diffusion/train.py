"""Denoising diffusion on pot profiles, v-prediction, averaged weights."""

import copy
import os
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

from pots import POINTS, sherds
from unet import UNet

STEPS_OF_NOISE = 200


class Schedule:
    def __init__(self, steps):
        angle = (torch.arange(1, steps + 1) / (steps + 1)) * torch.pi / 2
        self.signal, self.noise = angle.cos(), angle.sin()

    def mix(self, x, e, t):
        a, s = self.signal[t][:, None, None], self.noise[t][:, None, None]
        return a * x + s * e, a * e - s * x


class Averaged:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    def follow(self, model):
        for slow, fast in zip(self.model.parameters(), model.parameters()):
            slow.lerp_(fast.detach(), 1 - self.decay)


@torch.no_grad()
def draw(model, schedule, count=2, hops=6):
    x = torch.randn(count, 2, POINTS)
    for t in torch.linspace(STEPS_OF_NOISE - 1, 0, hops).long():
        v = model(x, t.expand(count))
        clean = schedule.signal[t] * x - schedule.noise[t] * v
        noise = schedule.noise[t] * x + schedule.signal[t] * v
        back = max(int(t) - STEPS_OF_NOISE // hops, 0)
        x = schedule.signal[back] * clean + schedule.noise[back] * noise
    return x


def main():
    torch.manual_seed(40)
    torch.set_num_threads(1)
    loader = DataLoader(TensorDataset(sherds(2400, 1)), batch_size=24, shuffle=True, drop_last=True)
    model, schedule = UNet(), Schedule(STEPS_OF_NOISE)
    shadow = Averaged(model, 0.995)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
    steps, done, began = int(os.environ.get("PLANTED_STEPS", 3000)), 0, time.perf_counter()
    buckets = torch.zeros(10)
    while done < steps:
        for (x,) in loader:
            t = torch.randint(STEPS_OF_NOISE, (len(x),))
            e = torch.randn_like(x)
            noisy, goal = schedule.mix(x, e, t)
            each = (model(noisy, t) - goal).square().mean((1, 2))
            loss = each.mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            shadow.follow(model)
            for bucket, value in zip((t // 20).tolist(), each.detach().tolist()):
                buckets[bucket] = 0.95 * buckets[bucket] + 0.05 * value
            done += 1
            if done % 50 == 0:
                sample = draw(shadow.model, schedule)
                print(
                    f"{done}: {loss.item():.4f}, by noise {[round(b, 3) for b in buckets.tolist()]}, drawn {sample.std().item():.3f}",
                    flush=True,
                )
            if done % 200 == 0:
                torch.save(shadow.model.state_dict(), "pots.pt")
            if done == steps:
                break
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
