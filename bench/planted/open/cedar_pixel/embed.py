"""Embed the museum's graph."""

import os
import time
import tomllib

import torch
from facts import Graph
from memory import Budget
from rotate import Rotate


def main() -> None:
    with open("run.toml", "rb") as file:
        conf = tomllib.load(file)
    fit = conf["fit"]
    steps = int(os.environ.get("PLANTED_STEPS", fit["steps"]))
    torch.manual_seed(conf["world"]["seed"])
    graph = Graph(**conf["world"])
    model = Rotate(graph.entities, graph.relations, **conf["model"])
    optimizer = torch.optim.Adagrad(model.parameters(), fit["rate"])
    source = graph.batches(fit["batch"], fit["negatives"], conf["world"]["seed"])
    budget = Budget(fit["budget_mb"])

    began = time.perf_counter()
    for step in range(1, steps + 1):
        with budget:
            loss = model(*next(source))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % fit["report"] == 0:
            print(f"step {step} loss {loss.item():.4f} peak {budget.peak >> 20} MB", flush=True)
    seconds = time.perf_counter() - began

    ranks = [model.rank(graph, fact) for fact in graph.held_out]
    print(f"mean rank {sum(ranks) / len(ranks):.1f} of {graph.entities}")
    print(f"{step} steps in {seconds:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
