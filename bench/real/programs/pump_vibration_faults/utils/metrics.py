"""Running scores of a multi-label classifier."""
import numpy as np
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score


class MultiLabelMeter:
    """Collects logits and labels of an epoch; compute() scores all that was collected since reset()."""

    def __init__(self, names, threshold=0.5):
        self.names, self.threshold = names, threshold
        self.reset()

    def reset(self):
        self.scores, self.targets, self.losses = [], [], []

    def update(self, logits, targets, loss):
        self.scores.append(logits.detach().sigmoid().cpu().numpy())
        self.targets.append(targets.cpu().numpy())
        self.losses.append(loss)

    def compute(self):
        scores, targets = np.concatenate(self.scores), np.concatenate(self.targets)
        result = {"loss": float(np.mean(self.losses))}
        usable = [k for k in range(len(self.names)) if 0 < targets[:, k].sum() < len(targets)]
        result["macro_auc"] = float(np.mean([roc_auc_score(targets[:, k], scores[:, k]) for k in usable]))
        result["macro_ap"] = float(np.mean([average_precision_score(targets[:, k], scores[:, k]) for k in usable]))
        result["macro_f1"] = f1_score(targets, scores > self.threshold, average="macro", zero_division=0)
        return result
