import torch
from lightning.pytorch import LightningModule
from torch import nn
from torchmetrics.classification import MulticlassAccuracy

from norms import BallSGD
from tasks import FEATURES, TASKS


class Uncertainty(nn.Module):
    """Learned weights of the tasks (Kendall et al. 2018)."""

    def __init__(self, names):
        super().__init__()
        self.log_var = nn.ParameterDict({n: nn.Parameter(torch.zeros(())) for n in names})

    def forward(self, losses):
        return sum(loss * torch.exp(-self.log_var[n]) + 0.5 * self.log_var[n] for n, loss in losses.items())


class Listener(LightningModule):
    def __init__(self, width=256, lr=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.trunk = nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleDict({n: nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, k)) for n, k in TASKS.items()})
        self.weigh = Uncertainty(TASKS)
        self.right = nn.ModuleDict({n: MulticlassAccuracy(k, average="micro") for n, k in TASKS.items()})

    def forward(self, x):
        h = self.trunk(x)
        return {n: head(h) for n, head in self.heads.items()}

    def losses(self, batch):
        x, y = batch
        return {n: nn.functional.cross_entropy(out, y[:, i]) for i, (n, out) in enumerate(self(x).items())}

    def training_step(self, batch, index):
        losses = self.losses(batch)
        total = self.weigh(losses)
        self.log_dict({f"loss/{n}": value.detach() for n, value in losses.items()})
        return total

    def validation_step(self, batch, index):
        for i, (n, out) in enumerate(self(batch[0]).items()):
            self.right[n](out, batch[1][:, i])
            self.log(f"right/{n}", self.right[n])

    def configure_optimizers(self):
        return BallSGD(self.parameters(), self.hparams.lr, radius=2.0, momentum=0.9, nesterov=True)
