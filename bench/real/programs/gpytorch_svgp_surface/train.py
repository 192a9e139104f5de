"""Sparse variational GP on a noisy surface over six inputs."""

import gpytorch
import torch
from gpytorch.models import ApproximateGP
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from torch.utils.data import DataLoader, TensorDataset

N_TRAIN = 20000
N_TEST = 2000
N_INDUCING = 300
BATCH = 512
EPOCHS = 20


def surface(x):
    return (
        torch.sin(3 * x[:, 0]) * torch.cos(2 * x[:, 1]) + 0.5 * x[:, 2] ** 2 - 0.3 * x[:, 3] * x[:, 4] + 0.2 * torch.exp(-4 * x[:, 5] ** 2)
    )


def make_data():
    g = torch.Generator().manual_seed(12)
    x = torch.rand(N_TRAIN + N_TEST, 6, generator=g) * 2 - 1
    y = surface(x) + 0.1 * torch.randn(len(x), generator=g)
    mean, std = y[:N_TRAIN].mean(), y[:N_TRAIN].std()
    y = (y - mean) / std
    return x[:N_TRAIN], y[:N_TRAIN], x[N_TRAIN:], y[N_TRAIN:]


class SurfaceGP(ApproximateGP):
    def __init__(self, inducing_points):
        distribution = CholeskyVariationalDistribution(inducing_points.size(0))
        strategy = VariationalStrategy(self, inducing_points, distribution, learn_inducing_locations=True)
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=6))

    def forward(self, x):
        mean = self.mean_module(x)
        covar = self.covar_module(x)
        return gpytorch.distributions.MultivariateNormal(mean, covar)


def test_error(model, likelihood, loader):
    model.eval()
    likelihood.eval()
    squared, log_prob, count = 0.0, 0.0, 0
    with torch.no_grad():
        for xb, yb in loader:
            pred = likelihood(model(xb))
            squared += (pred.mean - yb).pow(2).sum().item()
            log_prob += torch.distributions.Normal(pred.mean, pred.stddev).log_prob(yb).sum().item()
            count += len(yb)
    return (squared / count) ** 0.5, log_prob / count


def main():
    torch.manual_seed(0)
    x_train, y_train, x_test, y_test = make_data()
    train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=BATCH, shuffle=True)
    test_loader = DataLoader(TensorDataset(x_test, y_test), batch_size=BATCH)

    model = SurfaceGP(x_train[torch.randperm(N_TRAIN)[:N_INDUCING]].clone())
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    optimizer = torch.optim.Adam([{"params": model.parameters()}, {"params": likelihood.parameters()}], lr=0.01)
    mll = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=N_TRAIN)

    for epoch in range(EPOCHS):
        model.train()
        likelihood.train()
        for xb, yb in train_loader:
            optimizer.zero_grad()
            output = model(xb)
            loss = -mll(output, yb)
            loss.backward()
            optimizer.step()
        rmse, lp = test_error(model, likelihood, test_loader)
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, test rmse {rmse:.4f}, log prob {lp:.4f}")


if __name__ == "__main__":
    main()
