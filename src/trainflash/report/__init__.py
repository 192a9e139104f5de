"""Artefact → text: rich renderables for the terminal, one offline page, Markdown for a pull request.

Reports compute nothing: every figure stands in the artefact that they are given, and a missing one reads "not measured". They do not redact
either; what they are given has been through `trainflash.redact`.
"""

from __future__ import annotations

from trainflash.report import gates, profiles, verified
from trainflash.report.asking import explanation, proposal
from trainflash.report.briefs import brief
from trainflash.report.health import health
from trainflash.report.history import log
from trainflash.report.icicles import Calls
from trainflash.report.live import live
from trainflash.report.outcomes import experiments, fidelity, tune_result, verdict
from trainflash.report.page import html
from trainflash.report.plans import plan
from trainflash.report.pull_request import markdown
from trainflash.report.step_pictures import Steps
from trainflash.report.terminal import diagnosis, diff, error, sandbox
from trainflash.report.tune import Headline, NextStep, TuneView, headline, next_step

__all__ = [
    "Calls", "Headline", "NextStep", "Steps", "TuneView", "brief", "diagnosis", "diff", "error", "experiments", "explanation",
    "fidelity", "gates", "headline", "health", "html", "live", "log", "markdown", "next_step", "plan", "profiles", "proposal",
    "sandbox", "tune_result", "verdict", "verified",
]  # fmt: skip
