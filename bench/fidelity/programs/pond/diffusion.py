"""The noise schedule, the training loss and the deterministic sampler."""
import torch
import torch.nn.functional as F


class Diffusion:
    def __init__(self, steps, low=1e-4, high=0.04, gamma=5.0):
        self.steps, self.low, self.high, self.gamma = steps, low, high, gamma

    def alpha_bar(self):
        betas = torch.linspace(self.low, self.high, self.steps, dtype=torch.float64)
        return torch.cumprod(1.0 - betas, 0).float()

    def weights(self):
        """min-SNR weights for predicting the noise."""
        kept = self.alpha_bar()
        snr = kept / (1 - kept)
        return snr.clamp(max=self.gamma) / snr

    def noisy(self, clean, t, noise):
        kept = self.alpha_bar()[t].view(-1, 1, 1, 1)
        return kept.sqrt() * clean + (1 - kept).sqrt() * noise

    def loss(self, model, clean, label, t, noise):
        predicted = model(self.noisy(clean, t, noise), t, label)
        error = F.mse_loss(predicted, noise, reduction="none").flatten(1).mean(1)
        return (self.weights()[t] * error).mean()

    @torch.no_grad()
    def sample(self, model, label, noise, count=8):
        kept = self.alpha_bar()
        times = torch.linspace(self.steps - 1, 0, count).long()
        x = noise
        for number, t in enumerate(times):
            guess = model(x, t.repeat(len(x)), label)
            clean = ((x - (1 - kept[t]).sqrt() * guess) / kept[t].sqrt()).clamp(-1.5, 1.5)
            after = kept[times[number + 1]] if number + 1 < count else torch.tensor(1.0)
            x = after.sqrt() * clean + (1 - after).sqrt() * guess
        return x
