"""A small T5 that rewrites dates and amounts in letters to a normal form, with Seq2SeqTrainer."""
import random
import sys

import numpy as np
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    DataCollatorForSeq2Seq,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    set_seed,
)

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August",
          "September", "October", "November", "December"]
OPENINGS = ["We write to confirm that the delivery arrived on", "The meeting is moved to",
            "Please note that your contract ends", "According to the minutes of",
            "The invoice issued on", "Our records show a payment dated",
            "Following our telephone call of", "The lease signed on"]
MIDDLES = ["for the sum of", "with an outstanding amount of", "and a total of", "at a price of"]
ENDINGS = ["", "in full", "as agreed with the accounts department",
           "which remains due within thirty days of receipt of this letter",
           "subject to the terms set out in the annex to the agreement"]


def written_date(rng, y, m, d):
    name = MONTHS[m - 1]
    return rng.choice([
        f"{d} {name} {y}", f"{name} {d}, {y}", f"{d}/{m}/{y % 100:02d}",
        f"the {d}th of {name}, {y}", f"{name[:3]} {d} {y}", f"{y}.{m}.{d}",
    ])


def make_pairs(n, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        y, m, d = rng.randint(1980, 2029), rng.randint(1, 12), rng.randint(1, 28)
        amount = rng.randint(1, 99999) / 100
        sign = rng.choice(["EUR", "USD", "GBP"])
        source = f"{rng.choice(OPENINGS)} {written_date(rng, y, m, d)}"
        target = f"date {y}-{m:02d}-{d:02d}"
        if rng.random() < 0.6:
            source += f" {rng.choice(MIDDLES)} {sign} {amount:,.2f}"
            target += f" ; amount {amount:.2f} {sign}"
        source += " " + rng.choice(ENDINGS)
        rows.append({"source": source.strip() + ".", "target": target})
    return Dataset.from_list(rows)


def build_tokenizer(texts):
    tok = Tokenizer(models.BPE(unk_token="<unk>"))
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Digits(individual_digits=True)])
    tok.decoder = decoders.Metaspace()
    tok.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=1000, special_tokens=["<pad>", "</s>", "<unk>"]))
    tok.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tok.token_to_id("</s>"))])
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="<pad>", eos_token="</s>",
                                   unk_token="<unk>", model_max_length=128)


def main():
    set_seed(42)
    train, valid = make_pairs(4000, 0), make_pairs(400, 1)
    tokenizer = build_tokenizer(train["source"] + train["target"]
                                if isinstance(train["source"], list)
                                else list(train["source"]) + list(train["target"]))

    def preprocess(batch):
        enc = tokenizer(["normalise: " + s for s in batch["source"]], max_length=128, truncation=True)
        enc["labels"] = tokenizer(text_target=batch["target"], max_length=48, truncation=True)["input_ids"]
        return enc

    train = train.map(preprocess, batched=True, remove_columns=["source", "target"])
    valid = valid.map(preprocess, batched=True, remove_columns=["source", "target"])

    config = T5Config(vocab_size=len(tokenizer), d_model=128, d_kv=32, d_ff=512, num_layers=3,
                      num_heads=4, decoder_start_token_id=tokenizer.pad_token_id,
                      pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id)
    model = T5ForConditionalGeneration(config)

    def compute_metrics(pred):
        preds = np.where(pred.predictions != -100, pred.predictions, tokenizer.pad_token_id)
        labels = np.where(pred.label_ids != -100, pred.label_ids, tokenizer.pad_token_id)
        hyp = tokenizer.batch_decode(preds, skip_special_tokens=True)
        ref = tokenizer.batch_decode(labels, skip_special_tokens=True)
        exact = np.mean([h.strip() == r.strip() for h, r in zip(hyp, ref)])
        chars = np.mean([sum(a == b for a, b in zip(h, r)) / max(len(r), 1) for h, r in zip(hyp, ref)])
        return {"exact_match": float(exact), "char_accuracy": float(chars)}

    args = Seq2SeqTrainingArguments(
        output_dir="out",
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,
        learning_rate=1e-3,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=16,
        num_train_epochs=EPOCHS,
        weight_decay=0.01,
        logging_steps=50,
        predict_with_generate=True,
        generation_max_length=48,
        generation_num_beams=4,
        report_to="tensorboard",
        use_cpu=True,
    )
    trainer = Seq2SeqTrainer(
        model=model,
        args=args,
        train_dataset=train,
        eval_dataset=valid,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        processing_class=tokenizer,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
