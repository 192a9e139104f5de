"""Tiny GPT-2 on generated recipes, character level, with the Hugging Face Trainer."""

import os
import random
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

HERE = os.path.dirname(os.path.abspath(__file__))
BLOCK = 64
SEED = 17
STEPS = int(os.environ.get("PLANTED_STEPS", 800))

FOODS = [
    "carrots",
    "leeks",
    "butter",
    "barley",
    "white fish",
    "mushrooms",
    "apples",
    "rye flour",
    "cream",
    "eggs",
    "spinach",
    "lentils",
    "potatoes",
    "thyme",
    "onions",
]
VERBS = ["chop", "fry", "boil", "whisk", "roast", "steam", "fold in", "season", "rinse"]
PLACES = ["in a deep pan", "over low heat", "until golden", "for ten minutes", "in salted water", "on a baking tray", "with a wooden spoon"]


def make_text(n_lines):
    rng = random.Random(SEED)
    lines = []
    for _ in range(n_lines):
        parts = []
        for _ in range(rng.randint(1, 3)):
            parts.append(f"{rng.choice(VERBS)} the {rng.choice(FOODS)} {rng.choice(PLACES)}")
        lines.append(", then ".join(parts).capitalize() + ".")
    return "\n".join(lines)


class CharBlocks(torch.utils.data.Dataset):
    def __init__(self, text, block):
        chars = sorted(set(text))
        self.stoi = {c: i for i, c in enumerate(chars)}
        ids = torch.tensor([self.stoi[c] for c in text])
        n = len(ids) // block
        self.blocks = ids[: n * block].view(n, block)

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, i):
        return {"input_ids": self.blocks[i], "labels": self.blocks[i]}


def main():
    set_seed(SEED)
    dataset = CharBlocks(make_text(4000), BLOCK)
    config = GPT2Config(
        vocab_size=len(dataset.stoi),
        n_positions=BLOCK,
        n_embd=48,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    model = GPT2LMHeadModel(config)

    args = TrainingArguments(
        output_dir=os.path.join(HERE, "out"),
        max_steps=STEPS,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=8,
        learning_rate=1e-3,
        lr_scheduler_type="cosine",
        warmup_steps=20,
        weight_decay=0.01,
        logging_steps=20,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=SEED,
    )
    if os.environ.get("PLANTED_FIX") == "1":
        args.per_device_train_batch_size, args.gradient_accumulation_steps = 8, 1

    trainer = Trainer(model=model, args=args, train_dataset=dataset)
    start = time.perf_counter()
    trainer.train()
    took = time.perf_counter() - start
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    print(f"{trainer.state.global_step} steps in {took:.2f} s, loss {float(losses[-1]):.6f}")


if __name__ == "__main__":
    main()
