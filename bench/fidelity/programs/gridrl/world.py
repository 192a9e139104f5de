"""A robot on a 6 x 6 floor looks for a parcel; walls stop it, each step costs a little."""
import numpy as np
import torch

SIZE, LIMIT = 6, 20
MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])
WALLS = np.zeros((SIZE, SIZE), dtype=bool)
WALLS[1, 1:4] = WALLS[3, 2:5] = WALLS[4, 1] = True
FREE = np.argwhere(~WALLS)


class Floor:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self):
        robot, parcel = self.rng.choice(len(FREE), 2, replace=False)
        self.robot, self.parcel, self.age = FREE[robot].copy(), FREE[parcel].copy(), 0

    def observe(self):
        planes = np.zeros((3, SIZE, SIZE), dtype=np.float32)
        planes[0][tuple(self.robot)] = 1
        planes[1][tuple(self.parcel)] = 1
        planes[2][WALLS] = 1
        return torch.from_numpy(planes.reshape(-1))

    def step(self, action):
        there = self.robot + MOVES[action]
        if (there >= 0).all() and (there < SIZE).all() and not WALLS[tuple(there)]:
            self.robot = there
        self.age += 1
        found = bool((self.robot == self.parcel).all())
        done = found or self.age == LIMIT
        if done:
            self.reset()
        return (1.0 if found else -0.04), done, found


class Floors:
    """Several floors that are stepped together."""

    def __init__(self, count, seed):
        self.floors = [Floor(seed + i) for i in range(count)]

    def observe(self):
        return torch.stack([floor.observe() for floor in self.floors])

    def step(self, actions):
        rewards, dones, founds = [], [], []
        for floor, action in zip(self.floors, actions):
            reward, done, found = floor.step(int(action))
            rewards.append(reward)
            dones.append(float(done))
            founds.append(found)
        return rewards, dones, founds

    def state(self):
        return [(f.rng.bit_generator.state, f.robot.tolist(), f.parcel.tolist(), f.age) for f in self.floors]

    def restore(self, state):
        for floor, (rng, robot, parcel, age) in zip(self.floors, state):
            floor.rng.bit_generator.state = rng
            floor.robot, floor.parcel, floor.age = np.array(robot), np.array(parcel), age
