"""GPT-2 from scratch on generated verse, HF Trainer."""

import os
import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator

torch.set_num_threads(1)
VOCAB, BLOCK = 128, 96


class Verse(Dataset):
    """Tokenised once, cut into blocks of equal length."""

    def __init__(self, blocks=600):
        g = torch.Generator().manual_seed(17)
        start = torch.randint(0, VOCAB, (blocks, 1), generator=g)
        stride = torch.randint(1, 5, (blocks, 1), generator=g)
        self.ids = (start + stride * torch.arange(BLOCK)) % VOCAB

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


@torch.no_grad()
def recite(model, start, length=24):
    """Greedy continuation, to have a look at what it has learned."""
    model.eval()
    ids = torch.tensor([start])
    for _ in range(length):
        logits = model(input_ids=ids).logits[:, -1]
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
    return ids[0].tolist()


def main():
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=BLOCK, n_embd=192, n_layer=3, n_head=6, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    model = GPT2LMHeadModel(config)
    args = TrainingArguments(
        output_dir="out",
        max_steps=int(os.environ.get("PLANTED_STEPS", 60)),
        per_device_train_batch_size=16,
        learning_rate=1e-3,
        warmup_steps=10,
        save_strategy="no",
        logging_steps=25,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        optim="adamw_torch_fused",
        dataloader_pin_memory=False,
        seed=1,
    )
    trainer = Trainer(model=model, args=args, train_dataset=Verse(), data_collator=default_data_collator)
    began = time.time()
    out = trainer.train()
    took = time.time() - began
    print("sample:", " ".join(str(t) for t in recite(model, [3, 5, 7])))
    print(f"{trainer.state.global_step} steps in {took:.2f}s, loss {out.training_loss:.4f}")


if __name__ == "__main__":
    main()
