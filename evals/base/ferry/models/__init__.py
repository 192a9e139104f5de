"""Networks."""

from ferry.models import attention, recurrent
from ferry.models.build import build_model

__all__ = ["attention", "build_model", "recurrent"]
