"""Secrets of many kinds, made up at run time, so that no scanner finds one in this file."""

from __future__ import annotations

import random
import string

_RANDOM = random.Random(7)
_WORD = string.ascii_letters + string.digits


def made(n: int, alphabet: str = _WORD) -> str:
    """A word of `n` characters with a digit and a letter in it."""
    return "9" + "".join(_RANDOM.choice(alphabet) for _ in range(n - 2)) + "a"


def letters(n: int) -> str:
    return "".join(_RANDOM.choice(string.ascii_letters) for _ in range(n))


def digits(n: int) -> str:
    return "7" + "".join(_RANDOM.choice(string.digits) for _ in range(n - 1))


_HEX = "0123456789abcdef"
# what stands before the secret, and the secret, in the form that its issuer gives it
SECRETS = {
    "aws id": ("AKIA" + made(16, string.ascii_uppercase).upper().replace("9", "Q"), ""),
    "aws secret": ("aws_secret_access_key = ", made(40)),
    "github": ("", "ghp_" + made(36)),
    "github fine-grained": ("", "github_pat_" + made(22) + "_" + made(59)),
    "gitlab": ("", "glpat-" + made(20)),
    "hugging face": ("", "hf_" + letters(34)),
    "wandb variable": ("WANDB_API_KEY=", made(40, _HEX)),
    "wandb login": ("wandb login ", made(40, _HEX)),
    "wandb call": ('wandb.login(key="', made(40, _HEX)),
    "openai": ("", "sk-proj-" + made(74) + "T3BlbkFJ" + made(74)),
    "openai old": ("", "sk-" + made(20) + "T3BlbkFJ" + made(20)),
    "anthropic": ("", "sk-ant-api03-" + made(93) + "AA"),
    "slack": ("", "xoxb-" + digits(12) + "-" + digits(12) + "-" + made(24)),
    "slack hook": ("https://hooks.slack.com/services/", "T0ABCDEFG/B0ABCDEFG/" + made(24)),
    "google": ("", "AIza" + made(35)),
    "azure": ("DefaultEndpointsProtocol=https;AccountName=me;AccountKey=", made(86) + "=="),
    "jwt": ("", "eyJ" + made(30) + ".eyJ" + made(40) + "." + made(43)),
    "url": ("git clone https://me:", "pa55"),
    "bearer": ("Authorization: Bearer ", made(32)),
    "npm": ("", "npm_" + made(36)),
    "pypi": ("", "pypi-AgEIcHlwaS5vcmc" + made(90)),
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
    "temporary aws": ("export AWS_SESSION_TOKEN=", made(120)),
    "database": ("PGPASSWORD=", "hunter2-db"),
    "tracking server": ("MLFLOW_TRACKING_PASSWORD=", "hunter2-mlflow"),
    "mongodb": ("mongodb+srv://trainer:", "pa55w0rd"),
    "neptune": ("", "eyJhcGlfYWRkcmVzcyI6" + made(90)),
    "kaggle": ('{"username":"me","key":"', made(32, _HEX)),
    "comet": ("COMET_API_KEY: ", made(25)),
    "groq": ("", "gsk_" + made(52)),
    "nvidia": ("", "nvapi-" + made(64)),
    "replicate": ("", "r8_" + made(37)),
    "perplexity": ("", "pplx-" + made(48)),
    "vault": ("", "hvs." + made(95)),
    "grafana": ("", "glsa_" + made(32) + "_" + made(8, _HEX)),
    "sentry": ("", "sntrys_" + made(60)),
    "doppler": ("", "dp.pt." + made(43)),
    "pulumi": ("", "pul-" + made(40, _HEX)),
    "linear": ("", "lin_api_" + made(40)),
    "notion": ("", "ntn_" + made(46)),
    "postman": ("", "PMAK-" + made(24, _HEX) + "-" + made(34, _HEX)),
    "atlassian": ("", "ATATT3" + made(186)),
    "prefect": ("", "pnu_" + made(36)),
    "shopify": ("", "shpat_" + made(32, _HEX)),
    "airtable": ("", "pat" + made(14) + "." + made(64, _HEX)),
    "alibaba": ("", "LTAI" + made(20)),
    "microsoft entra": ("client secret ", made(3) + "8Q~" + made(34)),
    "age": ("", "AGE-SECRET-KEY-1" + made(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L").upper()),
    "twilio": ("TWILIO_AUTH_TOKEN=", made(32, _HEX)),
    "docker hub": ("", "dckr_pat_" + made(27)),
    "digitalocean": ("", "dop_v1_" + made(64, _HEX)),
    "telegram": ("", digits(10) + ":AA" + made(33)),
}


def line_of(kind: str) -> tuple[str, str]:
    """A line as a program would print it, and the secret in it."""
    before, secret = SECRETS[kind]
    if not secret:
        before, secret = "", before
    tail = "@host/repository.git" if kind in ("url", "mongodb") else '"' if before.endswith('"') else ""
    return f"{before}{secret}{tail}", secret
