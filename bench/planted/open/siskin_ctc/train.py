"""Syllable transcription of siskin song with CTC: trend-free filter bank features, a conv encoder, greedy decoding now and then."""

import os

import torch
from corpus import SYLLABLES, SongCorpus
from engine import Engine, Hook
from frontend import FrontEnd
from torch import nn

torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self, width, kernel, dilation):
        super().__init__()
        self.conv = nn.Conv1d(width, width, kernel, padding=dilation * (kernel // 2), dilation=dilation)
        self.norm = nn.GroupNorm(4, width)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x):
        return x + self.mix(torch.nn.functional.gelu(self.norm(self.conv(x))))


class SongModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.frontend = FrontEnd()
        self.stem = nn.Conv1d(self.frontend.channels, width, 5, stride=4, padding=2)
        self.blocks = nn.Sequential(*[Block(width, 5, d) for d in (1, 2)])
        self.head = nn.Conv1d(width, SYLLABLES + 1, 1)

    def forward(self, wave):
        h = self.blocks(self.stem(self.frontend(wave)))
        return self.head(h).permute(2, 0, 1).log_softmax(-1)


class Progress(Hook):
    """Says how it goes; flushes each line, because the job runs under a pipe."""

    def after_step(self, engine):
        if engine.step % 20 == 0:
            print(f"step {engine.step} loss {engine.mean_loss:.4f} lr {engine.optimizer.param_groups[0]['lr']:.2e}", flush=True)


class GreedyPeek(Hook):
    """Decodes one bird of the batch every 200 steps, to see that it is not all blanks."""

    def after_step(self, engine):
        if engine.step % 200:
            return
        best = engine.last_output[:, 0].argmax(-1).tolist()
        song = [s for i, s in enumerate(best) if s and (i == 0 or best[i - 1] != s)]
        print("   heard", "-".join(map(str, song[:16])), flush=True)


class Warmup(Hook):
    def __init__(self, steps, top):
        self.steps, self.top = steps, top

    def before_step(self, engine):
        for group in engine.optimizer.param_groups:
            group["lr"] = self.top * min(1.0, (engine.step + 1) / self.steps)


def main():
    torch.manual_seed(4)
    model = SongModel()
    ctc = nn.CTCLoss(zero_infinity=True)

    def criterion(logp, batch):
        lengths = torch.full((logp.shape[1],), logp.shape[0], dtype=torch.long)
        return ctc(logp, batch["song"], lengths, batch["song_length"])

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3, foreach=True)
    engine = Engine(model, criterion, optimizer, [Warmup(60, 1.5e-3), Progress(), GreedyPeek()])
    engine.fit(SongCorpus(batch_size=6), int(os.environ.get("PLANTED_STEPS", 800)))
    print(engine.summary())


if __name__ == "__main__":
    main()
