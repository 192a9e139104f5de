import os

import torch

from experiment import Experiment
from hamiltonian import Energy
from orbits import survey

torch.set_num_threads(1)
torch.manual_seed(16)
Experiment(Energy(), survey()).run(int(os.environ.get("PLANTED_STEPS", 650)))
