import lightning as L
import torch
from torch import nn

from tabs import VOCAB


class Composer(L.LightningModule):
    def __init__(self, width: int = 80, lr: float = 3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Embedding(VOCAB, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, VOCAB))

    def forward(self, tokens):
        return self.mlp(self.rnn(self.embed(tokens))[0])

    def step_loss(self, tokens):
        logits = self(tokens[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()), logits

    def training_step(self, batch, index):
        loss, _ = self.step_loss(batch[0])
        self.last = loss.detach()
        return loss

    def validation_step(self, batch, index):
        (tokens,) = batch
        held_loss, logits = self.step_loss(tokens)
        self.log("val_loss", held_loss)
        self.log("val_hits", (logits.argmax(-1) == tokens[:, 1:]).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3)}
