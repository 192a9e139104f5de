import gc
import random


class Cell:
    def __init__(self, place):
        self.place, self.doors, self.visits = place, [], {}


class Maze:
    def __init__(self, side, seed=0):
        rng = random.Random(seed)
        self.side = side
        self.cells = {(x, y): Cell((x, y)) for x in range(side) for y in range(side)}
        for (x, y), cell in self.cells.items():
            for step in ((x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1)):
                if step in self.cells and rng.random() < 0.8:
                    cell.doors.append(self.cells[step])

    def walk(self, rng, length):
        cell, seen = self.cells[rng.randrange(self.side), rng.randrange(self.side)], []
        for _ in range(length):
            choice = rng.randrange(4)
            goal = cell.doors[choice % len(cell.doors)] if cell.doors else cell
            seen.append((*cell.place, *goal.place, choice))
            cell = goal
        return seen


class Episode:
    """What is made within an episode is gone after it."""

    tidy = 1

    def __init__(self, number):
        self.number = number

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.number % self.tidy == 0:
            gc.collect()
