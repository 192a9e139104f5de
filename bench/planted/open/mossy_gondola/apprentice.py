"""The master is the apprentice's slow average; the apprentice learns from the rows and from the master's guesses at the same, misread rows."""

import os
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from maker import Maker
from pricking import STITCHES, LaceMaker, Pillow

PINS, BATCH, STOCK, TRUST, HEAT = 64, 24, 576, 0.6, 2.0
STEPS = int(os.environ.get("PLANTED_STEPS", 360))


def likeness(guess, goal):
    return (
        F.kl_div(F.log_softmax(guess / HEAT, -1), F.log_softmax(goal / HEAT, -1), log_target=True, reduction="none").sum(-1).mean()
        * HEAT**2
    )


@torch.inference_mode()
def examine(model, rows):
    model.eval()
    miss = [F.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten()) for part in rows.split(64)]
    model.train()
    return torch.stack(miss).mean().item()


def main():
    torch.manual_seed(21)
    torch.set_num_threads(1)
    lace = LaceMaker(4, PINS)
    pillow, exam = Pillow(lace.rows(STOCK), BATCH, 0.03, seed=6), lace.rows(128)
    master = Maker(128, 2, 4, PINS).requires_grad_(False).eval()
    apprentice = Maker(128, 2, 4, PINS)
    master.load_state_dict(apprentice.state_dict())
    optimizer = torch.optim.AdamW(apprentice.parameters(), 1e-3, weight_decay=0.01)
    shelf = Path("shelf")
    shelf.mkdir(exist_ok=True)
    taught, guide = list(apprentice.parameters()), list(master.parameters())
    step, epoch, recent, began = 0, 0, [], time.perf_counter()
    while step < STEPS:
        epoch += 1
        for worn, rows in pillow:
            with torch.no_grad():
                goal = master(worn[:, :-1])
            guess = apprentice(worn[:, :-1])
            plain = F.cross_entropy(guess.flatten(0, 1), rows[:, 1:].flatten())
            loss = plain + TRUST * likeness(guess, goal)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(taught, 1.0)
            optimizer.step()
            torch._foreach_lerp_(guide, [p.detach() for p in taught], 0.02)
            recent.append(loss.item())
            step += 1
            if step == STEPS:
                break
        if epoch % 4 == 0:
            score = examine(apprentice, exam)
            print(
                f"epoch {epoch}: loss {sum(recent) / len(recent):.4f}, exam {score:.4f} of {torch.tensor(STITCHES).log().item():.4f}",
                flush=True,
            )
            torch.save({"epoch": epoch, "apprentice": apprentice.state_dict(), "score": score}, shelf / "apprentice.pt")
            recent.clear()
    print(f"{step} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
