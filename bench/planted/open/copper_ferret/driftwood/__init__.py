from .meters import ClickMeter
from .nets import TwoTower
from .trainer import Trainer
