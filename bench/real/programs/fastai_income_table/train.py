"""Income over 50k from a census table, with fastai's tabular learner."""
import os
import sys

import numpy as np
import pandas as pd
from fastai.tabular.all import *

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 20


def make_census(path, n=40000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.gamma(8, 5, n).clip(17, 90).astype(int)
    edu = rng.integers(1, 17, n)
    hours = rng.normal(40, 12, n).clip(1, 99).astype(int)
    gain = np.where(rng.random(n) < 0.08, rng.lognormal(8, 1, n), 0).astype(int)
    df = pd.DataFrame({
        "age": age,
        "workclass": rng.choice(["Private", "Self-emp", "Federal-gov", "Local-gov", "State-gov", "?"], n),
        "fnlwgt": rng.lognormal(12, 0.5, n).astype(int),
        "education": np.array([f"level-{e}" for e in edu]),
        "education-num": np.where(rng.random(n) < 0.02, np.nan, edu),
        "marital-status": rng.choice(["Married", "Never-married", "Divorced", "Widowed", "Separated"], n),
        "occupation": rng.choice([f"occupation-{i}" for i in range(14)], n),
        "relationship": rng.choice(["Husband", "Wife", "Own-child", "Unmarried", "Not-in-family"], n),
        "race": rng.choice(["A", "B", "C", "D", "E"], n),
        "sex": rng.choice(["Male", "Female"], n),
        "capital-gain": gain,
        "hours-per-week": hours,
        "native-country": rng.choice([f"country-{i}" for i in range(40)], n),
    })
    score = 0.05 * (age - 40) + 0.3 * (edu - 10) + 0.03 * (hours - 40) + 0.0003 * gain + rng.normal(0, 1, n)
    df["salary"] = np.where(score > 0.8, ">=50k", "<50k")
    df.to_csv(path, index=False)


def main():
    if not os.path.exists("census.csv"):
        make_census("census.csv")
    set_seed(42)
    df = pd.read_csv("census.csv")
    cat_names = ["workclass", "education", "marital-status", "occupation", "relationship",
                 "race", "sex", "native-country"]
    cont_names = ["age", "fnlwgt", "education-num", "capital-gain", "hours-per-week"]
    dls = TabularDataLoaders.from_df(
        df, path=".", y_names="salary", cat_names=cat_names, cont_names=cont_names,
        procs=[Categorify, FillMissing, Normalize], bs=64)
    learn = tabular_learner(
        dls, layers=[200, 100], metrics=[accuracy, RocAucBinary()],
        cbs=[CSVLogger(fname="history.csv"), SaveModelCallback(monitor="valid_loss")])
    learn.fit_one_cycle(EPOCHS, 1e-2)
    row, clas, probs = learn.predict(df.iloc[0])
    print(clas, probs)


if __name__ == "__main__":
    main()
