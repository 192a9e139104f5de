import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F


def double(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1),
        nn.GroupNorm(4, outside),
        nn.ReLU(),
        nn.Conv2d(outside, outside, 3, padding=1),
        nn.GroupNorm(4, outside),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, base: int, classes: int = 3):
        super().__init__()
        self.a, self.b, self.c = double(3, base), double(base, base * 2), double(base * 2, base * 4)
        self.up_b = nn.ConvTranspose2d(base * 4, base * 2, 2, stride=2)
        self.up_a = nn.ConvTranspose2d(base * 2, base, 2, stride=2)
        self.dec_b, self.dec_a = double(base * 4, base * 2), double(base * 2, base)
        self.head = nn.Conv2d(base, classes, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        b = self.dec_b(torch.cat([self.up_b(c), b], 1))
        return self.head(self.dec_a(torch.cat([self.up_a(b), a], 1)))


class Coast(L.LightningModule):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.net = UNet(settings.base)
        self.register_buffer("confusion", torch.zeros(3, 3), persistent=False)
        self.last = float("nan")

    def loss_of(self, logits, mask):
        probability = logits.softmax(1)
        truth = F.one_hot(mask, 3).permute(0, 3, 1, 2)
        overlap = (probability * truth).sum((0, 2, 3))
        dice = 1 - (2 * overlap / (probability.sum((0, 2, 3)) + truth.sum((0, 2, 3)) + 1)).mean()
        return F.cross_entropy(logits, mask) + dice

    def training_step(self, batch, index):
        picture, mask = batch
        loss = self.loss_of(self.net(picture), mask)
        self.last = loss.item()
        return loss

    def on_train_batch_end(self, outputs, batch, index):
        if self.global_step % self.settings.report_every == 0:
            print(f"step {self.global_step} loss {self.last:.4f}")

    def on_validation_epoch_start(self):
        self.confusion.zero_()

    def validation_step(self, batch, index):
        picture, mask = batch
        guess = self.net(picture).argmax(1)
        self.confusion += torch.bincount((mask * 3 + guess).flatten(), minlength=9).view(3, 3)

    def on_validation_epoch_end(self):
        hit = self.confusion.diagonal()
        iou = hit / (self.confusion.sum(0) + self.confusion.sum(1) - hit).clamp(min=1)
        self.log("miou", iou.mean(), prog_bar=False)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.settings.lr, weight_decay=1e-3)
