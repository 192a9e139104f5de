"""Syntax highlighting as sequence tagging: a bidirectional LSTM names the kind of token of each character of a Python function."""

import ast
import io
import keyword
import pathlib
import random
import sysconfig
import textwrap
import tokenize

import torch
import torch.nn.functional as F
from ignite.engine import Engine, Events, create_supervised_evaluator
from ignite.handlers import EarlyStopping, ModelCheckpoint, global_step_from_engine
from ignite.handlers.tqdm_logger import ProgressBar
from ignite.metrics import Accuracy, Fbeta, Loss, Precision, Recall, RunningAverage
from ignite.utils import manual_seed
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

KINDS = ["space", "keyword", "name", "number", "string", "operator", "comment"]
KIND_OF = {tokenize.NAME: 2, tokenize.NUMBER: 3, tokenize.STRING: 4, tokenize.OP: 5, tokenize.COMMENT: 6}
IGNORE = -100
MAX_CHARS = 512
N_FUNCTIONS = 1600
BATCH = 32
EPOCHS = 5


def label_characters(source):
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    kinds = [0] * len(source)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in KIND_OF:
            continue
        kind = 1 if keyword.iskeyword(token.string) else KIND_OF[token.type]
        first = starts[token.start[0] - 1] + token.start[1]
        last = starts[token.end[0] - 1] + token.end[1]
        kinds[first:last] = [kind] * (last - first)
    return kinds


def collect_functions():
    samples = []
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        source = path.read_text(encoding="utf-8", errors="ignore")
        lines = source.splitlines(keepends=True)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and source.isascii():
                text = textwrap.dedent("".join(lines[node.lineno - 1 : node.end_lineno]))
                samples.append((text[:MAX_CHARS], label_characters(text)[:MAX_CHARS]))
        if len(samples) > 2 * N_FUNCTIONS:
            break
    random.Random(3).shuffle(samples)
    return samples[:N_FUNCTIONS]


class CharacterTags(Dataset):
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        text, kinds = self.samples[index]
        return torch.tensor([ord(c) for c in text]), torch.tensor(kinds)


def pad_batch(items):
    texts, kinds = zip(*items)
    return pad_sequence(texts, batch_first=True), pad_sequence(kinds, batch_first=True, padding_value=IGNORE)


class Tagger(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(128, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, width, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1)
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, len(KINDS)))

    def forward(self, chars):
        states, _ = self.lstm(self.embed(chars))
        return self.head(states)


def tag_loss(logits, kinds):
    return F.cross_entropy(logits.flatten(0, 1), kinds.flatten(), ignore_index=IGNORE)


def real_positions(output):
    logits, kinds = output
    keep = kinds != IGNORE
    return logits[keep], kinds[keep]


def main():
    manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    samples = collect_functions()
    cut = int(0.8 * len(samples))
    train_loader = DataLoader(CharacterTags(samples[:cut]), batch_size=BATCH, shuffle=True, collate_fn=pad_batch)
    val_loader = DataLoader(CharacterTags(samples[cut:]), batch_size=2 * BATCH, collate_fn=pad_batch)

    model = Tagger().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def train_step(engine, batch):
        model.train()
        chars, kinds = (t.to(device) for t in batch)
        loss = tag_loss(model(chars), kinds)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    trainer = Engine(train_step)
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "loss")
    ProgressBar().attach(trainer, ["loss"])

    precision, recall = Precision(real_positions, average=False), Recall(real_positions, average=False)
    metrics = {
        "accuracy": Accuracy(real_positions),
        "macro_f1": Fbeta(1.0, average=True, precision=precision, recall=recall),
        "loss": Loss(tag_loss),
    }
    train_evaluator, evaluator = (create_supervised_evaluator(model, metrics=metrics, device=device) for _ in range(2))

    @trainer.on(Events.EPOCH_COMPLETED)
    def report(engine):
        for name, judge, loader in (("train", train_evaluator, train_loader), ("valid", evaluator, val_loader)):
            scores = judge.run(loader).metrics
            print(f"epoch {engine.state.epoch} {name}: " + " ".join(f"{k} {v:.4f}" for k, v in scores.items()))

    def score(engine):
        return engine.state.metrics["macro_f1"]

    steps = global_step_from_engine(trainer)
    best = ModelCheckpoint("best", n_saved=1, score_function=score, require_empty=False, global_step_transform=steps)
    evaluator.add_event_handler(Events.COMPLETED, best, {"model": model})
    evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(patience=3, score_function=score, trainer=trainer))
    trainer.run(train_loader, max_epochs=EPOCHS)


if __name__ == "__main__":
    main()
