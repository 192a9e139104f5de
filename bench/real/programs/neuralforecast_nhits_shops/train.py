"""N-HiTS on the daily sales of a few hundred made-up shops."""

import logging

import numpy as np
import pandas as pd
from neuralforecast import NeuralForecast
from neuralforecast.losses.pytorch import MAE
from neuralforecast.models import NHITS

SHOPS = 200
DAYS = 600
HORIZON = 14


def make_sales(seed=0):
    rng = np.random.default_rng(seed)
    days = pd.date_range("2022-01-01", periods=DAYS, freq="D")
    t = np.arange(DAYS)
    frames = []
    for shop in range(SHOPS):
        level = rng.uniform(20, 200)
        weekly = rng.normal(0, 0.15, 7)[t % 7]
        yearly = 0.2 * np.sin(2 * np.pi * (t / 365.25 + rng.uniform()))
        promo = (rng.uniform(size=DAYS) < 0.05).astype(float)
        noise = rng.normal(0, 0.08, DAYS)
        y = level * np.exp(weekly + yearly + 0.4 * promo + noise)
        frames.append(pd.DataFrame({"unique_id": f"shop_{shop:03d}", "ds": days, "y": y, "promo": promo}))
    return pd.concat(frames, ignore_index=True)


def main():
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    sales = make_sales()
    cut = sales["ds"].max() - pd.Timedelta(days=HORIZON)
    train, test = sales[sales["ds"] <= cut], sales[sales["ds"] > cut]

    model = NHITS(
        h=HORIZON,
        input_size=4 * HORIZON,
        loss=MAE(),
        futr_exog_list=["promo"],
        scaler_type="robust",
        max_steps=1000,
        val_check_steps=50,
        learning_rate=1e-3,
        mlp_units=[[128, 128], [128, 128], [128, 128]],
        batch_size=32,
        windows_batch_size=128,
        random_seed=1,
        accelerator="cpu",
    )
    forecaster = NeuralForecast(models=[model], freq="D")
    forecaster.fit(df=train, val_size=2 * HORIZON)

    forecast = forecaster.predict(futr_df=test[["unique_id", "ds", "promo"]])
    joined = test.merge(forecast, on=["unique_id", "ds"])
    error = (joined["y"] - joined["NHITS"]).abs().mean()
    naive = train.groupby("unique_id")["y"].apply(lambda s: s.tail(7).mean()).rename("naive")
    baseline = (test.merge(naive, on="unique_id").eval("y - naive")).abs().mean()
    print(f"mean absolute error {error:.2f}, naive {baseline:.2f}")


if __name__ == "__main__":
    main()
