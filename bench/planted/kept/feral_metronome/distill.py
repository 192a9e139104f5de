"""Distils a BERT-style teacher into a smaller student with transformers.Trainer."""
import os
import tempfile
import time

import torch
import torch.nn.functional as F
from transformers import (BertConfig, BertForSequenceClassification, Trainer, TrainerCallback,
                          TrainingArguments, set_seed)

from texts import TEAMS, Tickets, Vocabulary, WordDropCollator

STEPS = int(os.environ.get("PLANTED_STEPS", 300))
TEACHER_STEPS = 60


def bert(vocab, hidden, layers, heads):
    return BertForSequenceClassification(BertConfig(
        vocab_size=vocab, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=3 * hidden, max_position_embeddings=64, num_labels=len(TEAMS), pad_token_id=0,
        hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.0,
    ))


def arguments(folder, steps, lr):
    return TrainingArguments(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        learning_rate=lr,
        warmup_steps=10,
        lr_scheduler_type="linear",
        weight_decay=0.01,
        logging_steps=40,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        seed=8,
    )


class Distiller(Trainer):
    def __init__(self, *args, teacher, temperature=2.0, alpha=0.7, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher.eval().requires_grad_(False)
        self.temperature = temperature
        self.alpha = alpha
        self.losses = []

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        targets = self.teacher(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits
        t = self.temperature
        soft = F.kl_div(F.log_softmax(outputs.logits / t, -1), F.log_softmax(targets / t, -1),
                        log_target=True, reduction="batchmean") * t * t
        hard = F.cross_entropy(outputs.logits, inputs["labels"])
        loss = self.alpha * soft + (1 - self.alpha) * hard
        if model.training:
            self.losses.append(loss.item())
        return (loss, outputs) if return_outputs else loss


class Timer(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.time()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.time() - self.start


@torch.no_grad()
def accuracy(model, tickets, collate):
    model.eval()
    hits = 0
    for i in range(0, len(tickets), 64):
        batch = collate([tickets[j] for j in range(i, min(i + 64, len(tickets)))])
        labels = batch.pop("labels")
        hits += (model(**batch).logits.argmax(-1) == labels).sum().item()
    return hits / len(tickets)


def main():
    set_seed(8)
    vocab = Vocabulary()
    train, test = Tickets(3000, vocab, seed=1), Tickets(128, vocab, seed=2)
    collate, plain = WordDropCollator(), WordDropCollator(drop=0.0)
    timer = Timer()

    with tempfile.TemporaryDirectory() as folder:
        teacher = bert(len(vocab), hidden=128, layers=3, heads=4)
        Trainer(teacher, arguments(folder, TEACHER_STEPS, 1e-3), train_dataset=train, data_collator=collate).train()
        print(f"teacher accuracy {accuracy(teacher, test, plain):.3f}")

        set_seed(9)
        student = bert(len(vocab), hidden=96, layers=3, heads=4)
        distiller = Distiller(student, arguments(folder, STEPS, 8e-4), teacher=teacher, train_dataset=train,
                              data_collator=collate, callbacks=[timer])
        distiller.train()
    print(f"student accuracy {accuracy(student, test, plain):.3f}")
    print(f"{distiller.state.global_step} steps in {timer.seconds:.2f} s, loss {distiller.losses[-1]:.6f}")


if __name__ == "__main__":
    main()
