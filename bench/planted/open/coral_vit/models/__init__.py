from . import reef_vit  # noqa: F401
from .registry import create_model

__all__ = ["create_model"]
