"""Entry of the probe into the user's interpreter: almost nothing until torch is imported.

Chains to the `sitecustomize` that it shadows. Does not enter under `python -I` or `-E`, or where a child resets PYTHONPATH.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


class _UntilTorch:
    """A finder that hands every import on, and wraps the loader of torch."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch":
            return None
        try:
            from trainflash_probe import finders
        except Exception:
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not _UntilTorch]
            return None
        return finders.first_torch_spec(_UntilTorch, name, path, target)


def _chain():
    from _frozen_importlib_external import PathFinder

    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = type(sys)("sitecustomize")
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("TRAINFLASH_RUN"):
    sys.meta_path.insert(0, _UntilTorch)
    if os.environ.get("TRAINFLASH_COPY"):
        from trainflash_probe import redirect

        redirect.install()
_chain()
if os.environ.get("TRAINFLASH_RUN") and os.environ.get("TRAINFLASH_LINES"):
    try:
        from trainflash_probe.record import ran

        ran.begin()
    except Exception:  # the run has no `begun` then, and nobody says anything of its lines
        sys.settrace(None)
