"""Which code is the owner's: inside the roots of TRAINFLASH_OWN, outside installed packages."""

from __future__ import annotations

import functools
import opcode
import os
import sys
import types

PROBE = os.path.dirname(os.path.abspath(__file__))
_CWD = os.getcwd()
_FOREIGN = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_given = [entry for entry in os.environ.get("TRAINFLASH_OWN", "").split(os.pathsep) if entry] or [_CWD]
# Own: common ones that compute on arrays, tables, texts and pictures, and never with tensors of torch.
_LIBRARIES = """
numpy scipy sklearn pandas polars statsmodels networkx numba joblib PIL cv2 skimage imageio matplotlib seaborn plotly bokeh librosa
soundfile nltk sacrebleu rouge_score jiwer seqeval editdistance Levenshtein rapidfuzz pycocotools shapely pyarrow h5py xgboost lightgbm
"""
LIBRARIES = frozenset(_LIBRARIES.split())
_RESUME = bytes((opcode.opmap["RESUME"], 0)) if "RESUME" in opcode.opmap else None  # of a function's beginning; Python 3.11 and newer
DEEPEST = 4000  # frames that are looked at: a look at one takes a tenth of a microsecond, and recursion may be deeper
_LONGEST_ENTRY = 1024  # bytes: cells of closures are made before it, two bytes each
_roots = tuple({os.path.join(path, "") for entry in _given for path in (os.path.abspath(entry), os.path.realpath(entry))})


def path_of(code) -> str:
    """Absolute path of the file that `code` was compiled from."""
    return absolute(code.co_filename)


def absolute(name: str) -> str:
    """Absolute path of a file as code or a module names it."""
    return os.path.normpath(os.path.join(_CWD, name))


def is_own(code) -> bool:
    """True when `code` is the owner's."""
    return inside(code.co_filename) is not None


@functools.lru_cache(maxsize=None)
def inside(name: str):
    """Path below the owner's root of a file, named as code or a module names it; None for what is not the owner's; remembered."""
    if type(name) is not str or name.startswith("<"):  # of another class: a passage to a function that is bracketed
        return None
    path = absolute(name)
    root = next((root for root in _roots if path.startswith(root)), None)
    if root is None or path.startswith(PROBE) or any(part in path[len(root) - 1 :] for part in _FOREIGN):
        return None
    return path[len(root) :]


def name_of(code) -> str:
    """Qualified name where this Python knows it."""
    return getattr(code, "co_qualname", code.co_name)


def line_of(frame) -> int:
    """The line at which a frame stands; on its way from one to another, as at the end of a loop's turn, that of the code in front."""
    line = frame.f_lineno
    return _line_before(frame.f_code, frame.f_lasti) if line is None else line


@functools.lru_cache(maxsize=1024)
def _line_before(code, at: int) -> int:
    found = code.co_firstlineno
    for begin, _, line in code.co_lines():
        if begin > at:
            break
        found = line or found
    return found


def place_of_frame(frame) -> list:
    """[file, line, function] of a frame."""
    return [path_of(frame.f_code), line_of(frame), name_of(frame.f_code)]


def own_frame(frame, ends=None):
    """The innermost frame of the owner's code at or outside `frame`; None when there is none, or code that `ends` says ends the search.

    No further than `DEEPEST` frames.
    """
    for _ in range(DEEPEST):
        if frame is None:
            return None
        if is_own(frame.f_code):
            return frame
        if ends is not None and ends(frame.f_code):
            return None
        frame = frame.f_back
    return None


def imports(code) -> bool:
    """Whether this is Python's own code that imports a module: what runs below it runs once."""
    return code.co_filename.startswith("<frozen importlib")


def library_below(frame, owner) -> str:
    """The library that the owner's frame has called, where from there to the leaf `frame` nothing of torch runs; "" for one that may."""
    below = ""
    while frame is not None and frame is not owner:
        below = str(dict.get(frame.f_globals, "__name__", "")).partition(".")[0]
        if below == "torch":
            return ""
        frame = frame.f_back
    return below if below in LIBRARIES else ""


def ran(frame):
    """The frame that ran until now: the one outside `frame` where that has only just been entered; see `was_running`."""
    return frame.f_back or frame if frame is not None and _just_entered(frame) else frame


def was_running(frame, ends=None):
    """The owner's frame that ran until now: the one outside `frame` where that has only just been entered, and nothing of it has run.

    The interpreter looks for signals where it enters a function, so what C did until it called a hook would count for the hook.
    """
    if frame is None or not _just_entered(frame):
        return frame
    return own_frame(frame.f_back, ends) or frame


def _just_entered(frame) -> bool:
    at = frame.f_lasti
    if _RESUME is None:
        return at < 0
    return 0 <= at < _LONGEST_ENTRY and frame.f_code.co_code[at : at + 2] == _RESUME


def caller() -> list:
    """[file, line, function] of the owner's line that led here; None without one."""
    frame = own_frame(sys._getframe(1))
    return None if frame is None else place_of_frame(frame)


def place_of_function(function) -> list:
    """[file, first line, qualified name] of a Python function or method; None for anything else."""
    code = code_of(function)
    return None if code is None else place_of_code(code)


def place_of_code(code) -> list:
    """[file, first line, qualified name]."""
    return [path_of(code), code.co_firstlineno, name_of(code)]


def code_of(function: object):
    """The code of a Python function or method; None for anything else."""
    if type(function) in (types.MethodType, staticmethod, classmethod):
        function = function.__func__
    return function.__code__ if type(function) is types.FunctionType else None
