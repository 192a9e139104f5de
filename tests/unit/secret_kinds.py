"""Secrets of many kinds, made up at run time, so that no scanner finds one in this file."""

from __future__ import annotations

import random
import string

_RANDOM = random.Random(7)
_WORD = string.ascii_letters + string.digits


def made(n: int, alphabet: str = _WORD) -> str:
    """A word of `n` characters with a digit and a letter in it."""
    return "9" + "".join(_RANDOM.choice(alphabet) for _ in range(n - 2)) + "a"


_HEX = "0123456789abcdef"
# what stands before the secret, and the secret
SECRETS = {
    "aws id": ("AKIA" + made(16, string.ascii_uppercase).upper().replace("9", "Q"), ""),
    "aws secret": ("aws_secret_access_key = ", made(40)),
    "github": ("", "ghp_" + made(36)),
    "github fine-grained": ("", "github_pat_" + made(22) + "_" + made(59)),
    "gitlab": ("", "glpat-" + made(20)),
    "hugging face": ("", "hf_" + made(34)),
    "wandb variable": ("WANDB_API_KEY=", made(40, _HEX)),
    "wandb login": ("wandb login ", made(40, _HEX)),
    "wandb call": ('wandb.login(key="', made(40, _HEX)),
    "openai": ("", "sk-proj-" + made(48)),
    "openai old": ("", "sk-" + made(48)),
    "anthropic": ("", "sk-ant-api03-" + made(93) + "AA"),
    "slack": ("", "xoxb-" + made(12, string.digits) + "-" + made(24)),
    "slack hook": ("https://hooks.slack.com/services/", "T0000000/B0000000/" + made(24)),
    "google": ("", "AIza" + made(35)),
    "azure": ("DefaultEndpointsProtocol=https;AccountName=me;AccountKey=", made(86) + "=="),
    "jwt": ("", "eyJ" + made(30) + ".eyJ" + made(40) + "." + made(43)),
    "url": ("git clone https://me:", "pa55"),
    "bearer": ("Authorization: Bearer ", made(32)),
    "npm": ("", "npm_" + made(36)),
    "pypi": ("", "pypi-" + made(90)),
    "stripe": ("", "sk_live_" + made(24)),
    "sendgrid": ("", "SG." + made(22) + "." + made(43)),
    "databricks": ("", "dapi" + made(32, _HEX)),
    "flag": ("train.py --password ", "hunter2"),
    "flag with =": ("train.py --hf-api-key=", "hunter2"),
    "shell": ("MY_TOKEN=", "hunter2"),
    "yaml": ("db:\n  password: ", "hunter2"),
    "json": ('{"client_secret": "', "hunter2"),
    "python": ('os.environ["HF_TOKEN"] = "', "hunter2"),
    "annotated": ('password: str = "', "hunter2"),
}


def line_of(kind: str) -> tuple[str, str]:
    """A line as a program would print it, and the secret in it."""
    before, secret = SECRETS[kind]
    if not secret:
        before, secret = "", before
    tail = "@host/repository.git" if kind == "url" else '"' if before.endswith('"') else ""
    return f"{before}{secret}{tail}", secret
