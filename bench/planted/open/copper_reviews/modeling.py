import torch
import torch.nn as nn
import torch.nn.functional as F
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class TableConfig(PretrainedConfig):
    model_type = "table-encoder"

    def __init__(self, vocab_size=800, hidden_size=64, num_layers=2, num_heads=4, num_labels=5, **kwargs):
        super().__init__(num_labels=num_labels, **kwargs)
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        self.num_layers, self.num_heads = num_layers, num_heads


class TableLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.bias = nn.Embedding(17, config.num_heads)
        self.ffn = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, relations, blocked):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        bias = self.bias(relations).permute(0, 3, 1, 2) + blocked
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.ffn(self.norm2(x))


class TableModel(PreTrainedModel):
    config_class = TableConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.layers = nn.ModuleList(TableLayer(config) for _ in range(config.num_layers))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.03)

    def forward(self, input_ids, attention_mask, relations, labels=None, **kwargs):
        keep = attention_mask.to(torch.float32)
        blocked = ((1.0 - keep) * -1e4)[:, None, None, :]
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x, relations, blocked)
        pooled = (x * keep[..., None]).sum(1) / keep.sum(1, keepdim=True)
        logits = self.classifier(pooled)
        loss = F.cross_entropy(logits, labels) if labels is not None else None
        return SequenceClassifierOutput(loss=loss, logits=logits)
