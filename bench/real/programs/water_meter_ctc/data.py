import json
import os

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

ALPHABET = "-0123456789ABCDEFGHKLMNPRSTUVXYZ"
TO_ID = {c: i + 1 for i, c in enumerate(ALPHABET)}  # 0 is the blank


class Plates(Dataset):
    def __init__(self, root, split, size=(128, 32)):
        self.root, self.size = root, size
        with open(os.path.join(root, f"{split}.jsonl")) as f:
            self.rows = [json.loads(line) for line in f]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        image = Image.open(os.path.join(self.root, row["file"])).convert("L").resize(self.size, Image.BILINEAR)
        pixels = torch.from_numpy(np.array(image, dtype=np.float32)) / 127.5 - 1.0
        return pixels.unsqueeze(0), row["text"]


def collate(items):
    images = torch.stack([image for image, _ in items])
    texts = [text for _, text in items]
    targets = torch.tensor([TO_ID[c] for text in texts for c in text])
    lengths = torch.tensor([len(text) for text in texts])
    return images, targets, lengths, texts
