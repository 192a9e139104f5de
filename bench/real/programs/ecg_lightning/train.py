import argparse

import lightning as L
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from ecg.data import ECGDataModule
from ecg.model import ECGModule


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()

    L.seed_everything(args.seed, workers=True)
    data = ECGDataModule(batch_size=args.batch_size, num_workers=args.num_workers)
    model = ECGModule(lr=args.lr)
    trainer = L.Trainer(
        max_epochs=args.epochs,
        accelerator="auto",
        devices=1,
        logger=CSVLogger("logs", name="ecg"),
        callbacks=[ModelCheckpoint(monitor="val_auroc", mode="max", save_last=True), LearningRateMonitor("step")],
        log_every_n_steps=10,
        enable_progress_bar=False,
    )
    trainer.fit(model, data)
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
