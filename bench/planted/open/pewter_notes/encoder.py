import torch
import torch.nn.functional as F
from torch import Tensor, nn


class NoteClassifier(nn.Module):
    def __init__(self, vocabulary: int, width: int, heads: int, layers: int, positions: int, classes: int) -> None:
        super().__init__()
        self.word = nn.Embedding(vocabulary, width, padding_idx=0)
        self.place = nn.Embedding(positions, width)
        block = nn.TransformerEncoderLayer(width, heads, 3 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        x = self.word(input_ids) + self.place(torch.arange(input_ids.shape[1]))
        x = self.blocks(x, src_key_padding_mask=attention_mask == 0)
        return F.cross_entropy(self.head(x[:, 0]), labels)
