"""A convolution of two long rows by Fourier transforms: numpy's own multiplies each value of one with each of the other."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.which_call import near
from trainflash.knobs.kinds import FftConvolution
from trainflash.knobs.reading.expressions import literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, has_splat, keyword, positional
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

DIRECT = "numpy.convolve"
MODES = ("full", "valid")  # "same" is as long as the longer row in numpy, and as the first in scipy


def fft_convolution(edit: FftConvolution, scene: Scene) -> tuple[Target, ...]:
    """The one direct convolution at the finding's line, or in its function and what that calls.

    Raises `UsageError` without one, and where the program has no scipy.
    """
    file, call = near(scene.project, *scene.source("convolves"), _direct, f"call of {DIRECT}")
    first, second = _rows(file, call)
    if not any(name.split(".")[0] == "scipy" for other in scene.project.parsed("scipy") for name in other.imported.values()):
        raise refuse(f"{file.location(call)}: the program does without scipy, whose function it would be")
    mode = keyword(call, "mode") or positional(call, 2)
    if mode is not None and literal(mode.value) not in MODES:
        raise refuse(f"{file.location(call)}: `{file.text(mode.value)}` means another part of the result in scipy")
    spelled, needed = imports.reach(file, "scipy.signal", "fftconvolve")
    given = [first, second, *([f"mode={file.text(mode.value)}"] if mode is not None else [])]
    splices = (*needed, Splice(file.path, *file.outer_span(call), f"{spelled}({', '.join(given)})"))
    return (Target(file.location(call), None, lambda value: splices, f"the convolution at {file.location(call)}", spelled),)


def _direct(file: PythonFile) -> Iterator[tuple[cst.Call, tuple[PythonFile, cst.Call]]]:
    return ((call, (file, call)) for call in file.calls if file.full_name(call.func) == DIRECT)


def _rows(file: PythonFile, call: cst.Call) -> tuple[str, str]:
    first, second = (positional(call, at) or keyword(call, name) for at, name in enumerate("av"))
    if has_splat(call, "*") or has_splat(call, "**") or first is None or second is None:
        raise refuse(f"{file.location(call)}: what `{short(file.text(call))}` is given cannot be told")
    return file.outer_text(first.value), file.outer_text(second.value)
