"""Run-time settings that have nothing to do with the physics."""

import contextlib
import os
import time
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile, schedule


@dataclass
class RunConfig:
    steps: int = int(os.environ.get("PLANTED_STEPS", 6000))
    seed: int = 6
    trace: bool = os.environ.get("PLANTED_FIX") != "1"
    hunt_nans: bool = False
    hottest: int = 12


class Tracer:
    """Keeps the operators that took longest."""

    def __init__(self, config):
        self.config, self.table = config, {}

    def take(self, prof):
        for row in prof.key_averages():
            self.table[row.key] = self.table.get(row.key, 0) + row.self_cpu_time_total

    def session(self):
        cycle = schedule(wait=2, warmup=1, active=1, repeat=0)
        return profile(activities=[ProfilerActivity.CPU], schedule=cycle, on_trace_ready=self.take, record_shapes=True)

    def hottest(self):
        return sorted(self.table, key=self.table.get, reverse=True)[: self.config.hottest]


@contextlib.contextmanager
def session(config):
    """Seeds, one thread, optionally a hunt for NaN, and something with a step()."""
    torch.manual_seed(config.seed)
    torch.set_num_threads(1)
    with contextlib.ExitStack() as stack:
        if config.hunt_nans:
            stack.enter_context(torch.autograd.detect_anomaly())
        tracer = Tracer(config)
        run = stack.enter_context(tracer.session()) if config.trace else None
        tracer.began = time.perf_counter()
        tracer.step = run.step if run is not None else lambda: None
        yield tracer
