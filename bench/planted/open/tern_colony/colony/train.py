"""Train the colony: python -m colony.train [colony.toml]"""

import copy
import gc
import json
import os
import sys
import tempfile
import time
import tomllib
from collections import deque
from pathlib import Path

import torch
from torch.func import grad_and_value, vmap

from .birds import Ensemble, Pupil
from .flights import Flights

Tensors = dict[str, torch.Tensor]


def momentum_step(parameters: Tensors, speed: Tensors, gradient: Tensors, fit: dict) -> tuple[Tensors, Tensors]:
    """Nothing is changed in place: new parameters and a new speed."""
    speed = {name: fit["momentum"] * speed[name] + gradient[name] + fit["decay"] * value for name, value in parameters.items()}
    return {name: value - fit["lr"] * speed[name] for name, value in parameters.items()}, speed


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "colony.toml"
    config = tomllib.loads(path.read_text())
    fit, nest = config["fit"], config["nest"]
    steps = int(os.environ.get("PLANTED_STEPS", fit["steps"]))
    torch.manual_seed(config["seed"])
    ensemble, pupil = Ensemble(**config["members"]), Pupil(**config["pupil"])
    parameters, speed = ensemble.parameters, {name: torch.zeros_like(value) for name, value in ensemble.parameters.items()}
    teacher = vmap(grad_and_value(ensemble.loss), in_dims=(0, None, None))
    mean_of_members = vmap(ensemble.predict, in_dims=(0, None))
    optimizer = torch.optim.Adam(pupil.parameters(), fit["pupil_lr"])
    flights, ahead = Flights(nest["horizon"], config["seed"]), Flights(nest["horizon"], config["seed"] + 1)
    recent: deque[float] = deque(maxlen=20)
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log.jsonl", "w", encoding="utf-8") as log:
        began = time.perf_counter()
        for step in range(1, steps + 1):
            inputs, target = flights.draw(nest["batch_size"])
            gradient, losses = teacher(parameters, inputs, target)
            if not all(torch.isfinite(value).all() for value in gradient.values()):
                raise FloatingPointError(f"step {step}: a gradient is not finite")
            parameters, speed = momentum_step(parameters, speed, gradient, fit)

            with torch.no_grad():
                opinions = mean_of_members(parameters, inputs)
                agreed, spread = opinions.mean(0), opinions.std(0).mean(-1)
            guess, doubt = pupil(inputs)
            follow = torch.nn.functional.mse_loss(guess, agreed) + torch.nn.functional.mse_loss(doubt, spread)
            optimizer.zero_grad()
            follow.backward()
            optimizer.step()

            recent.append(follow.item())
            if step % fit["log_every"] == 0:
                figures = {"step": step, "members": losses.tolist(), "pupil": recent[-1], "recent": sum(recent) / len(recent)}
                log.write(json.dumps(figures) + "\n")
                log.flush()
            if step % fit["check_every"] == 0:
                inputs, target = ahead.draw(nest["batch_size"])
                with torch.no_grad():
                    error = (mean_of_members(parameters, inputs).mean(0) - target).square().mean().sqrt().item()
                print(f"step {step}: members {losses.mean().item():.5f}, pupil {recent[-1]:.5f}, ahead {error:.4f}", flush=True)
            if step % fit["save_every"] == 0:
                state = copy.deepcopy({"members": parameters, "pupil": pupil.state_dict(), "step": step})
                torch.save(state, Path(folder) / "colony.pt")
            if step % fit["sweep_every"] == 0:
                gc.collect()
        seconds = time.perf_counter() - began
    print(f"{steps} steps in {seconds:.2f}s, loss {losses.mean().item():.6f}")


if __name__ == "__main__":
    main()
