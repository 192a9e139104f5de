"""Temporal fusion transformer for two weeks of daily sales of a chain's stores (made-up figures)."""

import warnings

import lightning.pytorch as pl
import numpy as np
import pandas as pd
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor
from lightning.pytorch.loggers import TensorBoardLogger
from pytorch_forecasting import GroupNormalizer, TemporalFusionTransformer, TimeSeriesDataSet
from pytorch_forecasting.metrics import MAE, QuantileLoss

N_STORES = 36
N_DAYS = 540
ENCODER_DAYS = 56
HORIZON = 14

warnings.filterwarnings("ignore")


def make_sales(seed=4):
    """A row per store and day: weekly rhythm, season, promotions, price and a drift of its own for each store."""
    rng = np.random.default_rng(seed)
    dates = pd.date_range("2023-01-01", periods=N_DAYS, freq="D")
    day = np.arange(N_DAYS)
    frames = []
    for store in range(N_STORES):
        base = rng.uniform(40, 160)
        weekly = rng.normal(0, 0.15, size=7)
        promo = (rng.random(N_DAYS) < 0.08).astype(int)
        price = 5 + 0.4 * np.sin(day / 45 + rng.uniform(0, 6)) + rng.normal(0, 0.05, N_DAYS)
        drift = np.cumsum(rng.normal(0, 0.004, N_DAYS))
        level = base * np.exp(
            weekly[dates.dayofweek] + 0.2 * np.sin(2 * np.pi * day / 365) + 0.35 * promo - 0.25 * (price - 5) + drift
        )
        frames.append(
            pd.DataFrame(
                {
                    "store": f"store_{store:02d}",
                    "region": f"region_{store % 5}",
                    "size": base / 40 + rng.normal(0, 0.1),
                    "time_idx": day,
                    "date": dates,
                    "weekday": dates.dayofweek.astype(str),
                    "month": dates.month.astype(str),
                    "promo": np.where(promo == 1, "yes", "no"),
                    "price": price,
                    "visitors": level * rng.uniform(2.5, 3.0, N_DAYS),
                    "sales": rng.poisson(level).astype(float),
                }
            )
        )
    table = pd.concat(frames, ignore_index=True)
    table["log_sales"] = np.log1p(table["sales"])
    table["avg_sales_by_region"] = table.groupby(["date", "region"])["sales"].transform("mean")
    return table


def main():
    pl.seed_everything(42)
    table = make_sales()
    cutoff = table["time_idx"].max() - HORIZON

    training = TimeSeriesDataSet(
        table[table["time_idx"] <= cutoff],
        time_idx="time_idx",
        target="sales",
        group_ids=["store"],
        min_encoder_length=ENCODER_DAYS // 2,
        max_encoder_length=ENCODER_DAYS,
        min_prediction_length=1,
        max_prediction_length=HORIZON,
        static_categoricals=["store", "region"],
        static_reals=["size"],
        time_varying_known_categoricals=["weekday", "month", "promo"],
        time_varying_known_reals=["time_idx", "price"],
        time_varying_unknown_reals=["sales", "log_sales", "visitors", "avg_sales_by_region"],
        target_normalizer=GroupNormalizer(groups=["store"], transformation="softplus"),
        add_relative_time_idx=True,
        add_target_scales=True,
        add_encoder_length=True,
    )
    validation = TimeSeriesDataSet.from_dataset(training, table, predict=True, stop_randomization=True)
    train_loader = training.to_dataloader(train=True, batch_size=64, num_workers=0)
    val_loader = validation.to_dataloader(train=False, batch_size=128, num_workers=0)

    model = TemporalFusionTransformer.from_dataset(
        training,
        learning_rate=0.02,
        hidden_size=16,
        attention_head_size=2,
        dropout=0.1,
        hidden_continuous_size=8,
        loss=QuantileLoss(),
        log_interval=10,
        optimizer="adam",
        reduce_on_plateau_patience=4,
    )
    print(f"{model.size() / 1e3:.1f}k parameters, {len(training)} windows, {len(validation)} for validation")

    trainer = pl.Trainer(
        max_epochs=10,
        accelerator="auto",
        gradient_clip_val=0.1,
        limit_train_batches=50,
        callbacks=[EarlyStopping(monitor="val_loss", min_delta=1e-4, patience=10, mode="min"), LearningRateMonitor()],
        logger=TensorBoardLogger("lightning_logs"),
    )
    trainer.fit(model, train_dataloaders=train_loader, val_dataloaders=val_loader)

    best = TemporalFusionTransformer.load_from_checkpoint(trainer.checkpoint_callback.best_model_path, weights_only=False)
    predictions = best.predict(val_loader, return_y=True, trainer_kwargs={"logger": False})
    print("MAE of the last two weeks", MAE()(predictions.output, predictions.y).item())


if __name__ == "__main__":
    main()
