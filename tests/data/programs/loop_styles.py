"""More styles of training loop than styles.py; the first argument chooses. Every part sleeps a known time, so phases can be told apart."""

import copy
import sys
import time
import types

import torch
from styles import STEPS, Slow, loader, loss_of, tell_compiled
from torch import nn


def endless(data):
    while True:
        yield from data


def adversarial(critic_steps, maker_first, from_loader=True, maker_steps=1):
    """`critic_steps` updates of the critic, then `maker_steps` of the maker, in every step of the loop."""
    maker, critic = Slow(), Slow()
    build = [lambda: torch.optim.SGD(maker.parameters(), lr=0.01), lambda: torch.optim.SGD(critic.parameters(), lr=0.01)]
    made = [function() for function in (build if maker_first else build[::-1])]
    make, judge = made if maker_first else made[::-1]
    batches = endless(loader())
    x, y = torch.ones(4, 8), torch.ones(4, 1)
    for _ in range(STEPS):
        for _ in range(critic_steps):
            if from_loader:
                x, y = next(batches)
            judge.zero_grad()
            (loss_of(critic, x, y) + maker(x).detach().mean()).backward()
            judge.step()
        for _ in range(maker_steps):
            make.zero_grad()
            loss_of(maker, x, y).backward()
            make.step()


def gan_critic_first():
    adversarial(1, maker_first=False)


def gan_maker_first():
    adversarial(1, maker_first=True)


def gan_five_to_one():
    adversarial(5, maker_first=True)


def gan_five_to_one_other_order():
    adversarial(5, maker_first=False)


def gan_two_maker_updates():
    adversarial(1, maker_first=True, maker_steps=2)


def gan_full_batch():
    adversarial(1, maker_first=True, from_loader=False)


def gan_fakes_without_gradients():
    """No loader: a critic is trained on real rows and on what the maker gives without gradients, then the maker through the critic."""
    maker, critic, real = Slow(), Slow(), torch.randn(256, 8)
    maker.net = nn.Linear(8, 8)
    make, judge = torch.optim.SGD(maker.parameters(), lr=0.01), torch.optim.SGD(critic.parameters(), lr=0.01)
    for _ in range(STEPS):
        with torch.no_grad():
            fake = maker(torch.randn(16, 8))
        judge.zero_grad()
        (critic(fake).mean() - critic(real[torch.randint(256, (16,))]).mean()).backward()
        judge.step()
        make.zero_grad()
        (-critic(maker(torch.randn(16, 8))).mean()).backward()
        make.step()


def unused_optimizer():
    """A second optimizer that never steps."""
    model, other = Slow(), nn.Linear(2, 2)
    optimizer, spare = torch.optim.SGD(model.parameters(), lr=0.01), torch.optim.SGD(other.parameters(), lr=0.01)
    for x, y in loader():
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
    print(len(spare.param_groups))


def scaler():
    class SlowScaler(torch.amp.GradScaler):
        def _check_scale_growth_tracker(self, asker):
            time.sleep(0.002 if asker in ("unscale_", "update") else 0)
            return super()._check_scale_growth_tracker(asker)

    model = Slow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    grad_scaler = SlowScaler("cpu", init_scale=1024.0)
    for number, (x, y) in enumerate(loader()):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(model, x, y if number != 9 else y * float("inf"))
        grad_scaler.scale(loss).backward()
        grad_scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        grad_scaler.step(optimizer)
        grad_scaler.update()


def several_models():
    """An encoder that is frozen, two heads, one optimizer."""
    encoder, heads = Slow(), nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])
    encoder.requires_grad_(False)
    encoder.eval()
    optimizer = torch.optim.Adam(heads.parameters())
    for x, y in loader():
        with torch.no_grad():
            features = encoder(x)
        optimizer.zero_grad()
        sum(((head(features) - y) ** 2).mean() for head in heads).backward()
        optimizer.step()


class Environment:
    """Eight steps an episode; each takes a millisecond."""

    def reset(self):
        self.left = 8
        return torch.ones(1, 8)

    def step(self, action):
        time.sleep(0.001)
        self.left -= 1
        return torch.rand(1, 8), float(action), self.left == 0


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = nn.Linear(8, 2), nn.Linear(8, 1)

    def act(self, observation):
        return self.actor(observation).argmax().item(), self.critic(observation).item()


def episode(agent, environment):
    observation, done, seen = environment.reset(), False, []
    while not done:
        with torch.no_grad():
            action, _ = agent.act(observation)
        seen.append(observation)
        observation, _, done = environment.step(action)
    return torch.cat(seen)


