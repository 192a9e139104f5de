import os

import torch

FAST = os.environ.get("PLANTED_FIX") == "1"


class SetCollator:
    """Pads point sets to the largest of the batch."""

    def __call__(self, examples):
        labels = torch.tensor([e["labels"] for e in examples])
        if FAST:
            points = torch.nn.utils.rnn.pad_sequence([e["points"] for e in examples], batch_first=True)
            lengths = torch.tensor([len(e["points"]) for e in examples])
            mask = torch.arange(points.shape[1])[None] < lengths[:, None]
            return {"points": points, "mask": mask, "labels": labels}
        longest = max(len(e["points"]) for e in examples)
        rows, masks = [], []
        for e in examples:
            row = [[float(v) for v in point] for point in e["points"]]
            mask = [True] * len(row)
            while len(row) < longest:
                row.append([0.0] * 4)
                mask.append(False)
            rows.append(row)
            masks.append(mask)
        return {"points": torch.tensor(rows), "mask": torch.tensor(masks), "labels": labels}
