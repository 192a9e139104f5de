"""A gated recurrent reader of the soil profile, in the library's dress."""

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class ThicketConfig(PretrainedConfig):
    model_type = "thicket"

    def __init__(self, readings: int = 16, plants: int = 40, width: int = 48, blocks: int = 3, **kwargs) -> None:
        self.readings, self.plants, self.width, self.blocks = readings, plants, width, blocks
        super().__init__(**kwargs)


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.wide, self.back = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.along = nn.Conv1d(2 * width, 2 * width, 5, padding=2, groups=2 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value, gate = self.wide(self.norm(x)).chunk(2, -1)
        value = self.along(value.transpose(1, 2)).transpose(1, 2)
        return x + self.back(value * nn.functional.silu(gate))


class ThicketModel(PreTrainedModel):
    config_class = ThicketConfig

    def __init__(self, config: ThicketConfig) -> None:
        super().__init__(config)
        self.lift = nn.Linear(config.readings, config.width)
        self.layers = nn.Sequential(*[Layer(config.width) for _ in range(config.blocks)])
        self.head = nn.Linear(config.width, config.plants)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)

    def forward(self, soil: torch.Tensor, labels: torch.Tensor | None = None) -> SequenceClassifierOutput:
        logits = self.head(self.layers(self.lift(soil)).mean(1))
        loss = None if labels is None else nn.functional.binary_cross_entropy_with_logits(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)
