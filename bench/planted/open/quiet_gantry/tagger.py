import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel


class TaggerConfig(PretrainedConfig):
    model_type = "gantry-tagger"

    def __init__(self, vocab=16000, tags=7, dim=128, hidden=64, **kw):
        super().__init__(**kw)
        self.vocab, self.tags, self.dim, self.hidden = vocab, tags, dim, hidden


class GruTagger(PreTrainedModel):
    config_class = TaggerConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab, config.dim)
        self.gru = nn.GRU(config.dim, config.hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * config.hidden, config.tags)
        self.post_init()

    def _init_weights(self, module):
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.05)

    def forward(self, input_ids, labels=None):
        h, _ = self.gru(self.embed(input_ids))
        logits = self.out(h)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return {"loss": loss, "logits": logits}
