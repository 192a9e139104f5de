import time

import torch


class Callback:
    def on_step(self, trainer, facts): ...


class History(Callback):
    def __init__(self, log):
        self.log = log

    def on_step(self, trainer, facts):
        self.log.info("step %d", trainer.step, extra=facts)


class Beat(Callback):
    """A line on the screen now and then."""

    def __init__(self, every):
        self.every, self.mean = every, 0.0

    def on_step(self, trainer, facts):
        self.mean += (facts["critic"] - self.mean) * 0.05
        if trainer.step % self.every == 0:
            print(f"{trainer.step}: critic {self.mean:.4f}", flush=True)


class Shadow(Callback):
    """Averaged generator for the samples."""

    def __init__(self, generator, decay=0.995):
        self.live, self.decay = list(generator.parameters()), decay
        self.shadow = [p.detach().clone() for p in self.live]

    @torch.no_grad()
    def on_step(self, trainer, facts):
        for slow, fast in zip(self.shadow, self.live):
            slow.lerp_(fast, 1 - self.decay)


class GanTrainer:
    def __init__(self, generator, critic, sample, latent, batch, ratio=2, callbacks=()):
        self.generator, self.critic, self.sample = generator, critic, sample
        self.latent, self.batch, self.ratio, self.callbacks = latent, batch, ratio, callbacks
        self.g_opt = torch.optim.Adam(generator.parameters(), 2e-4, betas=(0.0, 0.9))
        self.c_opt = torch.optim.Adam(critic.parameters(), 4e-4, betas=(0.0, 0.9))
        self.step = 0

    def noise(self):
        return torch.randn(self.batch, self.latent)

    def penalty(self, real, fake):
        mix = torch.rand(len(real), 1)
        point = (mix * real + (1 - mix) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(self.critic(point).sum(), point, create_graph=True)
        return (slope.norm(dim=1) - 1).square().mean()

    def critic_step(self):
        real = self.sample(self.batch)
        with torch.no_grad():
            fake = self.generator(self.noise())
        loss = self.critic(fake).mean() - self.critic(real).mean() + 5.0 * self.penalty(real, fake)
        self.c_opt.zero_grad()
        loss.backward()
        self.c_opt.step()
        return loss.item()

    def generator_step(self):
        fake = self.generator(self.noise())
        loss = -self.critic(fake).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        return loss.item(), fake

    def fit(self, steps):
        began = time.perf_counter()
        for self.step in range(1, steps + 1):
            critic = [self.critic_step() for _ in range(self.ratio)]
            generator, fake = self.generator_step()
            facts = {"critic": sum(critic) / len(critic), "generator": generator, "ratio": self.ratio, "spread": fake}
            for callback in self.callbacks:
                callback.on_step(self, facts)
        return time.perf_counter() - began, critic[-1]