def evaluate_agent(agent, environment):
    observation, done = environment.reset(), False
    while not done:
        with torch.no_grad():
            action, _ = agent.act(observation)
        observation, _, done = environment.step(action)


def policy(evaluation):
    """Rollouts without gradients, then three updates of what they gave; an evaluation in every fourth round."""
    torch.manual_seed(0)
    agent, environment = Agent(), Environment()
    optimizer = torch.optim.Adam(agent.parameters())
    for round_ in range(STEPS // 3):
        states = episode(agent, environment)
        for _ in range(3):
            rows = states[torch.randperm(8)[:4]]
            optimizer.zero_grad()
            (agent.actor(rows).logsumexp(1).mean() + agent.critic(rows).square().mean()).backward()
            optimizer.step()
        if evaluation and round_ % 4 == 3:
            if evaluation == "mode":
                agent.eval()
                evaluate_agent(agent, environment)
                agent.train()
            else:
                evaluate_agent(agent, environment)


def rollouts():
    policy("")


def acting_copy():
    """A copy of the policy acts, and each rollout is trained on whole, three times: the same tensor in step after step."""
    torch.manual_seed(0)
    agent, acting, environment = Agent(), Agent(), Environment()
    optimizer = torch.optim.Adam(agent.parameters())
    for _ in range(STEPS // 3):
        states = episode(acting, environment)
        for _ in range(3):
            optimizer.zero_grad()
            (agent.actor(states).logsumexp(1).mean() + agent.critic(states).square().mean()).backward()
            optimizer.step()
        acting.load_state_dict(agent.state_dict())


def acting_in_eval_mode():
    """As `policy`, but the network that acts is in evaluation mode."""
    torch.manual_seed(0)
    agent, environment = nn.Sequential(nn.Linear(8, 2)), Environment()
    optimizer = torch.optim.Adam(agent.parameters())

    @torch.no_grad()
    def collect():
        agent.eval()
        observation, done, seen = environment.reset(), False, []
        while not done:
            seen.append(observation)
            observation, _, done = environment.step(agent(observation).argmax().item())
        return torch.cat(seen)

    for _ in range(STEPS // 2):
        states = collect()
        agent.train()
        for _ in range(2):
            optimizer.zero_grad()
            agent(states).logsumexp(1).mean().backward()
            optimizer.step()


def acting_later(tested=False):
    """The first actions are drawn at random, before and behind the first updates; then the network chooses one in each step."""
    torch.manual_seed(0)
    agent, environment = nn.Sequential(nn.Linear(8, 2)), Environment()
    optimizer = torch.optim.Adam(agent.parameters())
    memory, observation = [torch.rand(1, 8) for _ in range(32)], environment.reset()
    for step in range(STEPS):
        action = step % 2
        if step > 1:
            with torch.no_grad():
                action = agent(observation).argmax(1).item()
        memory.append(observation)
        observation, _, done = environment.step(action)
        observation = environment.reset() if done else observation
        time.sleep(0.003)
        states = torch.cat(memory[-16:])
        optimizer.zero_grad()
        agent(states).logsumexp(1).mean().backward()
        optimizer.step()
        if tested and step == 3:  # behind the second action
            agent.eval()
            with torch.no_grad():
                for _ in range(3):
                    agent(observation)
            agent.train()


def acting_later_and_tested():
    acting_later(tested=True)


def texts_to_look_at():
    """Now and then the network writes a text, a row at a time, without `.eval()`: no data comes of that."""
    model, x, y = Slow(), torch.ones(16, 8), torch.ones(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
        if step % 3 == 0:
            with torch.no_grad():
                for _ in range(4):
                    model(torch.ones(1, 8))


def accuracy_before_training():
    """The samples that are trained on are looked at before, in batches as large: no rollout."""
    torch.manual_seed(0)
    model, x, y = Slow(), torch.rand(24, 8), torch.ones(24, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        if step % 8 == 0:
            model.eval()
            with torch.no_grad():
                for begin in range(0, 24, 8):
                    model(x[begin : begin + 8])
            model.train()
        rows = torch.randperm(24)[:8]
        optimizer.zero_grad()
        loss_of(model, x[rows], y[rows]).backward()
        optimizer.step()


def work_after_evaluation():
    """An evaluation ends where the model is put back into training mode; what follows is the owner's own."""
    model, x, y = Slow(), torch.ones(16, 8), torch.ones(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
        if step % 4 == 3:
            model.train(False)
            with torch.no_grad():
                model(x)
            model.train()
            time.sleep(0.02)


def forces_in_evaluation():
    """A field's forces are its derivative, in training a part of the loss; the held-out ones need gradients too, and train nothing."""
    model, y = Slow(), torch.ones(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def of(x, **how):
        places = x.clone().requires_grad_()
        energy = model(places)
        return energy, torch.autograd.grad(energy.sum(), places, **how)[0]

    for step in range(STEPS):
        energy, forces = of(torch.ones(16, 8), create_graph=True)
        optimizer.zero_grad()
        (((energy - y) ** 2).mean() + forces.square().mean()).backward()
        optimizer.step()
        if step % 4 == 3:
            model.eval()
            for _ in range(3):
                of(torch.ones(16, 8))
            model.train()


def copies_for_tasks():
    """A copy of the model is trained for each task, and is gone after it."""
    model, x, y = Slow(), torch.ones(16, 8), torch.ones(16, 1)
    for _ in range(STEPS // 3):
        fast = copy.deepcopy(model)
        optimizer = torch.optim.SGD(fast.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(fast, x, y).backward()
            optimizer.step()
        with torch.no_grad():
            for slow, quick in zip(model.parameters(), fast.parameters(), strict=True):
                slow.add_(quick - slow, alpha=0.1)


def copies_for_clients():
    """A copy of the model is trained by each client on batches of its own; copies and optimizers are kept to the end."""
    model, kept = Slow(), []
    for _ in range(STEPS // 6):
        client = copy.deepcopy(model)
        optimizer = torch.optim.SGD(client.parameters(), lr=0.01)
        kept.append((client, optimizer))
        for x, y in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(96, 8), torch.ones(96, 1)), batch_size=16):
            optimizer.zero_grad()
            loss_of(client, x, y).backward()
            optimizer.step()


def rollouts_eval_mode():
    policy("mode")


def rollouts_eval_function():
    policy("function")


def work_after_rollouts():
    """A function acts; what is made of its rollout afterwards is no data. The same function evaluates, from another place."""
    torch.manual_seed(0)
    agent, environment = nn.Sequential(nn.Linear(8, 2)), Environment()
    optimizer = torch.optim.Adam(agent.parameters())

    @torch.no_grad()
    def collect():
        observation, done, seen = environment.reset(), False, []
        while not done:
            seen.append(observation)
            observation, _, done = environment.step(agent(observation).argmax().item())
        return types.SimpleNamespace(seen=seen)

    for turn in range(STEPS // 2):
        rollout = collect()
        time.sleep(0.01)
        states = torch.cat(rollout.seen)
        for _ in range(2):
            optimizer.zero_grad()
            agent(states).logsumexp(1).mean().backward()
            optimizer.step()
        if turn % 2 == 1:
            agent.eval()
            collect()
            agent.train()


def tests_of_a_policy():
    """A function acts, and another one of the same loop tells how well the policy does: an evaluation, as only what it gives shows."""
    torch.manual_seed(0)
    agent, environment, arena = nn.Sequential(nn.Linear(8, 2)), Environment(), Environment()
    optimizer = torch.optim.Adam(agent.parameters())
    returns = []

    @torch.no_grad()
    def collect():
        observation, done, seen = environment.reset(), False, []
        while not done:
            seen.append(observation)
            observation, _, done = environment.step(agent(observation).argmax().item())
        return torch.cat(seen)

    @torch.no_grad()
    def greedy_return():
        observation, done, total = arena.reset(), False, 0.0
        while not done:
            observation, reward, done = arena.step(agent(observation).argmax().item())
            total += reward
        return total

    def improve(states):
        with torch.no_grad():
            before = [agent(state) for state in states.split(1)]
        optimizer.zero_grad()
        (agent(states) - torch.cat(before)).square().mean().backward()
        optimizer.step()
        return float(len(before))

    for _ in range(STEPS):
        improve(collect())
        returns.append(greedy_return())


def value_learning(writes=0):
    """Acting without gradients, a replay memory, and a target network (its forward is part of the step)."""
    network, target = nn.Sequential(nn.Linear(8, 2)), Slow()
    target.requires_grad_(False)
    environment, memory = Environment(), []
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    observation = environment.reset()
    for step in range(STEPS + 8):
        with torch.no_grad():
            action = network(observation).argmax().item()
        following, _, done = environment.step(action)
        memory.append(observation)
        observation = environment.reset() if done else following
        if step < 8:
            continue
        rows = torch.cat(memory[-8:])
        for at in range(writes):
            rows[0, 0] = rows[1, 0] + at
        with torch.no_grad():
            wanted = target(rows)
        optimizer.zero_grad()
        (network(rows) - wanted).square().mean().backward()
        optimizer.step()


def value_learning_by_hand():
    """Its batches are written value by value, behind the acting."""
    value_learning(300)


def teacher_first():
    """A teacher is asked before the model in each step; its average copy is looked at now and then. No loader, no data function."""
    model, teacher, x, y = Slow(), Slow(), torch.ones(64, 8), torch.ones(16, 1)
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        rows = x[torch.randint(0, 64, (16,))]
        with torch.no_grad():
            wanted = teacher(rows)
        optimizer.zero_grad()
        (loss_of(model, rows, y) + (model(rows) - wanted).square().mean()).backward()
        optimizer.step()
        if step % 10 == 0:
            with torch.no_grad():
                average(x)


def unannounced_evaluation():
    """One function trains and evaluates: nothing says `eval()`, gradients are recorded, only the backward is left out."""
    model, x, y = Slow(), torch.ones(24, 8), torch.ones(24, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def run(train):
        for begin in range(0, 24, 3):
            loss = loss_of(model, x[begin : begin + 3], y[begin : begin + 3])
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    for _ in range(STEPS // 8):
        run(True)
        run(False)


def held_out_every_step():
    """A full-batch loop that looks at held-out data after each update, without `.eval()`: an evaluation, no rollout."""
    model, x, y, held_out = Slow(), torch.ones(16, 8), torch.ones(16, 1), torch.zeros(16, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with torch.no_grad():
        print("before", loss_of(model, held_out, y).item())
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
        with torch.no_grad():
            loss_of(model, held_out, y)


def copies():
    """Copies of the model, in all the ways that programs make them, while the probe's slots are in place."""
    import io
    import pickle

    from torch.optim.swa_utils import AveragedModel

    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), Plain())
    average = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, (x, y) in enumerate(loader()):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
        average.update_parameters(model)
        if number == 12:
            x = x[:2]
            model.eval()
            with torch.no_grad():
                wanted = model(x)
                buffer = io.BytesIO()
                torch.save(model, buffer)
                buffer.seek(0)
                same = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.load(buffer, weights_only=False)]
                same.append(torch.export.export(model, (x,)).module())
                same.append(torch.jit.trace(model, (x,)))
                same.append(torch.jit.script(model))
                same.append(torch.fx.symbolic_trace(model))
                print("copies", [torch.equal(one(x), wanted) for one in same])
                print("slots", [one.__dict__.get("_compiled_call_impl") is None for one in same[:3]])
                for parameter in same[0].parameters():
                    parameter.zero_()
                print("own weights", torch.equal(model(x), wanted), not torch.equal(same[0](x), wanted))
            model.train()


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 1)

    def forward(self, x):
        return self.net(x)


def compiled_everything():
    """Loss and update are compiled functions."""
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    @torch.compile(backend="eager")
    def loss_of_batch(x, y):
        return ((model(x) - y) ** 2).mean()

    @torch.compile(backend="eager", fullgraph=False)
    def update():
        optimizer.step()

    for x, y in loader():
        loss = loss_of_batch(x, y)
        loss.backward()
        update()
        optimizer.zero_grad()
        print(repr(loss.item()))
    tell_compiled()


def compiled_train_step():
    """One compiled function does forward, backward and update."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    @torch.compile(backend="eager")
    def train_step(x, y):
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    for x, y in loader():
        print(repr(train_step(x, y).item()))
    tell_compiled()


def marks():
    """Nothing here is torch's: numbers are fitted by hand; only the marks know what is what."""
    from trainflash_probe import phase

    for step in range(STEPS):
        with phase("Data"):
            time.sleep(0.002)
        with phase("Fwd"):
            time.sleep(0.003)
        with phase("Opt"):
            time.sleep(0.001)
        if step % 8 == 7:
            with phase("Eval"):
                time.sleep(0.004)


def marked_thread():
    import threading

    runner = threading.Thread(target=marks)
    runner.start()
    runner.join()


def marks_over_hooks():
    """Marks around what the probe sees by itself: the mark is what counts."""
    from trainflash_probe import phase

    model = Slow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(loader())
    for _ in range(STEPS):
        with phase("Data"):
            time.sleep(0.001)
            x, y = next(batches)
        with phase("Fwd"):
            time.sleep(0.002)
            loss = loss_of(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        with phase("Opt"):
            time.sleep(0.001)
            optimizer.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
    print("end")
