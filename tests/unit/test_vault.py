"""Secrets of a command lie in the vault alone, and come back from it."""

import os
import stat

import pytest

from trainflash.errors import UsageError
from trainflash.schema import Command
from trainflash.workflow import vault

TOKEN = "hf_" + "a1B2" * 10
COMMAND = Command(
    ("python", "train.py", "--token", TOKEN, "--password=hunter2", "--lr", "0.1"), env={"WANDB_API_KEY": "k" * 40, "SEED": "1"}
)


def test_a_command_comes_back_as_it_was_typed(tmp_path):
    sealed = vault.seal(tmp_path, COMMAND)
    assert not any(secret in repr(sealed) for secret in (TOKEN, "hunter2", "k" * 40))
    assert sealed.argv[:3] == COMMAND.argv[:3] and sealed.argv[-2:] == ("--lr", "0.1")
    assert vault.unseal(tmp_path, sealed) == COMMAND
    assert vault.require(vault.unseal(tmp_path, sealed)) == COMMAND
    assert vault.seal(tmp_path, COMMAND) == sealed
    assert vault.seal(tmp_path, sealed) == sealed


def test_only_the_owner_reads_the_vault_and_no_copy_of_it_stays(tmp_path):
    vault.seal(tmp_path, COMMAND)
    assert os.listdir(tmp_path) == [vault.NAME]
    assert stat.S_IMODE((tmp_path / vault.NAME).stat().st_mode) == 0o600


def test_a_command_without_secrets_needs_no_vault(tmp_path):
    plain = Command(("python", "train.py", "--max-tokens", "64"))
    assert vault.seal(tmp_path, plain) is plain
    assert os.listdir(tmp_path) == []


def test_without_the_vault_it_can_be_looked_at_and_not_run(tmp_path):
    sealed = vault.seal(tmp_path, COMMAND)
    (tmp_path / vault.NAME).unlink()
    assert vault.unseal(tmp_path, sealed) == sealed
    with pytest.raises(UsageError, match="secrets of this command are gone"):
        vault.require(sealed)


def test_a_damaged_vault_is_said_so(tmp_path):
    (tmp_path / vault.NAME).write_text("{")
    with pytest.raises(UsageError, match=r"secrets\.json"):
        vault.seal(tmp_path, COMMAND)
