"""Contrastive sentence encoder: search queries and product titles, two views of each text by dropout and rewording."""
import copy
import gc
import os
import random
import time
import tomllib
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from transformers import BertConfig, BertModel

CFG = tomllib.loads((Path(__file__).resolve().parent / "settings.toml").read_text())
STEPS = int(os.environ.get("PLANTED_STEPS", 250))

KINDS = "jacket lamp kettle backpack chair headphones blender bicycle tent mirror shelf watch".split()
COLOURS = "red blue green black white amber grey teal ivory".split()
MATERIALS = "cotton steel oak bamboo leather glass wool ceramic nylon copper".split()
USES = "for hiking,for the office,for kids,for small kitchens,for travel,for winter,for gamers,for the garden".split(",")
SYNONYMS = {"jacket": "coat", "lamp": "light", "backpack": "rucksack", "headphones": "headset", "bicycle": "bike",
            "grey": "gray", "ivory": "cream", "teal": "turquoise", "amber": "orange", "kids": "children"}
BRANDS = [a + b for a in "nor vel ari kos tam bru".split() for b in "da lux mont ric sen".split()]


class Catalogue:
    def __init__(self, n, rng):
        self.products = [(rng.choice(BRANDS), rng.choice(COLOURS), rng.choice(MATERIALS), rng.choice(KINDS),
                          rng.choice(USES), str(rng.randint(10, 400))) for _ in range(n)]
        words = set("the a with model size brand new used buy cheap".split())
        for group in (KINDS, COLOURS, MATERIALS, BRANDS, SYNONYMS.values(), " ".join(USES).split()):
            words.update(group)
        words.update(str(i) for i in range(10, 401))
        self.vocab = {w: i for i, w in enumerate(["[PAD]", "[CLS]"] + sorted(words))}

    def title(self, p, rng):
        brand, colour, material, kind, use, number = p
        return f"{brand} {kind} model {number} {colour} {material} {use} new size {number} brand {brand}"

    def query(self, p, rng):
        brand, colour, material, kind, use, number = p
        words = [w for w in (colour, material, kind) if rng.random() < 0.8] + use.split() * (rng.random() < 0.5)
        words += [brand] * (rng.random() < 0.6) + [number] * (rng.random() < 0.5)
        words = [SYNONYMS.get(w, w) if rng.random() < 0.4 else w for w in words]
        rng.shuffle(words)
        return " ".join(["buy"] * (rng.random() < 0.3) + words)

    def batch(self, texts, max_len):
        rows = [[1] + [self.vocab[w] for w in t.split()][:max_len - 1] for t in texts]
        longest = max(map(len, rows))
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        for i, r in enumerate(rows):
            ids[i, :len(r)] = torch.tensor(r)
        return ids, (ids > 0).long()


class Encoder(nn.Module):
    def __init__(self, vocab_size, max_len):
        super().__init__()
        self.bert = BertModel(BertConfig(vocab_size=vocab_size, max_position_embeddings=max_len, **CFG["encoder"]),
                              add_pooling_layer=False)
        self.proj = nn.Linear(CFG["encoder"]["hidden_size"], 128)

    def forward(self, ids, mask):
        h = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        m = mask.unsqueeze(-1)
        return F.normalize(self.proj((h * m).sum(1) / m.sum(1)), dim=-1)


@torch.no_grad()
def update_average(average, model, decay):
    for a, p in zip(average.parameters(), model.parameters()):
        a.lerp_(p, 1 - decay)


@torch.no_grad()
def recall_at_5(model, catalogue, seed=0, n=200):
    rng = random.Random(seed)
    chosen = catalogue.products[:n]
    q = model(*catalogue.batch([catalogue.query(p, rng) for p in chosen], CFG["data"]["max_len"]))
    t = model(*catalogue.batch([catalogue.title(p, rng) for p in chosen], CFG["data"]["max_len"]))
    top = (q @ t.T).topk(5, dim=1).indices
    return (top == torch.arange(n)[:, None]).any(1).float().mean().item()


def main():
    torch.manual_seed(CFG["seed"])
    rng = random.Random(CFG["seed"])
    t = CFG["train"]
    catalogue = Catalogue(CFG["data"]["products"], rng)
    model = Encoder(len(catalogue.vocab), CFG["data"]["max_len"])
    average = copy.deepcopy(model).eval().requires_grad_(False)
    opt = torch.optim.AdamW(model.parameters(), lr=t["lr"], weight_decay=0.01)
    warmup = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=30)

    start = time.time()
    for step in range(1, STEPS + 1):
        products = rng.sample(catalogue.products, t["batch_size"])
        queries = catalogue.batch([catalogue.query(p, rng) for p in products], CFG["data"]["max_len"])
        titles = catalogue.batch([catalogue.title(p, rng) for p in products], CFG["data"]["max_len"])
        q, first, second = model(*queries), model(*titles), model(*titles)
        labels = torch.arange(len(products))
        loss = (F.cross_entropy(q @ first.T / t["temperature"], labels)
                + 0.5 * F.cross_entropy(first @ second.T / t["temperature"], labels))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        warmup.step()
        update_average(average, model, t["ema_decay"])
        value = loss.item()
        if step % t["log_every"] == 0:
            print(f"step {step:4d}  loss {value:.4f}  lr {warmup.get_last_lr()[0]:.1e}")
        if step % t["eval_every"] == 0:
            print(f"           recall@5 of the average {recall_at_5(average, catalogue):.3f}")
        if step % t["gc_every"] == 0:
            gc.collect()
    took = time.time() - start
    print(f"{STEPS} steps in {took:.2f} s, loss {value:.6f}")


if __name__ == "__main__":
    main()
