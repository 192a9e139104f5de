"""`EvalSmall`: how good a model is on fixed data, greedily, so that two evaluations of one model give the same bytes.

The shard is cut into windows of the model's context that do not overlap; every token but the first of a window is scored once. Figures are
rounded to six significant digits, past which only the order of additions speaks.
"""

from __future__ import annotations

import hashlib
import math
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from trainflash.errors import ProgramFailed, UsageError
from trainflash.gate.config import EvalConfig
from trainflash.gate.evaluate import probes, shard
from trainflash.gate.evaluate.adapters import Adapter, adapt
from trainflash.gate.machines.environment import CollectEnv
from trainflash.gate.measure import workload
from trainflash.schema import GateEnv, GateEval, ProbeScore, write_document

EvalResult = GateEval
MOST_TOKENS = 20_000  # of the shard: a larger one is cut, so that an evaluation stays small
DIGITS = 6
NO_MODEL = "the reference model knows nothing: its figures only show that the evaluation repeats; name your own with --model"


class EvalSmall:
    """Evaluates `model`: an adapter, a module, a Hugging Face model, a callable of token ids, or the name of a function that builds one.

    None: the reference model as it begins, which knows nothing; its figures only show that the evaluation itself repeats.
    """

    def __init__(self, config: EvalConfig, model: Any = None, *, tokenizer: Any = None, env: GateEnv | None = None) -> None:
        self.config = config.check()
        self._model = model
        self._tokenizer = tokenizer
        self._env = env
        self._result: GateEval | None = None

    def run(self) -> EvalResult:
        """Evaluate. Raises `UsageError` for a missing shard, `ProgramFailed` for logits that are no numbers."""
        env = self._env or CollectEnv().env
        _seed(self.config.seed)
        model = self._adapter()
        text = shard.shard_bytes(self.config.fixed_shard_path)
        loss, tokens = _loss(model, text.decode("utf-8", "replace"))
        self._result = GateEval(
            machine_profile=env.machine_profile,
            commit=env.commit,
            dirty=env.dirty,
            model=model.name,
            seed=self.config.seed,
            temperature=float(self.config.temperature),
            shard_sha256=hashlib.sha256(text).hexdigest(),
            tokenizer=model.tokenizer,
            max_tokens=model.context,
            tokens=tokens,
            loss=rounded(loss),
            perplexity=rounded(math.exp(min(loss, 700.0))),
            probes=tuple(_score(model, name) for name in self.config.probes),
            notes=() if self._model is not None else (NO_MODEL,),
        )
        return self._result

    def save(self, path: str | Path) -> None:
        """Write `eval.json`; evaluates first where nothing was."""
        write_document(Path(path), self._result or self.run())

    def _adapter(self) -> Adapter:
        given = self._model
        if given is None:
            from trainflash.gate.measure import reference

            return adapt(reference.model(), name="reference model, untrained", context=reference.CONTEXT)
        if isinstance(given, str):
            given = workload.load(given)()
        if isinstance(given, tuple) and len(given) == 2:  # (model, tokenizer)
            return adapt(*given)
        return adapt(given, self._tokenizer)


def rounded(value: float) -> float:
    """Six significant digits."""
    return float(f"{value:.{DIGITS}g}")


def _loss(model: Adapter, text: str) -> tuple[float, int]:
    """(mean negative log-likelihood of a token, tokens scored)."""
    ids = model.encode(text)[:MOST_TOKENS]
    total, scored = [], 0
    for start in range(0, len(ids), model.context):
        window = ids[start : start + model.context]
        if len(window) < 2:
            continue
        rows = _finite(model, model.logits(window))[:-1]
        top = rows.max(axis=1)
        logs = top + np.log(np.exp(rows - top[:, None]).sum(axis=1))
        targets = np.asarray(window[1:])
        if targets.max() >= rows.shape[1]:
            raise UsageError(f"token {targets.max()} is outside the model's {rows.shape[1]} logits", "give its own tokenizer")
        total.append(float((logs - rows[np.arange(len(targets)), targets]).sum()))
        scored += len(targets)
    if not scored:
        raise UsageError("the shard holds fewer than two tokens", "give a longer text")
    return math.fsum(total) / scored, scored


def _score(model: Adapter, name: str) -> ProbeScore:
    items = probes.items(name)
    failed = tuple(item.id for item in items if not item.passed(_answer(model, item.prompt, item.most_tokens)))
    correct = len(items) - len(failed)
    return ProbeScore(name, rounded(100.0 * correct / len(items)), correct, len(items), failed)


def _answer(model: Adapter, prompt: str, most: int) -> str:
    """What the model says after `prompt`, always the likeliest token (the first of equals), up to its end or the end of the line."""
    ids = model.encode(prompt)
    said: list[int] = []
    for _ in range(most):
        row = _finite(model, model.logits(ids[-model.context :]))[-1]
        token = int(np.argmax(row))
        if token == model.end:
            break
        ids.append(token)
        said.append(token)
        if "\n" in model.decode(said).lstrip("\n"):
            break
    return model.decode(said)


def _finite(model: Adapter, rows: np.ndarray) -> np.ndarray:
    if not np.isfinite(rows).all():
        raise ProgramFailed(f"{model.name} gives logits that are not numbers", "NaN in its weights passes no gate: train it anew")
    return rows


def _seed(seed: int) -> None:
    """Every stream that a model may draw from, though a greedy evaluation should not."""
    random.seed(seed)
    np.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
