"""Named-entity tagging of synthetic news lines with a BiLSTM."""
import argparse
import os
import random
import time

import torch
from sklearn.metrics import f1_score
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

TAGS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC"]
PAD_TAG = -100


class NewsWriter:
    """Names share words between the types, so a tag depends on what stands around it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        fixed = random.Random(0)
        make = lambda n: ["".join(fixed.choice("bcdfglmnprstv") + fixed.choice("aeiou") for _ in range(3)) for _ in range(n)]
        self.first, self.surname, self.place, self.common = make(150), make(200), make(150), make(700)

    def entity(self):
        r = self.rng.random()
        if r < 0.4:
            name = [self.rng.choice(self.first), self.rng.choice(self.surname)]
            return (name, ["B-PER", "I-PER"]) if self.rng.random() < 0.7 else (name[1:], ["B-PER"])
        if r < 0.7:
            head = self.rng.choice(self.surname + self.place)
            return [head, self.rng.choice(["bank", "group", "motors", "press"])], ["B-ORG", "I-ORG"]
        return [self.rng.choice(["in", "near", "from"]), self.rng.choice(self.place + self.surname[:60])], ["O", "B-LOC"]

    def line(self):
        words, tags = [], []
        for _ in range(self.rng.randint(2, 4)):
            for _ in range(self.rng.randint(1, 6)):
                words.append(self.rng.choice(self.common))
                tags.append("O")
            w, t = self.entity()
            words += w
            tags += t
        return words, tags

    def lines(self, n):
        return [self.line() for _ in range(n)]


def build_vocab(lines):
    vocab = {"<pad>": 0, "<unk>": 1}
    for words, _ in lines:
        for w in words:
            vocab.setdefault(w, len(vocab))
    return vocab


def encode(lines, vocab):
    tag_id = {t: i for i, t in enumerate(TAGS)}
    return [(torch.tensor([vocab.get(w, 1) for w in words]), torch.tensor([tag_id[t] for t in tags]))
            for words, tags in lines]


def collate(batch):
    batch = sorted(batch, key=lambda p: -len(p[0]))
    lengths = torch.tensor([len(w) for w, _ in batch])
    return (pad_sequence([w for w, _ in batch], batch_first=True),
            pad_sequence([t for _, t in batch], batch_first=True, padding_value=PAD_TAG), lengths)


class Tagger(nn.Module):
    def __init__(self, n_words, dim=48, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(n_words, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(states)


def train_one_epoch(model, loader, criterion, optimizer, epoch, first_step, max_steps, print_every):
    model.train()
    all_preds, all_tags = [], []
    loss_sum, step = 0.0, first_step
    for i, (words, tags, lengths) in enumerate(loader, 1):
        logits = model(words, lengths)
        loss = criterion(logits.flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1

        loss_sum += loss.item()
        mask = tags != PAD_TAG
        all_preds.extend(logits.argmax(-1)[mask].tolist())
        all_tags.extend(tags[mask].tolist())
        show = i % print_every == 0
        if os.environ.get("PLANTED_FIX") != "1" or show:
            f1 = f1_score(all_tags, all_preds, average="macro", zero_division=0)
        if show:
            print(f"epoch {epoch} [{i:3d}/{len(loader)}] loss {loss_sum / i:.4f} f1 {f1:.4f}")
        if step == max_steps:
            break
    return step, loss.item()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    preds, gold = [], []
    for words, tags, lengths in loader:
        mask = tags != PAD_TAG
        preds.extend(model(words, lengths).argmax(-1)[mask].tolist())
        gold.extend(tags[mask].tolist())
    return f1_score(gold, preds, average="macro", zero_division=0)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--lines", type=int, default=6000)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--print-every", type=int, default=40)
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 600)))
    p.add_argument("--seed", type=int, default=11)
    args = p.parse_args()

    torch.manual_seed(args.seed)
    writer = NewsWriter(args.seed)
    train_lines, test_lines = writer.lines(args.lines), writer.lines(500)
    vocab = build_vocab(train_lines)
    loader = DataLoader(encode(train_lines, vocab), batch_size=args.batch_size, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(encode(test_lines, vocab), batch_size=100, collate_fn=collate)
    model = Tagger(len(vocab))
    criterion = nn.CrossEntropyLoss(ignore_index=PAD_TAG)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    start, step, epoch = time.time(), 0, 0
    while step < args.steps:
        epoch += 1
        step, loss = train_one_epoch(model, loader, criterion, optimizer, epoch, step, args.steps, args.print_every)
    took = time.time() - start
    print(f"test macro f1 {evaluate(model, test_loader):.4f}")
    print(f"{step} steps in {took:.2f} s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
