"""Input that is not what it looks like at first: several loaders, samplers, pools of threads, busy machines."""

from __future__ import annotations

from dataclasses import replace

import scenarios as s

from trainflash.diagnosis import diagnose
from trainflash.schema import Finding, Summary


def first(summary: Summary) -> Finding:
    return diagnose(summary).findings[0]


def test_of_two_training_loaders_the_one_that_is_waited_for_is_judged():
    slow = s.loader(id=0, fetch_cpu_share=0.014, getitem_ms=s.spread(46.6), wait_s=3.6)
    fast = s.loader(id=1, fetch_cpu_share=1.0, getitem_ms=s.spread(0.1), wait_s=0.01)
    for loaders in ((slow, fast), (fast, slow)):
        assert first(replace(s.slow_getitem(0.9), loaders=loaders)).kind == "input_io"
