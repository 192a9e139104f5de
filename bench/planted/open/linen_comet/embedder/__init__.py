from .config import Config
from .data import ClassBalancedSampler, ProductShapes
from .model import EmbeddingNet
from .trainer import Trainer

__all__ = ["ClassBalancedSampler", "Config", "EmbeddingNet", "ProductShapes", "Trainer"]
