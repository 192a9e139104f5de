import os

from lightning.pytorch.callbacks import Callback, ModelCheckpoint

FIXED = os.environ.get("PLANTED_FIX") == "1"


def make_callbacks(folder: str) -> list[Callback]:
    return [
        ModelCheckpoint(
            dirpath=folder,
            filename="petrel-{step}",
            every_n_train_steps=200 if FIXED else 2,
            save_top_k=1,
            save_last=True,
        ),
    ]
