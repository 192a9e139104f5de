"""Train the painter against the critic."""

import configparser
import os
import tempfile
import time
from pathlib import Path

import torch
from halos import Halos
from kron import Kron
from nets import Critic, Painter, Shadow
from torch.nn.functional import softplus


def sliced_distance(a: torch.Tensor, b: torch.Tensor, directions: int = 64) -> float:
    """How far two sets of curves are apart, along random directions."""
    axes = torch.randn(a.shape[1], directions, generator=torch.Generator().manual_seed(0))
    axes /= axes.norm(dim=0)
    return ((a @ axes).sort(dim=0).values - (b @ axes).sort(dim=0).values).abs().mean().item()


@torch.no_grad()
def judge(painter: Painter, shadow: Shadow, points: int, seed: int) -> float:
    z = torch.randn(512, painter.noise, generator=torch.Generator().manual_seed(seed))
    fake = torch.func.functional_call(painter, shadow.weights, (z,))
    return sliced_distance(Halos(points, seed).draw(512), fake)


def critic_loss(critic: Critic, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    on_real, on_fake = critic(torch.cat([real, fake])).chunk(2)
    return softplus(-on_real).mean() + softplus(on_fake).mean()


def main() -> None:
    config = configparser.ConfigParser()
    config.read(Path(__file__).with_name("halo.ini"))
    data, nets, run = config["data"], config["nets"], config["run"]
    steps, batch = int(os.environ.get("PLANTED_STEPS", run["steps"])), run.getint("batch")
    torch.manual_seed(run.getint("seed"))
    rng = torch.Generator().manual_seed(run.getint("seed"))

    halos = Halos(data.getint("points"), data.getint("seed"))
    painter = Painter(nets.getint("noise"), nets.getint("width"), data.getint("points"))
    critic = Critic(data.getint("points"), nets.getint("width"))
    shadow = Shadow(painter, nets.getfloat("keep"))
    paint, doubt = Kron(painter.parameters(), config["painter"].getfloat("lr")), Kron(critic.parameters(), config["critic"].getfloat("lr"))

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        for step in range(1, steps + 1):
            for _ in range(config["critic"].getint("rounds")):
                with torch.no_grad():
                    fake = painter(torch.randn(batch, painter.noise, generator=rng))
                doubt.zero_grad()
                against = critic_loss(critic, halos.draw(batch), fake)
                against.backward()
                doubt.step()

            paint.zero_grad()
            critic.requires_grad_(False)
            loss = softplus(-critic(painter(torch.randn(batch, painter.noise, generator=rng)))).mean()
            loss.backward()
            critic.requires_grad_(True)
            paint.step()
            shadow.follow()

            if step % run.getint("report_every") == 0:
                print(f"{step} painter {loss.item():.4f} critic {against.item():.4f}", flush=True)
            if step % run.getint("judge_every") == 0:
                print(f"{step} distance {judge(painter, shadow, len(halos.radius), 99):.4f}", flush=True)
                torch.save({"painter": painter.state_dict(), "critic": critic.state_dict()}, Path(folder) / "last.pt")
        seconds = time.perf_counter() - began
    print(f"{steps} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
