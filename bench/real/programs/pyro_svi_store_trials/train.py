"""Hierarchical Poisson regression of shop counts by stochastic variational inference in Pyro."""

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal, init_to_median
from pyro.optim import ClippedAdam

N_REGIONS, N_STORES, N_WEEKS = 8, 120, 130
N_COVARIATES = 6
BATCH = 1024
STEPS = 6000
EVERY = 500


def make_counts(seed=2):
    rng = np.random.default_rng(seed)
    region_of_store = rng.integers(0, N_REGIONS, size=N_STORES)
    region_level = rng.normal(0, 0.5, size=N_REGIONS)
    store_level = region_level[region_of_store] + rng.normal(0, 0.3, size=N_STORES)
    slopes = np.array([0.4, -0.3, 0.1, 0.0, 0.2, -0.1]) + rng.normal(0, 0.15, size=(N_STORES, N_COVARIATES))
    store = np.repeat(np.arange(N_STORES), N_WEEKS)
    week = np.tile(np.arange(N_WEEKS), N_STORES)
    covariates = rng.normal(size=(len(store), N_COVARIATES))
    covariates[:, 0] = np.sin(2 * np.pi * week / 52)
    covariates[:, 1] = np.cos(2 * np.pi * week / 52)
    log_rate = 1.5 + store_level[store] + (slopes[store] * covariates).sum(1)
    counts = rng.poisson(rng.gamma(5.0, np.exp(log_rate) / 5.0))
    held_out = week >= N_WEEKS - 26
    as_tensor = torch.as_tensor
    table = {
        "store": as_tensor(store),
        "covariates": as_tensor(covariates, dtype=torch.float),
        "counts": as_tensor(counts, dtype=torch.float),
    }
    train = {k: v[~held_out] for k, v in table.items()}
    test = {k: v[held_out] for k, v in table.items()}
    return as_tensor(region_of_store), train, test


def model(region_of_store, store, covariates, counts=None, batch=None):
    level = pyro.sample("level", dist.Normal(0.0, 2.0))
    region_scale = pyro.sample("region_scale", dist.HalfNormal(1.0))
    store_scale = pyro.sample("store_scale", dist.HalfNormal(1.0))
    concentration = pyro.sample("concentration", dist.LogNormal(1.0, 1.0))
    with pyro.plate("covariate", N_COVARIATES, dim=-1):
        slope_mean = pyro.sample("slope_mean", dist.Normal(0.0, 1.0))
        slope_scale = pyro.sample("slope_scale", dist.HalfNormal(0.5))
    with pyro.plate("region", N_REGIONS, dim=-1):
        region_level = pyro.sample("region_level", dist.Normal(0.0, region_scale))
    with pyro.plate("stores", N_STORES, dim=-1):
        store_level = pyro.sample("store_level", dist.Normal(region_level[..., region_of_store], store_scale))
        slopes = pyro.sample("slopes", dist.Normal(slope_mean, slope_scale).expand([N_STORES, N_COVARIATES]).to_event(1))
    with pyro.plate("rows", len(store), subsample_size=batch, dim=-1) as rows:
        x, s = covariates[rows], store[rows]
        log_rate = level + store_level[s] + (slopes[s] * x).sum(-1)
        observed = counts[rows] if counts is not None else None
        rate = concentration * torch.exp(-log_rate.clamp(-10, 10))
        pyro.sample("count", dist.GammaPoisson(concentration, rate), obs=observed)


@torch.no_grad()
def score(guide, region_of_store, test, num_samples=200):
    """Mean log density of the held-out weeks and mean absolute error of the predicted mean."""
    posterior = [guide(region_of_store, test["store"], test["covariates"]) for _ in range(num_samples)]
    log_density = []
    for draw in posterior:
        conditioned = pyro.poutine.condition(model, data=draw)
        trace = pyro.poutine.trace(conditioned).get_trace(region_of_store, test["store"], test["covariates"], test["counts"])
        site = trace.nodes["count"]
        log_density.append(site["fn"].log_prob(test["counts"]))
    density = torch.logsumexp(torch.stack(log_density), 0) - np.log(num_samples)
    predictive = Predictive(model, guide=guide, num_samples=num_samples, return_sites=["count"])
    drawn = predictive(region_of_store, test["store"], test["covariates"])["count"]
    return density.mean().item(), (drawn.mean(0) - test["counts"]).abs().mean().item()


def main():
    pyro.set_rng_seed(0)
    region_of_store, train, test = make_counts()

    guide = AutoNormal(model, init_loc_fn=init_to_median, init_scale=0.05)
    optimizer = ClippedAdam({"lr": 0.02, "lrd": 0.1 ** (1 / STEPS), "clip_norm": 10.0})
    svi = SVI(model, guide, optimizer, loss=Trace_ELBO(num_particles=1))

    running = []
    for step in range(1, STEPS + 1):
        loss = svi.step(region_of_store, train["store"], train["covariates"], train["counts"], BATCH)
        running.append(loss / len(train["counts"]))
        if step % EVERY == 0:
            density, error = score(guide, region_of_store, test)
            print(f"step {step}: loss {np.mean(running[-EVERY:]):.4f} held-out log density {density:.4f} error {error:.3f}")
    print("store scale", guide.median()["store_scale"].item(), "region scale", guide.median()["region_scale"].item())


if __name__ == "__main__":
    main()
