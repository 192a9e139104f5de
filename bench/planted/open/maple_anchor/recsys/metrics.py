import math

import torch


@torch.no_grad()
def ranking_metrics(model, data, k):
    """Hit rate and NDCG at k of the held-out item among all items the user has not seen."""
    model.eval()
    all_items = torch.arange(data.num_items)
    hits, ndcg = 0.0, 0.0
    for user in range(data.num_users):
        scores = model(torch.full_like(all_items, user), all_items)
        scores[list(data.seen[user])] = -math.inf
        top = scores.topk(k).indices.tolist()
        target = int(data.held_out[user])
        if target in top:
            hits += 1
            ndcg += 1 / math.log2(top.index(target) + 2)
    model.train()
    return {"hr": hits / data.num_users, "ndcg": ndcg / data.num_users}
