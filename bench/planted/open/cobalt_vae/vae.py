import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, latent: int, base: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, base, 4, 2, 1),
            nn.GELU(),
            nn.Conv2d(base, base * 2, 4, 2, 1),
            nn.GELU(),
            nn.Conv2d(base * 2, base * 3, 4, 2, 1),
            nn.GELU(),
            nn.Flatten(),
        )
        self.mean, self.logvar = nn.Linear(base * 48, latent), nn.Linear(base * 48, latent)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.logvar(h).clamp(-8, 8)


class Decoder(nn.Module):
    def __init__(self, latent: int, base: int):
        super().__init__()
        self.base = base
        self.stem = nn.Linear(latent, base * 48)
        self.body = nn.Sequential(
            nn.ConvTranspose2d(base * 3, base * 2, 4, 2, 1),
            nn.GELU(),
            nn.ConvTranspose2d(base * 2, base, 4, 2, 1),
            nn.GELU(),
            nn.ConvTranspose2d(base, 1, 4, 2, 1),
        )

    def forward(self, z):
        return self.body(self.stem(z).view(-1, self.base * 3, 4, 4))


class TileVAE(L.LightningModule):
    def __init__(self, latent: int = 16, base: int = 32, lr: float = 1e-3, beta: float = 0.5, anneal: int = 200):
        super().__init__()
        self.save_hyperparameters()
        self.encoder, self.decoder = Encoder(latent, base), Decoder(latent, base)
        self.last = float("nan")

    def elbo(self, x):
        mean, logvar = self.encoder(x)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        fit = F.binary_cross_entropy_with_logits(self.decoder(z), x, reduction="none").sum((1, 2, 3)).mean()
        kl = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean()
        return fit, kl

    def training_step(self, batch, index):
        fit, kl = self.elbo(batch[0])
        weight = self.hparams.beta * min(1.0, self.global_step / self.hparams.anneal)
        loss = (fit + weight * kl) / batch[0][0].numel()
        self.last = loss.item()
        if index % 5 == 0:
            print(f"step {self.global_step} elbo {self.last:.5f} kl {kl.item():.3f}", flush=True)
        return loss

    def validation_step(self, batch, index):
        fit, kl = self.elbo(batch[0])
        self.log("val_elbo", fit + kl, batch_size=len(batch[0]))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, fused=True)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)}
