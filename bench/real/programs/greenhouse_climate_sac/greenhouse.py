"""A greenhouse to be kept warm and humid enough through a day: heating, vents and misting are the actions."""
import math

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class GreenhouseEnv(gym.Env):
    """Temperature and humidity under sun and wind; the price of energy changes with the hour."""

    metadata = {"render_modes": []}

    def __init__(self, minutes_per_step=6, target_temperature=22.0, target_humidity=0.65):
        super().__init__()
        self.dt = minutes_per_step / 60.0
        self.steps_per_day = int(24 / self.dt)
        self.target_temperature, self.target_humidity = target_temperature, target_humidity
        self.action_space = spaces.Box(-1.0, 1.0, shape=(3,), dtype=np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, shape=(10,), dtype=np.float32)

    def _weather(self, hour):
        sun = max(0.0, math.sin(math.pi * (hour - 6) / 12)) * self.clearness
        outside = self.mean_outside + 6 * math.sin(math.pi * (hour - 9) / 12)
        return sun, outside

    def _price(self, hour):
        return 1.6 if 17 <= hour < 21 else (0.7 if hour < 6 else 1.0)

    def _observation(self):
        hour = (self.start_hour + self.t * self.dt) % 24
        sun, outside = self._weather(hour)
        return np.array([
            (self.temperature - self.target_temperature) / 10, (self.humidity - self.target_humidity) * 4,
            (outside - 10) / 10, sun, self.wind, self._price(hour),
            math.sin(2 * math.pi * hour / 24), math.cos(2 * math.pi * hour / 24),
            *self.last_action[:2]], dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        rng = self.np_random
        self.t = 0
        self.start_hour = rng.uniform(0, 24)
        self.clearness = rng.uniform(0.2, 1.0)
        self.mean_outside = rng.normal(8, 5)
        self.wind = abs(rng.normal(0, 0.5))
        self.temperature = rng.normal(18, 3)
        self.humidity = float(np.clip(rng.normal(0.6, 0.1), 0.2, 0.95))
        self.last_action = np.zeros(3, dtype=np.float32)
        return self._observation(), {}

    def step(self, action):
        heat, vent, mist = (np.clip(action, -1, 1) + 1) / 2
        hour = (self.start_hour + self.t * self.dt) % 24
        sun, outside = self._weather(hour)
        self.wind = max(0.0, 0.95 * self.wind + 0.05 * abs(self.np_random.normal(0, 1)))
        exchange = 0.25 + 1.5 * vent * (1 + self.wind)
        self.temperature += self.dt * (9 * heat + 10 * sun + exchange * (outside - self.temperature) - 3 * mist)
        self.humidity += self.dt * (0.5 * mist + 0.1 * sun - 0.4 * exchange * (self.humidity - 0.45))
        self.humidity = float(np.clip(self.humidity, 0.0, 1.0))
        off_temperature = abs(self.temperature - self.target_temperature)
        off_humidity = abs(self.humidity - self.target_humidity)
        change = float(np.abs(np.asarray(action) - self.last_action).mean())
        reward = 1.0 - 0.15 * off_temperature - 1.5 * off_humidity - 0.2 * self._price(hour) * heat - 0.05 * change
        self.last_action = np.asarray(action, dtype=np.float32)
        self.t += 1
        frozen = bool(self.temperature < 0 or self.temperature > 45)
        if frozen:
            reward -= 20.0
        return self._observation(), float(reward), frozen, self.t >= self.steps_per_day, {}
