"""Name the tone of each frame as it comes in."""

import os
import sys
from pathlib import Path

import torch
import yaml
from engine import Engine
from frames import Recordings
from network import Listener


def add_hooks(engine: Engine, held_out: Recordings, report: int, check: int) -> None:
    norms: list[float] = []

    @engine.on("gradients")
    def clip(engine: Engine) -> None:
        norms.append(torch.nn.utils.clip_grad_norm_(engine.model.parameters(), 1.0).item())

    @engine.on("step", every=report)
    def say(engine: Engine) -> None:
        print(f"step {engine.step} loss {engine.loss:.4f} gradient {sum(norms) / len(norms):.3f}", flush=True)
        norms.clear()

    @engine.on("step", every=check)
    @torch.no_grad()
    def listen(engine: Engine) -> None:
        engine.model.eval()
        right = (engine.model(held_out.energies).argmax(-1) == held_out.labels).float().mean().item()
        engine.model.train()
        print(f"step {engine.step} right {right:.4f}", flush=True)

    @engine.on("end")
    def total(engine: Engine) -> None:
        print(f"{engine.step} steps in {engine.seconds:.2f}s, loss {engine.loss:.6f}")


def main(path: Path) -> None:
    config = yaml.safe_load(path.read_text())
    data, sizes, plan = config["data"], config["model"], config["train"]
    steps = int(os.environ.get("PLANTED_STEPS", plan["steps"]))
    torch.manual_seed(plan["seed"])
    shape = data["frames"], data["bands"], data["tones"]
    train, held_out = Recordings(data["clips"], *shape, plan["seed"]), Recordings(data["held_out"], *shape, plan["seed"] + 1)
    model = Listener(data["bands"], data["tones"], **sizes)
    engine = Engine(model, torch.optim.AdamW(model.parameters(), plan["rate"]), train.batches(plan["batch"]))
    add_hooks(engine, held_out, plan["report"], plan["check"])
    engine.run(steps)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "config.yaml"))
