import lightning as L
import torch
from torch import nn
from torchmetrics import MetricCollection
from torchmetrics.classification import MultilabelAUROC, MultilabelAveragePrecision, MultilabelF1Score


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv1d(cin, cout, 7, stride=stride, padding=3, bias=False)
        self.bn1 = nn.BatchNorm1d(cout)
        self.conv2 = nn.Conv1d(cout, cout, 7, padding=3, bias=False)
        self.bn2 = nn.BatchNorm1d(cout)
        self.short = nn.Sequential(nn.Conv1d(cin, cout, 1, stride=stride, bias=False), nn.BatchNorm1d(cout))
        self.act = nn.ReLU()

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        return self.act(self.bn2(self.conv2(y)) + self.short(x))


class ECGNet(nn.Module):
    def __init__(self, leads=8, n_classes=5, widths=(16, 32, 48, 64)):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(leads, widths[0], 15, stride=2, padding=7, bias=False),
                                  nn.BatchNorm1d(widths[0]), nn.ReLU())
        cins = (widths[0],) + widths[:-1]
        self.blocks = nn.Sequential(*[Block(i, o, 2) for i, o in zip(cins, widths)])
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(widths[-1] * 2, n_classes)

    def forward(self, x):
        h = self.blocks(self.stem(x))
        return self.head(self.drop(torch.cat([h.mean(-1), h.amax(-1)], dim=1)))


class ECGModule(L.LightningModule):
    def __init__(self, n_classes=5, lr=2e-3, weight_decay=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = ECGNet(n_classes=n_classes)
        self.loss = nn.BCEWithLogitsLoss()
        metrics = MetricCollection({
            "auroc": MultilabelAUROC(n_classes),
            "ap": MultilabelAveragePrecision(n_classes),
            "f1": MultilabelF1Score(n_classes),
        })
        self.train_metrics = metrics.clone(prefix="train_")
        self.val_metrics = metrics.clone(prefix="val_")

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = self.loss(logits, y.float())
        self.log("train_loss", loss, prog_bar=True)
        self.train_metrics.update(logits.detach().sigmoid(), y)
        return loss

    def on_train_epoch_end(self):
        self.log_dict(self.train_metrics.compute())
        self.train_metrics.reset()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", self.loss(logits, y.float()), prog_bar=True)
        self.val_metrics.update(logits.sigmoid(), y)

    def on_validation_epoch_end(self):
        self.log_dict(self.val_metrics.compute())
        self.val_metrics.reset()

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, self.hparams.lr, total_steps=self.trainer.estimated_stepping_batches)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
