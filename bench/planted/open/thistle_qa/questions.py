"""Questions about short passages: where does the answer begin, where does it end?"""

import torch
from torch.utils.data import Dataset

VOCAB, PASSAGE, QUESTION = 500, 28, 6


class Questions(Dataset):
    def __init__(self, count: int, seed: int):
        g = torch.Generator().manual_seed(seed)
        self.passages = torch.randint(20, VOCAB, (count, PASSAGE), generator=g)
        self.begins = torch.randint(0, PASSAGE - QUESTION, (count,), generator=g)
        self.lengths = torch.randint(1, 4, (count,), generator=g)
        reach = self.begins[:, None] + torch.arange(QUESTION)
        self.questions = self.passages.gather(1, reach)

    def __len__(self):
        return len(self.passages)

    def __getitem__(self, index):
        begin = self.begins[index]
        ids = torch.cat([self.questions[index], torch.tensor([1]), self.passages[index]])
        return {"ids": ids, "begin": begin, "end": begin + self.lengths[index]}
