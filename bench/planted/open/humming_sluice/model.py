import lightning as L
import torch
import torch.nn as nn


class QuantileForecaster(L.LightningModule):
    """GRU-cell decoder after a convolutional encoder of the past; the forecast of one hour feeds the next."""

    def __init__(self, n_features=6, hidden=64, quantiles=(0.1, 0.5, 0.9), lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(
            nn.Conv1d(n_features, hidden, 5, stride=2),
            nn.ReLU(),
            nn.Conv1d(hidden, hidden, 5, stride=2),
            nn.ReLU(),
            nn.Conv1d(hidden, hidden, 5, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(9 * hidden, hidden),
            nn.Tanh(),
        )
        self.cell = nn.GRUCell(n_features, hidden)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, len(quantiles)))
        self.register_buffer("q", torch.tensor(quantiles))

    def forward(self, past, known):
        h = self.encoder(past.transpose(1, 2))
        level = past[:, -1, :1]
        outs = []
        for t in range(known.shape[1]):
            h = self.cell(torch.cat([level, known[:, t]], dim=1), h)
            forecast = self.head(h)
            level = forecast[:, 1:2]
            outs.append(forecast)
        return torch.stack(outs, dim=1)

    def pinball(self, forecast, target):
        diff = target.unsqueeze(-1) - forecast
        return torch.maximum(self.q * diff, (self.q - 1) * diff).mean()

    def training_step(self, batch, batch_idx):
        past, future = batch
        loss = self.pinball(self(past, future[:, :, 1:]), future[:, :, 0])
        self.last_loss = loss.detach()
        return loss

    def validation_step(self, batch, batch_idx):
        past, future = batch
        forecast = self(past, future[:, :, 1:])
        self.log("val_pinball", self.pinball(forecast, future[:, :, 0]))
        self.log("val_mae", (forecast[:, :, 1] - future[:, :, 0]).abs().mean())

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"step {self.global_step}: pinball {m['val_pinball']:.4f}  MAE {m['val_mae']:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
