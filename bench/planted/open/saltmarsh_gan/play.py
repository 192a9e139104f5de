"""Generator against critic on marsh patches: python play.py [--steps N ...]"""

import copy
import time

import torch
import torch.nn.functional as F

from diary import Diary
from marsh import Marsh
from players import Critic, Generator, follow
from recipe import Recipe, from_cli


class Game:
    def __init__(self, recipe: Recipe):
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        self.marsh = Marsh(1500, recipe.size, recipe.seed)
        self.generator = Generator(recipe.latent, recipe.width, recipe.size)
        self.critic = Critic(recipe.width, recipe.size)
        self.average = copy.deepcopy(self.generator).requires_grad_(False)
        self.g_optimizer = torch.optim.Adam(self.generator.parameters(), lr=recipe.g_lr, betas=(0.5, 0.99))
        self.d_optimizer = torch.optim.Adam(self.critic.parameters(), lr=recipe.d_lr, betas=(0.5, 0.99))
        self.still = torch.randn(16, recipe.latent)
        self.diary = Diary(recipe.diary, recipe.diary_every)

    def noise(self):
        return torch.randn(self.recipe.batch, self.recipe.latent)

    def critic_move(self):
        real = self.marsh.draw(self.recipe.batch)
        with torch.no_grad():
            fake = self.generator(self.noise())
        loss = F.softplus(-self.critic(real)).mean() + F.softplus(self.critic(fake)).mean()
        self.d_optimizer.zero_grad()
        loss.backward()
        self.d_optimizer.step()
        return loss.item()

    def generator_move(self):
        loss = F.softplus(-self.critic(self.generator(self.noise()))).mean()
        self.g_optimizer.zero_grad()
        loss.backward()
        self.g_optimizer.step()
        follow(self.average, self.generator, self.recipe.ema)
        return loss.item()

    @torch.no_grad()
    def grid(self, step):
        tiles = self.average(self.still).squeeze(1)
        rows = [torch.cat(list(tiles[i : i + 4]), dim=1) for i in range(0, 16, 4)]
        picture = ((torch.cat(rows) + 1) * 127).byte().numpy()
        with open(f"grid_{step:06d}.pgm", "wb") as file:
            file.write(b"P5 %d %d 255\n" % picture.shape[::-1] + picture.tobytes())

    def run(self):
        began = time.time()
        d_value = g_value = float("nan")
        for step in range(1, self.recipe.steps + 1):
            d_value = self.critic_move()
            g_value = self.generator_move()
            scalars = {"critic": d_value, "generator": g_value}
            self.diary.page(step, scalars, {"g": self.generator, "d": self.critic})
            if step % 50 == 0:
                print(f"step {step} critic {d_value:.3f} generator {g_value:.3f}", flush=True)
                self.diary.trim()
            if step % self.recipe.grid_every == 0:
                self.grid(step)
        self.diary.close()
        print(f"{self.recipe.steps} steps in {time.time() - began:.3f}s, loss {d_value:.6f}")


if __name__ == "__main__":
    Game(from_cli()).run()
