import json
import os
from importlib import resources

from .duel import Duel

recipe = json.loads(resources.files(__package__).joinpath("recipe.json").read_text())
Duel(recipe).play(int(os.environ.get("PLANTED_STEPS", recipe["steps"])))
