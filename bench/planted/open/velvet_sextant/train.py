import gc
import os
import time

import torch

from duel import AIR, Listener, Player, listen, please
from ocarina import Breath

BATCH, REPORT, KEEP = 640, 150, 400


def learn(rule, loss):
    rule.zero_grad()
    loss.backward()
    rule.step()
    return loss.detach()


@torch.no_grad()
def spread(player, breath):
    """How far apart the played tones lie; near zero when the player knows one tone only."""
    return torch.pdist(player(breath.air(64, AIR))).mean().item()


def main():
    torch.manual_seed(40)
    breath = Breath(6000, 40)
    player, listener = Player(), Listener()
    play = torch.optim.Adam(player.parameters(), 2e-4, betas=(0.5, 0.9))
    hear = torch.optim.Adam(listener.parameters(), 3e-4, betas=(0.5, 0.9))
    steps = int(os.environ.get("PLANTED_STEPS", 900))
    began = time.time()
    for step in range(1, steps + 1):
        with torch.no_grad():
            played = player(breath.air(BATCH, AIR))
        heard = learn(hear, listen(listener, breath.some(BATCH), played))
        listener.requires_grad_(False)
        loss = learn(play, please(listener, player(breath.air(BATCH, AIR))))
        listener.requires_grad_(True)
        if step % REPORT == 0:
            print(f"{step}: listener {heard.item():.4f}, player {loss.item():.4f}, spread {spread(player, breath):.3f}", flush=True)
        if step % KEEP == 0:
            torch.save(player.state_dict(), "player.pt")
            gc.collect()
    print(f"{steps} steps in {time.time() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
