"""Routes permits to offices with the Trainer of transformers."""

import warnings

from transformers import Trainer, set_seed
from transformers.trainer_callback import PrinterCallback

from arguments import training_arguments
from permits import JoinPermits, Permits
from router import Router
from watch import Watch, WeightNorms


class RouterTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        return (outputs["loss"], outputs) if return_outputs else outputs["loss"]


def main():
    warnings.filterwarnings("ignore")
    args = training_arguments()
    set_seed(args.seed)
    model = Router(vocabulary=36000, width=320, layers=2, offices=12)
    watch = Watch()
    trainer = RouterTrainer(
        model=model,
        args=args,
        train_dataset=Permits(2000, 36000, 12, args.seed),
        data_collator=JoinPermits(),
        callbacks=[watch, WeightNorms()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    loss = watch.history[-1] if watch.history else float("nan")
    print(f"{trainer.state.global_step} steps in {watch.seconds:.3f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
