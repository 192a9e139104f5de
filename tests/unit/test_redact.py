"""Secrets go, everything else stays. The tokens are made up here at run time, so that no scanner finds one in this file."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainflash import redact

_RANDOM = random.Random(7)
_WORD = string.ascii_letters + string.digits


def _made(n: int, alphabet: str = _WORD) -> str:
    return "9" + "".join(_RANDOM.choice(alphabet) for _ in range(n - 2)) + "a"


_HEX = "0123456789abcdef"
SECRETS = {
    "aws id": ("AKIA" + _made(16, string.ascii_uppercase).upper().replace("9", "Q"), ""),
    "aws secret": ("aws_secret_access_key = ", _made(40)),
    "github": ("", "ghp_" + _made(36)),
    "github fine-grained": ("", "github_pat_" + _made(22) + "_" + _made(59)),
    "gitlab": ("", "glpat-" + _made(20)),
    "hugging face": ("", "hf_" + _made(34)),
    "wandb variable": ("WANDB_API_KEY=", _made(40, _HEX)),
    "wandb login": ("wandb login ", _made(40, _HEX)),
    "wandb call": ('wandb.login(key="', _made(40, _HEX)),
    "openai": ("", "sk-proj-" + _made(48)),
    "openai old": ("", "sk-" + _made(48)),
    "anthropic": ("", "sk-ant-api03-" + _made(93) + "AA"),
    "slack": ("", "xoxb-" + _made(12, string.digits) + "-" + _made(24)),
    "slack hook": ("https://hooks.slack.com/services/", "T0000000/B0000000/" + _made(24)),
    "google": ("", "AIza" + _made(35)),
    "azure": ("DefaultEndpointsProtocol=https;AccountName=me;AccountKey=", _made(86) + "=="),
    "jwt": ("", "eyJ" + _made(30) + ".eyJ" + _made(40) + "." + _made(43)),
    "url": ("git clone https://me:", "pa55"),
    "bearer": ("Authorization: Bearer ", _made(32)),
    "npm": ("", "npm_" + _made(36)),
    "pypi": ("", "pypi-" + _made(90)),
    "stripe": ("", "sk_live_" + _made(24)),
    "sendgrid": ("", "SG." + _made(22) + "." + _made(43)),
    "databricks": ("", "dapi" + _made(32, _HEX)),
    "flag": ("train.py --password ", "hunter2"),
    "flag with =": ("train.py --hf-api-key=", "hunter2"),
    "shell": ("MY_TOKEN=", "hunter2"),
    "yaml": ("db:\n  password: ", "hunter2"),
    "json": ('{"client_secret": "', "hunter2"),
    "python": ('os.environ["HF_TOKEN"] = "', "hunter2"),
    "annotated": ('password: str = "', "hunter2"),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_taken_out_and_what_stands_around_it_stays(kind: str) -> None:
    before, secret = SECRETS[kind]
    if not secret:
        before, secret = "", before
    tail = "@host/repository.git" if kind == "url" else '"' if before.endswith('"') else ""
    shown = redact.text(f"first line\n{before}{secret}{tail}\nlast line")
    assert secret not in shown
    assert redact.REDACTED in shown
    assert shown.startswith("first line\n")
    assert shown.endswith(f"{tail}\nlast line")


@pytest.mark.parametrize(
    "harmless",
    [
        "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
        "index 3b18e512dba79e4c8300dd08aeb37f8e728b8dad..a94a8fe5ccb19ba61c4c0873d391e987982fbbd3 100644",
        "diff_digest: " + "0123456789abcdef" * 4,
        "TOKENIZERS_PARALLELISM=false",
        "loader = DataLoader(data, num_workers=4, pin_memory=True)",
        "tokens = tokenizer(batch, max_length=max_tokens)",
        'tokenizer.pad_token = "<|endoftext|>"',
        "token = tokens[0]",
        "pad_token=tokenizer.eos_token",
        "parser.add_argument('--password', '-p', help='of the store')",
        "login(token=os.environ['HF_TOKEN'])",
        "password = getpass.getpass()",
        "api_key=cfg.api_key",
        "api_key: str | None = None",
        "HF_TOKEN=$HF_TOKEN python train.py",
        "https://github.com/owner/repository.git",
        "git@github.com:owner/repository.git",
        'CACHE_KEY = "features"',
    ],
)
def test_what_is_no_secret_stays(harmless: str) -> None:
    assert redact.text(harmless) == harmless


@pytest.mark.parametrize("prefix", ["", "+", " "])
def test_a_private_key_goes_and_a_diff_keeps_its_lines(prefix: str) -> None:
    body = [_made(64) for _ in range(3)]
    lines = ["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----", "after = 1"]
    shown = redact.text("".join(f"{prefix}{line}\n" for line in lines))
    assert not any(line in shown for line in body)
    assert shown.count("\n") == len(lines)
    assert all(line.startswith(prefix) for line in shown.splitlines())
    assert shown.endswith(f"{prefix}after = 1\n")


def test_a_private_key_whose_end_was_cut_off_goes_too() -> None:
    secret = _made(64)
    assert secret not in redact.text(f"-----BEGIN PRIVATE KEY-----\n{secret}")
    assert secret not in redact.text(f'key = "-----BEGIN PRIVATE KEY-----{secret}')


def test_a_command_line_loses_the_values_of_its_secret_flags_only() -> None:
    given_words = ("python", "train.py", "--password", "two words", "--api-key=a b", "hub.token=x", "--max-token", "64")
    assert redact.argv(given_words) == (
        "python", "train.py", "--password", "[redacted]", "--api-key=[redacted]", "hub.token=[redacted]", "--max-token", "64",
    )  # fmt: skip
    assert redact.argv(["--token", "--verbose"]) == ("--token", "--verbose")


def test_an_environment_is_judged_by_name_and_by_value() -> None:
    token = "hf_" + _made(34)
    assert redact.environment({"WANDB_API_KEY": "short", "NOTES": f"use {token}", "OMP_NUM_THREADS": "1", "HF_TOKEN": ""}) == {
        "WANDB_API_KEY": "[redacted]",
        "NOTES": "use [redacted]",
        "OMP_NUM_THREADS": "1",
        "HF_TOKEN": "",
    }


_PIECES = st.sampled_from(
    [
        "password",
        "token",
        "api_key",
        "=",
        ":",
        " ",
        "\n",
        '"',
        "'",
        "--",
        "x9",
        "hf_",
        "a" * 30,
        "[redacted]",
        "(",
        ")",
        ",",
        "https://",
        "@",
        "sk-",
    ]
)


@given(st.one_of(st.text(max_size=200), st.lists(_PIECES, max_size=25).map("".join)))
def test_twice_is_once_and_lines_are_kept(anything: str) -> None:
    once = redact.text(anything)
    assert redact.text(once) == once
    assert once.count("\n") == anything.count("\n")
