"""Train the denoiser in a functional style: weights go in, weights come out."""

import json
import os
import tempfile
import time
from pathlib import Path

import torch
from cloth import Cloth
from diary import Diary
from net import Denoiser
from rules import Weights, blend, clipped, sign_step, total_norm
from torch.func import functional_call, grad_and_value


def noise_to(clean: torch.Tensor, noise: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
    angle = level[:, None, None] * torch.pi / 2
    return clean * angle.cos() + noise * angle.sin()


def make_loss(net: Denoiser):
    def loss_of(weights: Weights, clean: torch.Tensor, noise: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        told = functional_call(net, weights, (noise_to(clean, noise, level), level))
        return (told - clean).square().mean()

    return loss_of


@torch.no_grad()
def sample(net: Denoiser, weights: Weights, shape: tuple[int, ...], stages: int, rng: torch.Generator) -> torch.Tensor:
    """From noise to cloth in a few stages."""
    noise = torch.randn(shape, generator=rng)
    levels = torch.linspace(1, 0, stages + 1)
    image = noise
    for now, after in zip(levels[:-1], levels[1:], strict=True):
        clean = functional_call(net, weights, (image, now.expand(shape[0])))
        image = noise_to(clean, noise, after.expand(shape[0]))
    return image


def main() -> None:
    config = json.loads(Path(__file__).with_name("weave.json").read_text())
    train = config["train"]
    steps = int(os.environ.get("PLANTED_STEPS", train["steps"]))
    torch.manual_seed(config["seed"])
    rng = torch.Generator().manual_seed(config["seed"])
    cloth = Cloth(**config["cloth"])
    patches, values = (cloth.side // cloth.patch) ** 2, cloth.patch**2
    net = Denoiser(values, patches, **config["net"])
    weights: Weights = {name: value.detach().clone() for name, value in net.named_parameters()}
    motion: Weights = {name: torch.zeros_like(value) for name, value in weights.items()}
    shadow = dict(weights)
    gradient = grad_and_value(make_loss(net))

    with tempfile.TemporaryDirectory() as folder:
        diary = Diary(Path(folder) / "diary.jsonl", config)
        began = time.perf_counter()
        for step in range(1, steps + 1):
            clean = cloth.batch(train["batch"])
            noise = torch.randn(clean.shape, generator=rng)
            level = torch.rand(len(clean), generator=rng)
            grads, loss = gradient(weights, clean, noise, level)
            norm = total_norm(grads)
            lr = train["lr"] * min(1.0, step / train["warmup"])
            weights, motion = sign_step(weights, motion, clipped(grads, norm, train["clip"]), lr, train["beta"], train["weight_decay"])
            shadow = blend(shadow, weights, config["shadow"])
            diary.write(step=step, loss=loss.item(), norm=norm.item(), lr=lr)
            if step % 10 == 0:
                print(f"{step} loss {diary.last('loss'):.5f} norm {diary.last('norm'):.4f}", flush=True)
            if step % config["sample"]["every"] == 0:
                made = sample(net, shadow, (config["sample"]["count"], patches, values), config["sample"]["stages"], rng)
                print(f"{step} sampled: mean {made.mean():.3f} sd {made.std():.3f}", flush=True)
            if step % config["keep_every"] == 0:
                torch.save({"weights": weights, "shadow": shadow, "step": step}, Path(folder) / "last.pt")
        seconds = time.perf_counter() - began
    print(f"{steps} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
