"""TabNet on a made-up table shaped like the forest cover data."""

import numpy as np
import torch
from pytorch_tabnet.tab_model import TabNetClassifier
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split

N_ROWS = 30000
N_NUMERIC = 30
CARDINALITIES = [4, 40, 12]


def make_table(seed=0):
    X, y = make_classification(
        n_samples=N_ROWS,
        n_features=N_NUMERIC,
        n_informative=14,
        n_redundant=6,
        n_classes=7,
        n_clusters_per_class=2,
        class_sep=1.1,
        random_state=seed,
    )
    rng = np.random.default_rng(seed)
    columns = [X]
    for k, cardinality in enumerate(CARDINALITIES):
        ranks = np.argsort(np.argsort(X[:, k] + rng.normal(0, 0.5, N_ROWS)))
        columns.append((ranks * cardinality // N_ROWS)[:, None])
    return np.concatenate(columns, axis=1).astype(np.float32), y


def main():
    X, y = make_table()
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.4, random_state=1, stratify=y)
    X_valid, X_test, y_valid, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=1, stratify=y_rest)

    cat_idxs = list(range(N_NUMERIC, N_NUMERIC + len(CARDINALITIES)))
    clf = TabNetClassifier(
        n_d=16,
        n_a=16,
        n_steps=4,
        gamma=1.5,
        lambda_sparse=1e-4,
        cat_idxs=cat_idxs,
        cat_dims=CARDINALITIES,
        cat_emb_dim=2,
        optimizer_fn=torch.optim.Adam,
        optimizer_params={"lr": 2e-2},
        scheduler_fn=torch.optim.lr_scheduler.StepLR,
        scheduler_params={"step_size": 10, "gamma": 0.9},
        mask_type="entmax",
        seed=0,
        device_name="auto",
    )
    clf.fit(
        X_train=X_train,
        y_train=y_train,
        eval_set=[(X_train, y_train), (X_valid, y_valid)],
        eval_name=["train", "valid"],
        eval_metric=["accuracy", "logloss"],
        max_epochs=16,
        patience=16,
        batch_size=1024,
        virtual_batch_size=128,
        num_workers=0,
        drop_last=False,
    )
    print("test accuracy", accuracy_score(y_test, clf.predict(X_test)))
    print("importances", clf.feature_importances_.round(3))
    clf.save_model("tabnet")


if __name__ == "__main__":
    main()
