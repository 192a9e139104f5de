from .registry import create_model
from . import reef_vit  # noqa: F401

__all__ = ["create_model"]
