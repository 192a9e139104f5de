import torch
import torch.nn.functional as F
from torch import nn


class VectorQuantizer(nn.Module):
    """Codebook kept by exponential moving averages (van den Oord et al., 2017, appendix A.1)."""

    def __init__(self, codes, dim, decay=0.99, eps=1e-5):
        super().__init__()
        self.codes, self.decay, self.eps = codes, decay, eps
        self.register_buffer("codebook", torch.randn(codes, dim) * 0.1)
        self.register_buffer("cluster_size", torch.ones(codes))
        self.register_buffer("cluster_sum", self.codebook.clone())
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def start_from(self, flat):
        pick = torch.randperm(flat.size(0))[: self.codes]
        self.codebook.copy_(flat[pick] + 1e-3 * torch.randn_like(self.codebook))
        self.cluster_sum.copy_(self.codebook)
        self.ready.fill_(True)

    def forward(self, z):
        flat = z.transpose(1, 2).reshape(-1, z.size(1))  # (batch * time, dim)
        if self.training and not self.ready:
            self.start_from(flat)
        distances = ((flat.unsqueeze(1) - self.codebook.unsqueeze(0)) ** 2).sum(-1)
        index = distances.argmin(1)
        one_hot = F.one_hot(index, self.codes).float()
        quantized = (one_hot @ self.codebook).view(z.size(0), z.size(2), -1).transpose(1, 2)

        if self.training:
            with torch.no_grad():
                self.cluster_size.mul_(self.decay).add_(one_hot.sum(0), alpha=1 - self.decay)
                self.cluster_sum.mul_(self.decay).add_(one_hot.t() @ flat, alpha=1 - self.decay)
                n = self.cluster_size.sum()
                size = (self.cluster_size + self.eps) / (n + self.codes * self.eps) * n
                self.codebook.copy_(self.cluster_sum / size.unsqueeze(1))

        commitment = F.mse_loss(z, quantized.detach())
        straight_through = z + (quantized - z).detach()
        usage = one_hot.mean(0)
        perplexity = torch.exp(-(usage * (usage + 1e-10).log()).sum())
        return straight_through, commitment, perplexity


class Residual(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.body = nn.Sequential(
            nn.ELU(), nn.Conv1d(channels, channels // 2, 3, padding=dilation, dilation=dilation), nn.ELU(), nn.Conv1d(channels // 2, channels, 1)
        )

    def forward(self, x):
        return x + self.body(x)


class EngineVQVAE(nn.Module):
    def __init__(self, channels=48, dim=64, codes=512):
        super().__init__()
        c = channels
        self.encoder = nn.Sequential(
            nn.Conv1d(1, c, 16, stride=8, padding=4), Residual(c, 1), nn.ELU(),
            nn.Conv1d(c, 2 * c, 8, stride=4, padding=2), Residual(2 * c, 1), Residual(2 * c, 3), nn.ELU(),
            nn.Conv1d(2 * c, dim, 4, stride=2, padding=1),
        )
        self.quantizer = VectorQuantizer(codes, dim)
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(dim, 2 * c, 4, stride=2, padding=1), Residual(2 * c, 3), Residual(2 * c, 1), nn.ELU(),
            nn.ConvTranspose1d(2 * c, c, 8, stride=4, padding=2), Residual(c, 1), nn.ELU(),
            nn.ConvTranspose1d(c, 1, 16, stride=8, padding=4),
        )

    def forward(self, sound):
        quantized, commitment, perplexity = self.quantizer(self.encoder(sound))
        return self.decoder(quantized), commitment, perplexity
