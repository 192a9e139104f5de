"""What a part of the probe may be told about the training: one method an occasion, all of them optional."""

from __future__ import annotations


class TrainFlashStop(SystemExit):
    """Raised at a step boundary, on the training thread, to end the program early with exit code 0.

    It is a `SystemExit`, so `finally` blocks and `atexit` functions of the program run, and `except Exception` lets it pass.
    """


class Observer:
    """Base of the pacer and the training recorder.

    All methods run on the training thread, synchronously. An exception is counted and swallowed by the caller; only
    `TrainFlashStop`, raised from `on_boundary`, reaches the program. The loop calls a method only if a subclass overrides it.
    """

    def on_batch(self, loader_id: int, batch: object, role: str) -> None:
        """A batch reached the training process; `role` is "train", "eval" or "unknown". A data function has `loader_id` -1."""

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """A root module's forward, before it runs."""

    def on_forward_end(self, module: object, result: object) -> None:
        """What that forward returned; not told when it raised."""

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """The tuple of tensors that backward is called on, before it runs (a scaled loss is seen scaled)."""

    def on_pass(self) -> None:
        """Training draws from another iterator than before, or for the first time from one: told within its first backward."""

    def on_update_begin(self, optimizer: object) -> None:
        """Before the work of one `optimizer.step`."""

    def on_update(self, optimizer: object) -> None:
        """After it; once for each `optimizer.step` that returned."""

    def on_boundary(self, step: int) -> None:
        """`step` steps are complete. May raise `TrainFlashStop`."""

    def on_look(self, step: int) -> None:
        """At a boundary now and then: every eighth while steps are short, each while they are long."""

    def on_interval(self, step: int) -> None:
        """At the first boundary and about every two seconds: write cumulative figures, of which a reader takes the newest."""

    def on_eval(self, begin: bool) -> None:
        """An evaluation begins (True) or is over (False)."""

    def on_checkpoint(self, obj: object, target: object) -> None:
        """`torch.save`, `safetensors.torch.save_file` and the like, before anything is written."""

    def on_log(self, source: str) -> None:
        """A log call of the program: "print", "logging", "tensorboard", "wandb" and the like."""

    def on_exit(self) -> None:
        """The interpreter shuts down in an orderly way."""
