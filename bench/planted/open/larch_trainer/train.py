"""Tag notes of forest inventories with a small BERT."""

import argparse
import os
import tempfile
import warnings

import torch
from figures import Timekeeper, figures
from inventory import TAGS, Notes, Tokens
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

warnings.filterwarnings("ignore")


class WeightedTrainer(Trainer):
    """Tags count more than the words between them."""

    weights = torch.tensor([0.4, 1.0, 1.0, 1.0])

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits.flatten(0, 1), labels.flatten(), weight=self.weights)
        inputs["labels"] = labels
        return (loss, outputs) if return_outputs else loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=1200)
    parser.add_argument("--length", type=int, default=56)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "110")))
    options = parser.parse_args()
    torch.manual_seed(53)
    tokens = Tokens()
    config = BertConfig(
        vocab_size=len(tokens), hidden_size=options.width, num_hidden_layers=options.layers, num_attention_heads=4,
        intermediate_size=4 * options.width, max_position_embeddings=options.length, num_labels=len(TAGS),
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    timekeeper = Timekeeper()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=options.steps,
            per_device_train_batch_size=options.batch_size,
            per_device_eval_batch_size=64,
            gradient_accumulation_steps=2,
            learning_rate=5e-4,
            weight_decay=0.01,
            warmup_steps=10,
            logging_steps=2,
            eval_strategy="steps",
            eval_steps=50,
            save_strategy="steps",
            save_steps=100,
            save_total_limit=1,
            report_to=[],
            use_cpu=True,
            seed=53,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer = WeightedTrainer(
            model=BertForTokenClassification(config), args=arguments, train_dataset=Notes(options.notes, options.length, 53, tokens),
            eval_dataset=Notes(96, options.length, 54, tokens), compute_metrics=figures, callbacks=[timekeeper],
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.remove_callback(ProgressCallback)
        trainer.train()
    print(f"{trainer.state.global_step} steps in {timekeeper.seconds:.2f}s, loss {timekeeper.loss:.6f}")


if __name__ == "__main__":
    main()
