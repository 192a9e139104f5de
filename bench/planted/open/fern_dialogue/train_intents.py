import os

import torch

from fern.dialogues import turns, vocabulary
from fern.model import IntentModel
from fern.tokens import Processor, Tokenizer
from fern.trainer import Trainer

torch.manual_seed(77)
words = vocabulary(600)
tokenizer = Tokenizer(words)
data = turns(words, count=3000, intents=9, seed=77)
model = IntentModel(len(tokenizer), intents=9)
Trainer(model, data, Processor(tokenizer)).train(int(os.environ.get("PLANTED_STEPS", 260)))
