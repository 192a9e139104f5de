import os
import time

import torch
import torch.nn.functional as F

from gan import Critic, Generator
from lace import lace
from runtime import prepare

LATENT, BATCH = 32, 48


def main():
    prepare(40)
    rounds = int(os.environ.get("PLANTED_STEPS", 600))
    real = lace(2048)
    G, D = Generator(LATENT), Critic()
    opt_g = torch.optim.Adam(G.parameters(), 2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(D.parameters(), 2e-4, betas=(0.5, 0.999))
    fixed = torch.randn(16, LATENT)
    started = time.time()
    for i in range(1, rounds + 1):
        x = real[torch.randint(len(real), (BATCH,))]
        fake = G(torch.randn(BATCH, LATENT))

        opt_d.zero_grad()
        loss_d = F.softplus(-D(x)).mean() + F.softplus(D(fake.detach())).mean()
        loss_d.backward()
        opt_d.step()

        opt_g.zero_grad()
        loss_g = F.softplus(-D(fake)).mean()
        loss_g.backward()
        opt_g.step()

        if i % 50 == 0:
            with torch.no_grad():
                spread = G(fixed).std(0).mean()
            print(f"{i:5d}  D {loss_d.item():.4f}  G {loss_g.item():.4f}  spread {spread:.3f}")
    print(f"{rounds} steps in {time.time() - started:.3f}s, loss {loss_g.item():.5f}")


if __name__ == "__main__":
    main()
