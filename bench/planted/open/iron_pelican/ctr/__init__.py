from .data import ClickData
from .model import ClickModel
from .trainer import Trainer

__all__ = ["ClickData", "ClickModel", "Trainer"]
