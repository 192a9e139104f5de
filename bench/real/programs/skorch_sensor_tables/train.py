"""A feed-forward net for a table of sensor readings, trained through skorch."""

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from skorch.callbacks import Checkpoint, EpochScoring, LRScheduler
from torch import nn

N_ROWS = 24000
N_FEATURES = 40
N_CLASSES = 6


class SensorNet(nn.Module):
    def __init__(self, width=128, depth=3, dropout=0.1):
        super().__init__()
        layers = [nn.Linear(N_FEATURES, width), nn.ReLU()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(dropout)]
        self.body = nn.Sequential(*layers)
        self.out = nn.Linear(width, N_CLASSES)

    def forward(self, X):
        return self.out(self.body(X))


def make_table():
    X, y = make_classification(
        n_samples=N_ROWS,
        n_features=N_FEATURES,
        n_informative=18,
        n_redundant=8,
        n_classes=N_CLASSES,
        n_clusters_per_class=3,
        class_sep=1.2,
        random_state=11,
    )
    return X.astype(np.float32), y.astype(np.int64)


def main():
    torch.manual_seed(0)
    X, y = make_table()

    net = NeuralNetClassifier(
        SensorNet,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=1e-3,
        batch_size=128,
        max_epochs=40,
        iterator_train__shuffle=True,
        callbacks=[
            ("train_acc", EpochScoring("accuracy", on_train=True, lower_is_better=False, name="train_acc")),
            ("macro_f1", EpochScoring("f1_macro", lower_is_better=False, name="valid_f1")),
            ("auc", EpochScoring("roc_auc_ovr", lower_is_better=False, name="valid_auc")),
            ("lr", LRScheduler(policy="StepLR", step_size=10, gamma=0.5)),
            ("best", Checkpoint(monitor="valid_loss_best", dirname="checkpoints")),
        ],
    )
    pipeline = Pipeline([("scale", StandardScaler()), ("net", net)])
    pipeline.fit(X, y)

    history = pipeline.named_steps["net"].history
    print("best valid accuracy", max(history[:, "valid_acc"]))
    print("probabilities of the first rows", pipeline.predict_proba(X[:3]).round(3))


if __name__ == "__main__":
    main()
