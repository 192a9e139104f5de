import argparse

import lightning as L
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from data import ClickData
from model import ClickModel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data/clicks.csv")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--buckets", type=int, default=100_000)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()

    L.seed_everything(args.seed, workers=True)
    data = ClickData(args.data, args.batch_size, args.buckets, args.num_workers)
    model = ClickModel(args.buckets, lr=args.lr)
    trainer = L.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        logger=CSVLogger("logs"),
        log_every_n_steps=20,
        val_check_interval=0.5,
        enable_progress_bar=False,
        callbacks=[
            ModelCheckpoint(monitor="val_auc", mode="max", save_top_k=1, save_last=True),
            EarlyStopping("val_loss", patience=5),
            LearningRateMonitor("step"),
        ],
    )
    trainer.fit(model, data)
    print({k: round(float(v), 5) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
