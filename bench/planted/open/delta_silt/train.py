"""Train the mapper with the Trainer of transformers."""

import os
import tempfile
import time

import transformers
from mapper import Mapper
from observers import Fragmentation, MapTrainer, Overlap, Table
from scenes import CLASSES, Scenes
from transformers import PrinterCallback, TrainingArguments

transformers.logging.set_verbosity_error()


def mean_overlap(prediction) -> dict[str, float]:
    predicted, truth = prediction.predictions.argmax(1), prediction.label_ids
    scores = []
    for number in range(len(CLASSES)):
        mine, right = predicted == number, truth == number
        scores.append((mine & right).sum() / max((mine | right).sum(), 1))
    return {"overlap": float(sum(scores) / len(scores))}


def main() -> None:
    transformers.set_seed(13)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=int(os.environ.get("PLANTED_STEPS", "300")), per_device_train_batch_size=8,
            per_device_eval_batch_size=16, learning_rate=4e-3, lr_scheduler_type="cosine", warmup_steps=10,
            logging_steps=20, eval_strategy="steps", eval_steps=100, save_strategy="no", use_cpu=True, seed=13,
            disable_tqdm=True, report_to=[], dataloader_num_workers=0, max_grad_norm=1.0,
        )  # fmt: skip
        watchers = [Fragmentation(), Overlap()]
        trainer = MapTrainer(
            model=Mapper(), args=arguments, train_dataset=Scenes(160, 64, 13), eval_dataset=Scenes(16, 64, 14),
            compute_metrics=mean_overlap, callbacks=[*watchers, Table()],
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        for watcher in watchers:
            watcher.trainer = trainer
        began = time.perf_counter()
        trainer.train()
        print(f"{trainer.state.global_step} steps in {time.perf_counter() - began:.2f}s, loss {trainer.last_loss:.6f}")


if __name__ == "__main__":
    main()
