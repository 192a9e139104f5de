"""Made-up choral recordings: log-frequency spectra of four voices, each a little off."""

from dataclasses import dataclass

import torch


@dataclass
class Piece:
    title: str
    tonic: int  # bins above the lowest C that the organist gave
    chords: torch.Tensor


class Repertoire:
    PARTIALS = torch.tensor([0.0, 60.0, 95.1, 120.0, 139.3])

    def __init__(self, settings):
        self.s, self.g = settings, torch.Generator().manual_seed(settings.seed)
        tonics = torch.randperm(118, generator=self.g)[: settings.pieces].tolist()
        self.pieces = [Piece(f"motet {n}", tonic, self._chords()) for n, tonic in enumerate(tonics)]

    def _chords(self):
        steps = torch.randint(0, 12, (16, self.s.voices), generator=self.g).float() * 5
        return steps + torch.arange(self.s.voices) * 45

    def sing(self, piece):
        """Frames and how far each voice strayed, in bins."""
        n, g = self.s.frames, self.g
        chord = piece.chords[torch.randint(0, 16, (n,), generator=g)]
        stray = torch.randn(n, self.s.voices, generator=g).clamp(-2, 2)
        centre = (chord + stray + piece.tonic)[:, :, None] + self.PARTIALS
        where = centre.clamp(0, self.s.bins - 2).flatten(1)
        low = where.floor().long()
        part = where - low
        loud = (0.6 ** torch.arange(5.0)).repeat(self.s.voices).expand(n, -1)
        frames = 0.02 * torch.rand(n, self.s.bins, generator=g)
        frames.scatter_add_(1, low, loud * (1 - part))
        frames.scatter_add_(1, low + 1, loud * part)
        return frames, stray
