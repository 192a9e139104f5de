import lightning as L
import torch
from torch import nn
from torchmetrics import MeanMetric
from torchmetrics.classification import BinaryAUROC


class CrossLayer(nn.Module):
    """DCN-v2 cross layer with a low-rank matrix."""

    def __init__(self, dim, rank):
        super().__init__()
        self.u = nn.Linear(dim, rank, bias=False)
        self.v = nn.Linear(rank, dim)

    def forward(self, x0, x):
        return x0 * self.v(self.u(x)) + x


class DCN(nn.Module):
    def __init__(self, buckets, n_num=8, n_cat=14, dim=16, hidden=(256, 128), n_cross=3, rank=64, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(buckets, dim)
        nn.init.normal_(self.embedding.weight, std=0.01)
        self.bn = nn.BatchNorm1d(n_num)
        d = n_num + n_cat * dim
        self.cross = nn.ModuleList([CrossLayer(d, rank) for _ in range(n_cross)])
        layers, last = [], d
        for h in hidden:
            layers += [nn.Linear(last, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Dropout(dropout)]
            last = h
        self.deep = nn.Sequential(*layers)
        self.out = nn.Linear(d + last, 1)

    def forward(self, dense, sparse):
        x0 = torch.cat([self.bn(dense), self.embedding(sparse).flatten(1)], dim=1)
        x = x0
        for layer in self.cross:
            x = layer(x0, x)
        return self.out(torch.cat([x, self.deep(x0)], dim=1)).squeeze(1)


class ClickModel(L.LightningModule):
    def __init__(self, buckets=100_000, lr=1e-3, weight_decay=1e-6):
        super().__init__()
        self.save_hyperparameters()
        self.net = DCN(buckets)
        self.loss = nn.BCEWithLogitsLoss()
        self.train_auc = BinaryAUROC()
        self.val_auc = BinaryAUROC()
        self.val_loss = MeanMetric()

    def training_step(self, batch, batch_idx):
        dense, sparse, y = batch
        logits = self.net(dense, sparse)
        loss = self.loss(logits, y)
        self.train_auc(logits.sigmoid(), y.long())
        self.log("train_loss", loss, prog_bar=True)
        self.log("train_auc", self.train_auc, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        dense, sparse, y = batch
        logits = self.net(dense, sparse)
        self.val_auc.update(logits.sigmoid(), y.long())
        self.val_loss.update(self.loss(logits, y), len(y))
        self.log("val_auc", self.val_auc, prog_bar=True)
        self.log("val_loss", self.val_loss)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)
