import json
import os

from transformers import TrainingArguments


def training_arguments(path="args.json") -> TrainingArguments:
    with open(path) as file:
        values = json.load(file)
    if os.environ.get("PLANTED_FIX") == "1":
        values["save_steps"] = 1000
    values["max_steps"] = int(os.environ.get("PLANTED_STEPS", values["max_steps"]))
    return TrainingArguments(**values)
