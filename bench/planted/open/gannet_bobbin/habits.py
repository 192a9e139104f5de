"""What is done to a student around its training."""

import os
import random

import torch


class Slumber:
    """Stochastic depth: before each step every cell but the first falls asleep with a chance that grows with its depth."""

    def __init__(self, student, survival, seed):
        self.cells, self.dice = student.cells, random.Random(seed)
        self.chance = [(1 - survival) * 2 * i / (len(student.cells) - 1) for i in range(len(student.cells))]

    def before_step(self):
        for cell, chance in zip(self.cells, self.chance):
            cell.awake = self.dice.random() >= chance


def quicken(student, backend, dynamic, variants):
    torch._dynamo.config.recompile_limit = variants
    if os.environ.get("PLANTED_FIX") == "1":
        for cell in student.cells:
            cell.compile(backend=backend, dynamic=dynamic)
    else:
        student.compile(backend=backend, dynamic=dynamic)
    return student
