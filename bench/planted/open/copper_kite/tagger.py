"""A convolutional tagger over fixed word vectors, in the shape that the Trainer expects."""

import torch
from slots import LABELS
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel


class TaggerConfig(PretrainedConfig):
    model_type = "counter_tagger"

    def __init__(self, rows: int = 40_000, vector: int = 256, width: int = 128, depth: int = 2, **rest) -> None:
        super().__init__(**rest)
        self.rows, self.vector, self.width, self.depth = rows, vector, width, depth


class Mixer(nn.Module):
    """Words see their neighbours through shifted copies."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(3 * width, hidden)
        self.narrow = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        seen = torch.cat([y.roll(1, dims=1), y, y.roll(-1, dims=1)], dim=-1)
        return x + self.narrow(nn.functional.gelu(self.wide(seen)))


class Tagger(PreTrainedModel):
    config_class = TaggerConfig

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__(config)
        self.vectors = nn.Embedding(config.rows, config.vector).requires_grad_(False)
        self.lift = nn.Linear(config.vector, config.width)
        self.mixers = nn.ModuleList(Mixer(config.width, 3 * config.width) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, len(LABELS))
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        x = self.lift(self.vectors(input_ids))
        for mixer in self.mixers:
            x = mixer(x)
        scores = self.head(self.norm(x))
        if labels is None:
            return {"logits": scores}
        return {"loss": nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten()), "logits": scores}
