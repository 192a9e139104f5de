"""Trainer presets by name; a project takes one and adds to it."""

import os

FIXED = os.environ.get("PLANTED_FIX") == "1"

QUIET = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
}

CURRICULUM = {
    **QUIET,
    "max_epochs": -1,
    "gradient_clip_val": 1.0,
    "check_val_every_n_epoch": 12,
    "reload_dataloaders_every_n_epochs": 0 if FIXED else 1,
}

PRESETS = {"quiet": QUIET, "curriculum": CURRICULUM}


def preset(name: str, **changes) -> dict:
    return {**PRESETS[name], **changes}
