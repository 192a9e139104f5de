"""LoRA tuning of a small GPT-2 on functions out of the standard library, with an accelerate loop."""

import ast
import math
import pathlib
import random
import sysconfig

import torch
from accelerate import Accelerator
from peft import LoraConfig, TaskType, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    get_linear_schedule_with_warmup,
    set_seed,
)

MAX_LENGTH = 256
BATCH = 8
EPOCHS = 2


def collect_functions(limit=900):
    root = pathlib.Path(sysconfig.get_paths()["stdlib"])
    found = []
    for path in sorted(root.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.append(ast.get_source_segment(source, node))
    random.Random(2).shuffle(found)
    return found[:limit]


def build_tokenizer(texts):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=3000, special_tokens=["<|end|>"], show_progress=False))
    return PreTrainedTokenizerFast(tokenizer_object=tok, eos_token="<|end|>", pad_token="<|end|>")


class FunctionDataset(torch.utils.data.Dataset):
    def __init__(self, texts, tokenizer):
        self.texts = texts
        self.tokenizer = tokenizer

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.tokenizer(self.texts[index], truncation=True, max_length=MAX_LENGTH, padding="max_length")


@torch.no_grad()
def perplexity(model, loader, accelerator):
    model.eval()
    losses = []
    for batch in loader:
        loss = model(**batch).loss
        losses.append(accelerator.gather_for_metrics(loss.repeat(len(batch["input_ids"]))))
    return math.exp(torch.cat(losses).mean().item())


def main():
    set_seed(0)
    accelerator = Accelerator(cpu=True)
    functions = collect_functions()
    tokenizer = build_tokenizer(functions)
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    split = int(0.9 * len(functions))
    train_loader = DataLoader(FunctionDataset(functions[:split], tokenizer), batch_size=BATCH, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(FunctionDataset(functions[split:], tokenizer), batch_size=BATCH, collate_fn=collate)

    base = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=MAX_LENGTH, n_embd=96, n_layer=3, n_head=4))
    lora = LoraConfig(task_type=TaskType.CAUSAL_LM, r=8, lora_alpha=16, lora_dropout=0.05, target_modules=["c_attn"])
    model = get_peft_model(base, lora)
    model.print_trainable_parameters()

    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = get_linear_schedule_with_warmup(optimizer, 20, EPOCHS * len(train_loader))
    model, optimizer, train_loader, valid_loader, scheduler = accelerator.prepare(model, optimizer, train_loader, valid_loader, scheduler)

    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for step, batch in enumerate(train_loader):
            outputs = model(**batch)
            accelerator.backward(outputs.loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            total += outputs.loss.detach().float()
            if step % 50 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {outputs.loss.item():.4f}")
        accelerator.print(f"epoch {epoch} train {total / len(train_loader):.4f} ppl {perplexity(model, valid_loader, accelerator):.2f}")
        accelerator.unwrap_model(model).save_pretrained(f"adapter_{epoch}")


if __name__ == "__main__":
    main()
