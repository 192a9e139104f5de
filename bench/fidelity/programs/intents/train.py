"""Fine-tunes a small BERT on household requests, with the Hugging Face Trainer."""
import argparse

import torch
import torch.nn.functional as F
from data import INTENTS, PAD, VOCABULARY, Requests, collate, write
from teacher import Counts
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Distilled(Trainer):
    def __init__(self, *arguments, teacher, share=0.5, temperature=2.0, **named):
        super().__init__(*arguments, **named)
        self.teacher, self.share, self.temperature = teacher.eval(), share, temperature

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        loss = F.cross_entropy(outputs.logits, labels, label_smoothing=0.05)
        if model.training:
            with torch.no_grad():
                soft = F.softmax(self.teacher(inputs["input_ids"]) / self.temperature, 1)
            guess = F.log_softmax(outputs.logits / self.temperature, 1)
            distance = F.kl_div(guess, soft, reduction="batchmean") * self.temperature**2
            loss = (1 - self.share) * loss + self.share * distance
        return (loss, outputs) if return_outputs else loss


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(1) == prediction.label_ids).mean())}


def main(resume):
    set_seed(17)
    rows = write(600, 1)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=48, num_labels=len(INTENTS), pad_token_id=PAD,
    )
    model = BertForSequenceClassification(config)
    arguments = TrainingArguments(
        output_dir="outputs",
        num_train_epochs=3,
        per_device_train_batch_size=24,
        per_device_eval_batch_size=50,
        learning_rate=2e-3,
        weight_decay=0.01,
        lr_scheduler_type="cosine",
        warmup_steps=10,
        max_grad_norm=1.0,
        optim="adamw_torch",
        eval_strategy="steps",
        eval_steps=20,
        save_strategy="steps",
        save_steps=20,
        logging_steps=5,
        logging_first_step=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        report_to=[],
        use_cpu=True,
        seed=17,
    )
    trainer = Distilled(
        model=model, args=arguments, train_dataset=Requests(rows), eval_dataset=Requests(write(200, 2)),
        data_collator=collate, compute_metrics=accuracy, teacher=Counts(rows, len(INTENTS)),
    )
    trainer.train(resume_from_checkpoint=resume)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume")
    main(parser.parse_args().resume)
