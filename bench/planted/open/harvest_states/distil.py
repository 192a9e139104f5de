"""Distil a wide network into a narrow one."""

import argparse
import logging
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from events import Events
from fields import STATES, Feeder, images
from keeping import Best
from nets import ConvNet, Distillation

log = logging.getLogger("harvest")
events = Events()


@dataclass
class State:
    teacher: ConvNet
    student: ConvNet
    optimizer: torch.optim.Optimizer
    best: Best
    valid: tuple[torch.Tensor, torch.Tensor]
    step: int = 0
    loss: float = 0.0


@events.on("step", every=10)
def report(state: State) -> None:
    log.info("step %d loss %.4f", state.step, state.loss)


@events.on("step")
def remember(state: State) -> None:
    if state.best.improved(state.loss, state.step):
        state.best.keep(state.step, student=state.student, optimizer=state.optimizer)


@events.on("step", every=50)
@torch.no_grad()
def validate(state: State) -> None:
    pixels, labels = state.valid
    state.student.eval()
    log.info("validation accuracy %.3f", (state.student(pixels)[0].argmax(1) == labels).float().mean())
    state.student.train()


@events.on("end")
def farewell(state: State) -> None:
    log.info("lowest loss %.4f", state.best.lowest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--teacher-width", type=int, default=48)
    parser.add_argument("--student-width", type=int, default=20)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "340")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(14)
    feeder = Feeder(*images(options.images, options.size, 1), options.batch_size, 14)
    teacher = ConvNet(options.teacher_width, 4, STATES).eval().requires_grad_(False)
    student = ConvNet(options.student_width, 3, STATES)
    optimizer = torch.optim.AdamW(student.parameters(), lr=options.lr)
    criterion = Distillation(temperature=3.0, soft=0.5, similar=1.0)
    with tempfile.TemporaryDirectory() as folder:
        state = State(teacher, student, optimizer, Best(Path(folder) / "best.pt.gz"), images(64, options.size, 2))
        began = time.perf_counter()
        for pixels, labels in feeder:
            with torch.no_grad():
                target = teacher(pixels)
            loss = criterion(student(pixels), target, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            state.step, state.loss = state.step + 1, loss.item()
            events.fire("step", state)
            if state.step == options.steps:
                break
        events.fire("end", state)
        print(f"{state.step} steps in {time.perf_counter() - began:.2f}s, loss {state.loss:.6f}")


if __name__ == "__main__":
    main()
