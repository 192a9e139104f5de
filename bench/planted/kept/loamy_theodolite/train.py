"""Land-cover segmentation with a small U-Net (Lightning)."""
import logging
import os
import time
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score, jaccard_score, precision_score, recall_score
from torch.utils.data import DataLoader

from data import LAND_COVER, land_cover_tiles
from net import SmallUNet

FIX = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", 300))
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", module="lightning")


def scores(logits, target, prefix):
    pred = logits.argmax(1).flatten().cpu().numpy()
    true = target.flatten().cpu().numpy()
    return {
        f"{prefix}/acc": accuracy_score(true, pred),
        f"{prefix}/kappa": cohen_kappa_score(true, pred),
        f"{prefix}/precision": precision_score(true, pred, average="macro", zero_division=0),
        f"{prefix}/recall": recall_score(true, pred, average="macro", zero_division=0),
        f"{prefix}/iou": jaccard_score(true, pred, average="macro", zero_division=0),
        f"{prefix}/f1": f1_score(true, pred, average="macro", zero_division=0),
    }


class Segmenter(L.LightningModule):
    def __init__(self, lr=3e-3, width=6):
        super().__init__()
        self.save_hyperparameters()
        self.net = SmallUNet(len(LAND_COVER), width)

    def loss(self, logits, target):
        ce = F.cross_entropy(logits, target)
        p = logits.softmax(1)
        t = F.one_hot(target, len(LAND_COVER)).permute(0, 3, 1, 2)
        dice = (2 * (p * t).sum((0, 2, 3)) + 1) / ((p + t).sum((0, 2, 3)) + 1)
        return ce + 0.5 * (1 - dice.mean())

    def training_step(self, batch, batch_idx):
        image, target = batch
        logits = self.net(image)
        loss = self.loss(logits, target)
        self.log("train/loss", loss)
        if not FIX or self.global_step % 50 == 0:
            self.log_dict(scores(logits.detach(), target, "train"))
        return loss

    def validation_step(self, batch, batch_idx):
        image, target = batch
        logits = self.net(image)
        self.log("val/loss", self.loss(logits, target))
        self.log_dict(scores(logits, target, "val"))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.hparams.lr, total_steps=max(STEPS, 10))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Progress(L.Callback):
    def __init__(self, every=25):
        self.every = every

    def on_train_start(self, trainer, module):
        self.start = time.time()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.last = outputs["loss"]
        if trainer.global_step % self.every == 0:
            m = trainer.callback_metrics
            print(f"step {trainer.global_step}: loss {m['train/loss']:.4f} iou {m['train/iou']:.3f} f1 {m['train/f1']:.3f}")

    def on_train_end(self, trainer, module):
        self.seconds = time.time() - self.start

    def on_validation_end(self, trainer, module):
        print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items() if k.startswith("val")})


def main():
    L.seed_everything(20, verbose=False)
    train = DataLoader(land_cover_tiles(480, 64, seed=1), batch_size=6, shuffle=True, drop_last=True)
    val = DataLoader(land_cover_tiles(48, 64, seed=2), batch_size=16)
    progress = Progress()
    trainer = L.Trainer(
        accelerator="cpu",
        max_steps=STEPS,
        check_val_every_n_epoch=2,
        num_sanity_val_steps=0,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        logger=False,
        callbacks=[progress],
    )
    trainer.fit(Segmenter(), train, val)
    print(f"{trainer.global_step} steps in {progress.seconds:.2f} s, loss {progress.last.item():.6f}")


if __name__ == "__main__":
    main()
