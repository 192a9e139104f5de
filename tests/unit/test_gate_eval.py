"""The evaluation: fixed data, greedy, the same bytes; probes of the promised size; adapters; what is refused."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_gate_bench import ENV
from torch import nn

from trainflash.errors import ProgramFailed, UsageError
from trainflash.fidelity import metric, record
from trainflash.fidelity.reuse import Run
from trainflash.gate.config import EvalConfig
from trainflash.gate.evaluate import adapters, evaluation, probes, shard
from trainflash.gate.evaluate.adapters import adapt
from trainflash.gate.evaluate.evaluation import EvalSmall
from trainflash.schema import GateEval, from_plain
from trainflash.workflow.gates import gating

SIZES = {"basic_reasoning_25": 25, "format_following_30": 30, "code_sanity_20": 20}


def speaking(answers: dict[str, str], default: str = "\n"):
    """A model of bytes that answers each prompt as it is told, and is sure of it."""

    def forward(ids):
        text = bytes(ids).decode("utf-8", "replace")
        rows = np.zeros((len(ids), 256))
        prompt = next((each for each in answers if each in text), None)
        said = text.partition(prompt)[2] if prompt else ""
        answer = answers.get(prompt, default) + "\n"
        rows[-1, answer.encode()[min(len(said.encode()), len(answer.encode()) - 1)]] = 9.0
        return rows

    return adapters.Adapter(
        "told", forward, lambda text: list(text.encode()), lambda ids: bytes(ids).decode("utf-8", "replace"), context=4096
    )


def uniform(ids):
    return np.zeros((len(ids), 256))


def small_shard(tmp_path, text: str = "the quick brown fox " * 20) -> str:
    path = tmp_path / "shard.txt"
    path.write_text(text)
    return str(path)


def evaluated(tmp_path, model, **config) -> GateEval:
    asked = {"fixed_shard_path": small_shard(tmp_path), "probes": (), **config}
    return EvalSmall(EvalConfig(**asked), model, env=ENV).run()


# --- the contract


def test_the_contract_of_the_config():
    config = EvalConfig()
    assert (config.fixed_shard_path, tuple(config.probes)) == ("bench/data/fixed_shard.txt", tuple(SIZES))
    assert (config.temperature, config.seed) == (0.0, 42)


@pytest.mark.parametrize("wrong", [{"probes": ("poetry",)}, {"temperature": 0.7}, {"temperature": math.nan}, {"seed": -1}])
def test_what_cannot_be_asked(wrong):
    with pytest.raises(UsageError):
        EvalSmall(EvalConfig(**wrong), uniform, env=ENV)


# --- items


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_every_probe_has_its_items(name, size):
    items = probes.items(name)
    assert len(items) == len({item.id for item in items}) == len({item.prompt for item in items}) == size
    assert {item.match for item in items} <= {"exact", "regex"}


def right_answer(item: probes.Item) -> str:
    """An answer that is right."""
    return item.example or item.expected


@pytest.mark.parametrize("item", [item for name in SIZES for item in probes.items(name)], ids=lambda item: item.id)
def test_every_item_can_be_passed_and_failed(item):
    right = right_answer(item)
    assert item.passed(right) and item.passed(f" {right}\nand more")
    assert len(f" {right}\n".encode()) <= item.most_tokens, "a model of bytes could not say it"
    assert not item.passed("") and not item.passed(f"{right} because I think so") and not item.passed("i do not know")


def test_the_first_line_counts_and_case_only_where_form_is_asked():
    reasoning, form = probes.items("basic_reasoning_25")[4], probes.items("format_following_30")[0]
    assert reasoning.passed(" carl.\nBecause …") and not reasoning.passed("Carl because")
    assert form.passed("HELLO") and not form.passed("Hello")


def test_a_model_that_knows_is_scored(tmp_path):
    items = probes.items("basic_reasoning_25")
    told = speaking({item.prompt: f" {right_answer(item)}" for item in items[:20]})
    found = evaluated(tmp_path, told, probes=("basic_reasoning_25",)).probes[0]
    assert (found.correct, found.total, found.accuracy) == (20, 25, 80.0)
    assert found.failed == tuple(item.id for item in items[20:])


# --- perplexity


def test_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary(tmp_path):
    found = evaluated(tmp_path, uniform)
    assert found.perplexity == 256.0 and found.loss == pytest.approx(math.log(256), rel=1e-5)


def test_every_token_but_the_first_of_a_window_is_scored_once(tmp_path):
    found = evaluated(tmp_path, adapt(uniform, context=64))
    length = len("the quick brown fox " * 20)
    assert found.max_tokens == 64 and found.tokens == length - math.ceil(length / 64)


def test_perplexity_is_the_tokens_own(tmp_path):
    table = torch.randn(256, 256, generator=torch.Generator().manual_seed(1)).double()
    found = evaluated(tmp_path, adapt(lambda ids: table[list(ids)], context=4096))
    ids = torch.tensor(list(b"the quick brown fox " * 20))
    expected = nn.functional.cross_entropy(table[ids[:-1]], ids[1:])
    assert found.loss == pytest.approx(float(expected), rel=1e-5)


def test_the_same_model_gives_the_same_bytes(tmp_path):
    texts = []
    for name in ("a.json", "b.json"):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Embedding(256, 16), nn.Dropout(0.5), nn.Linear(16, 256))
        torch.rand(len(texts) + 1)  # streams that the evaluation must not depend on
        config = EvalConfig(fixed_shard_path=small_shard(tmp_path), probes=("code_sanity_20",))
        EvalSmall(config, model, env=ENV).save(tmp_path / name)
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1]
    assert from_plain(GateEval, json.loads(texts[0])).tokenizer == "utf-8 bytes"


def test_another_model_gives_another_figure(tmp_path):
    torch.manual_seed(0)
    one, other = (nn.Sequential(nn.Embedding(256, 8), nn.Linear(8, 256)) for _ in range(2))
    assert evaluated(tmp_path, one).perplexity != evaluated(tmp_path, other).perplexity


# --- adapters


class Tokenizer:
    """Two bytes a token."""

    vocab_size = 65536

    def encode(self, text):
        data = text.encode().ljust(len(text.encode()) // 2 * 2 + 2)
        return [int.from_bytes(data[at : at + 2], "big") % 100 for at in range(0, len(data), 2)]

    def decode(self, ids):
        return " ".join(map(str, ids))


class HuggingFace(nn.Module):
    """The outer shape of a transformers model."""

    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(vocab_size=100, max_position_embeddings=32)
        self.table = nn.Embedding(100, 100)

    def forward(self, ids):
        assert not self.training
        return SimpleNamespace(logits=self.table(ids))


def test_a_hugging_face_model_with_its_tokenizer(tmp_path):
    model = HuggingFace()
    found = evaluated(tmp_path, (model, Tokenizer()))
    assert (found.model, found.max_tokens, found.tokenizer) == ("HuggingFace", 32, "Tokenizer(65536)")
    assert model.training  # as it was


def test_a_model_without_its_tokenizer_is_refused():
    with pytest.raises(UsageError, match="no tokenizer"):
        adapt(HuggingFace())


@pytest.mark.parametrize("model", [3, object()])
def test_what_is_no_model(model):
    with pytest.raises(UsageError, match="no model"):
        adapt(model)


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (lambda ids: np.full((len(ids), 256), np.nan), ProgramFailed),
        (lambda ids: np.zeros(256), ProgramFailed),
        (lambda ids: np.zeros((1, 256)), ProgramFailed),
        (lambda ids: np.zeros((len(ids), 10)), UsageError),
    ],
)
def test_logits_that_cannot_be_scored_never_pass(tmp_path, model, error):
    with pytest.raises(error):
        evaluated(tmp_path, model)


# --- the owner's own metric


def owners(tmp_path, printed: str, text: str = "val_loss=([0-9.naif]+)"):
    log = tmp_path / "output.log"
    log.write_text(printed)
    run = Run(record.read(tmp_path), 1.0, log, None)
    return gating.value_of(metric.parse(text, 0.0, folder=str(tmp_path)), run, "lower")


def test_the_last_value_that_is_printed_counts(tmp_path):
    found = owners(tmp_path, "epoch 1 val_loss=2.5\nepoch 2 val_loss=1.23456789\n")
    assert (found.value, found.values, found.better) == (1.23457, 2, "lower")


@pytest.mark.parametrize(("printed", "error"), [("", UsageError), ("done\n", UsageError), ("val_loss=nan", ProgramFailed)])
def test_an_evaluation_that_shows_nothing_never_passes(tmp_path, printed, error):
    with pytest.raises(error, match="val_loss"):
        owners(tmp_path, printed)


# --- the shard


def test_the_bundled_shard_is_found_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(shard.shard_bytes()) > 5000
    own = tmp_path / "bench" / "data" / "fixed_shard.txt"
    own.parent.mkdir(parents=True)
    own.write_text("my own")
    assert shard.shard_bytes() == b"my own"


def test_a_missing_or_empty_shard(tmp_path):
    with pytest.raises(UsageError, match="no such shard"):
        shard.shard_bytes(str(tmp_path / "none.txt"))
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(UsageError, match="empty"):
        shard.shard_bytes(str(tmp_path / "empty.txt"))


def test_rounding_keeps_six_digits():
    assert evaluation.rounded(123.4567891) == 123.457 and evaluation.rounded(1.23456789e-9) == 1.23457e-9
