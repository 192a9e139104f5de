import numpy as np
from sklearn.metrics import accuracy_score, f1_score


def compute_metrics(prediction) -> dict[str, float]:
    guess = np.argmax(prediction.predictions, axis=-1)
    return {
        "accuracy": accuracy_score(prediction.label_ids, guess),
        "macro_f1": f1_score(prediction.label_ids, guess, average="macro"),
    }
