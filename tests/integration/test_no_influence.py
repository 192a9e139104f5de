"""A recorded program computes what it computes alone: no random stream moves, nothing is printed, nothing fails."""

from __future__ import annotations

import pytest
from test_training_record import start, train

MODULE_THAT_DRAWS = """
class Scaled(nn.Linear):
    def __reduce__(self):
        return rebuilt, (self.in_features, self.out_features, self.state_dict())
    def state_dict(self, *args, **kwargs):
        torch.rand(1)
        return super().state_dict(*args, **kwargs)
def rebuilt(a, b, state):
    print("built anew")
    made = Scaled(a, b)
    made.load_state_dict(state)
    return made
model = nn.Sequential(Scaled(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(9):
    model(torch.randn(5, 4)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 3 == 2:
        torch.save(model, "last.pt")
        print(torch.rand(1).item().hex(), random.random().hex())
"""


def test_reading_a_checkpoint_back_runs_no_code_of_the_owner_while_it_trains(tmp_path):
    output, stream = train(tmp_path / "recorded", MODULE_THAT_DRAWS)
    assert output == start(tmp_path / "recorded", {})
    assert sorted(line["n"] for line in stream.stored) == [3, 6, 9]
    assert {line["digest"] for line in stream.stored} == {line["digest"] for line in stream.checkpoints}
    assert [path.name for path in (tmp_path / "recorded" / "run").glob("saved-*")] == []


PICKLED = """
import pickle, numpy
numpy.random.seed(1)
for seed in (random.seed, numpy.random.seed, torch.manual_seed):
    there = pickle.loads(pickle.dumps(seed))
    there(3)
    print(random.random().hex(), numpy.random.rand().hex(), torch.rand(1).item().hex())
"""


@pytest.mark.full
def test_functions_that_seed_are_pickled_as_ever(tmp_path):
    output, _ = train(tmp_path / "recorded", PICKLED + TRAINS)
    assert output == start(tmp_path / "recorded", {})


TRAINS = """
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(6):
    model(torch.randn(5, 4)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

SPAWNING = """
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    points = TensorDataset(torch.randn(32, 4))
    for (x,) in DataLoader(points, 8, num_workers=1, worker_init_fn=random.seed, multiprocessing_context="spawn"):
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item().hex())
"""


@pytest.mark.full
def test_a_seeding_function_reaches_a_spawned_worker(tmp_path):
    output, _ = train(tmp_path / "recorded", SPAWNING)
    assert output == start(tmp_path / "recorded", {})
