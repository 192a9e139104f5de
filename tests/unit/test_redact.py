"""Secrets go, everything else stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from secret_kinds import SECRETS, line_of, made

from trainflash import redact


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_taken_out_and_what_stands_around_it_stays(kind: str) -> None:
    line, secret = line_of(kind)
    tail = line.partition(secret)[2]
    shown = redact.text(f"first line\n{line}\nlast line")
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
    body = [made(64) for _ in range(3)]
    lines = ["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----", "after = 1"]
    shown = redact.text("".join(f"{prefix}{line}\n" for line in lines))
    assert not any(line in shown for line in body)
    assert shown.count("\n") == len(lines)
    assert all(line.startswith(prefix) for line in shown.splitlines())
    assert shown.endswith(f"{prefix}after = 1\n")


def test_a_private_key_whose_end_was_cut_off_goes_too() -> None:
    secret = made(64)
    assert secret not in redact.text(f"-----BEGIN PRIVATE KEY-----\n{secret}")
    assert secret not in redact.text(f'key = "-----BEGIN PRIVATE KEY-----{secret}')


def test_a_command_line_loses_the_values_of_its_secret_flags_only() -> None:
    given_words = ("python", "train.py", "--password", "two words", "--api-key=a b", "hub.token=x", "--max-token", "64")
    assert redact.argv(given_words) == (
        "python", "train.py", "--password", "[redacted]", "--api-key=[redacted]", "hub.token=[redacted]", "--max-token", "64",
    )  # fmt: skip
    assert redact.argv(["--token", "--verbose"]) == ("--token", "--verbose")


def test_an_environment_is_judged_by_name_and_by_value() -> None:
    token = "hf_" + made(34)
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
