"""Facts beside the phases, collected only for a diagnosis: settings, batches, threads, log lines, source lines."""

from __future__ import annotations

import sys
from threading import get_ident

from ..parts import parameters_in
from ..phases import logs
from ..phases.loop import loop
from ..phases.observer import Observer
from ..writer import fact
from . import ahead, collectives, compute, lines, peaks, sources, tokenized, wrappers, written  # noqa: F401 (the end of the process asks for `peaks`)
from .batches import BatchFacts
from .beside import Beside
from .between import Between
from .closer import CloserLook
from .forwards import ForwardWatch
from .modes import ModeFacts
from .settings import SettingFacts
from .settings import install as install_settings
from .threads import ThreadFacts

_PACKAGES = ("numpy", "transformers", "accelerate", "lightning", "pytorch_lightning", "datasets", "timm", "torchvision", "deepspeed")


class Once(Observer):
    """What needs to be said once: the device, versions; and the line sampler, which begins with the first backward."""

    def __init__(self) -> None:
        self._sampling = False
        self._device = None

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """Start to sample; remember where the model lives."""
        self._sample()
        parameter = next(parameters_in(module), None)
        if parameter is not None:
            self._device = parameter.device

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """The training thread is known now."""
        self._sample()
        lines.watch(get_ident())

    def _sample(self) -> None:
        if not self._sampling:
            self._sampling = True
            lines.start(loop.tid)

    def on_boundary(self, step: int) -> None:
        """Tell once, then listen no more."""
        loop.remove(self.on_forward, self.on_backward, self.on_boundary)
        ahead.tell()
        fact("device", device=self._device_name())
        versions = {name: str(getattr(sys.modules[name], "__version__", "")) for name in _PACKAGES if name in sys.modules}
        fact("versions", versions=versions)
        sources.write()
        sources.names()

    def _device_name(self) -> str:
        device = self._device
        if device is None or device.type != "cuda":
            return "cpu" if device is None else str(device.type)
        return f"cuda:{sys.modules['torch'].cuda.get_device_name(device)}"

    def on_exit(self) -> None:
        """Signals must end before their handler does; modules may have been imported since the first step."""
        lines.stop()
        if self._sampling:
            sources.names()


def install(torch) -> None:
    """Add the collectors."""
    install_settings(torch)
    lines.prepare()
    ahead.begin()
    collectives.install(torch)
    wrappers.install(torch)
    written.install()
    tokenized.install()
    collectors = (Once(), logs.tally, BatchFacts(), SettingFacts(torch), ModeFacts(torch), ThreadFacts(torch), Beside(), ForwardWatch())
    for observer in (*collectors, Between(torch), CloserLook(), compute.install(torch)):
        loop.add(observer)
