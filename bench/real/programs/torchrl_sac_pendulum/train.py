"""Soft actor-critic on Pendulum with TorchRL."""
import argparse

import torch
from tensordict.nn import InteractionType, TensorDictModule
from torch import nn, optim
from torchrl.collectors import Collector
from torchrl.data import LazyMemmapStorage, TensorDictReplayBuffer
from torchrl.envs import (
    Compose,
    DoubleToFloat,
    InitTracker,
    RewardSum,
    StepCounter,
    TransformedEnv,
)
from torchrl.envs.libs.gym import GymEnv
from torchrl.envs.utils import ExplorationType, set_exploration_type
from torchrl.modules import MLP, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.modules.distributions import NormalParamExtractor
from torchrl.objectives import SACLoss, SoftUpdate
from torchrl.record.loggers.tensorboard import TensorboardLogger


def make_env(seed):
    env = TransformedEnv(
        GymEnv("Pendulum-v1"),
        Compose(InitTracker(), StepCounter(200), DoubleToFloat(), RewardSum()),
    )
    env.set_seed(seed)
    return env


def make_modules(env, hidden):
    action_dim = env.action_spec.shape[-1]
    actor_net = nn.Sequential(
        MLP(
            in_features=env.observation_spec["observation"].shape[-1],
            out_features=2 * action_dim,
            num_cells=[hidden, hidden],
            activation_class=nn.ReLU,
        ),
        NormalParamExtractor(scale_mapping="biased_softplus_1.0", scale_lb=1e-4),
    )
    actor = ProbabilisticActor(
        spec=env.action_spec,
        module=TensorDictModule(
            actor_net, in_keys=["observation"], out_keys=["loc", "scale"]
        ),
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={
            "low": env.action_spec.space.low,
            "high": env.action_spec.space.high,
            "tanh_loc": False,
        },
        default_interaction_type=InteractionType.RANDOM,
        return_log_prob=False,
    )
    qvalue = ValueOperator(
        in_keys=["action", "observation"],
        module=MLP(
            in_features=env.observation_spec["observation"].shape[-1] + action_dim,
            out_features=1,
            num_cells=[hidden, hidden],
            activation_class=nn.ReLU,
        ),
    )
    with torch.no_grad():
        td = env.fake_tensordict()
        actor(td)
        qvalue(td)
    return actor, qvalue


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--total-frames", type=int, default=5000)
    p.add_argument("--frames-per-batch", type=int, default=100)
    p.add_argument("--init-frames", type=int, default=500)
    p.add_argument("--batch-size", type=int, default=256)
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--gamma", type=float, default=0.99)
    p.add_argument("--eval-every", type=int, default=1000)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()

    torch.manual_seed(args.seed)
    train_env, eval_env = make_env(args.seed), make_env(args.seed + 1)
    actor, qvalue = make_modules(train_env, args.hidden)

    collector = Collector(
        train_env,
        actor,
        init_random_frames=args.init_frames,
        frames_per_batch=args.frames_per_batch,
        total_frames=args.total_frames,
        device="cpu",
    )
    buffer = TensorDictReplayBuffer(
        storage=LazyMemmapStorage(50_000), batch_size=args.batch_size
    )

    loss_module = SACLoss(
        actor_network=actor,
        qvalue_network=qvalue,
        num_qvalue_nets=2,
        loss_function="smooth_l1",
        delay_actor=False,
        delay_qvalue=True,
    )
    loss_module.make_value_estimator(gamma=args.gamma)
    target_updater = SoftUpdate(loss_module, eps=0.995)

    optimizers = [
        optim.Adam(list(loss_module.actor_network_params.flatten_keys().values()), lr=args.lr),
        optim.Adam(list(loss_module.qvalue_network_params.flatten_keys().values()), lr=args.lr),
        optim.Adam([loss_module.log_alpha], lr=args.lr),
    ]

    logger = TensorboardLogger(exp_name="sac_pendulum", log_dir="logs")
    collected = 0
    next_eval = args.eval_every
    for data in collector:
        collector.update_policy_weights_()
        data = data.reshape(-1)
        collected += data.numel()
        buffer.extend(data)

        done = data["next", "done"].squeeze(-1)
        if done.any():
            logger.log_scalar(
                "train/return", data["next", "episode_reward"][done].mean().item(), step=collected
            )

        if collected >= args.init_frames:
            losses = {"loss_actor": 0.0, "loss_qvalue": 0.0, "loss_alpha": 0.0}
            for _ in range(args.frames_per_batch):
                batch = buffer.sample()
                td = loss_module(batch)

                loss = td["loss_actor"] + td["loss_qvalue"] + td["loss_alpha"]
                loss.backward()
                for opt in optimizers:
                    opt.step()
                    opt.zero_grad()

                target_updater.step()
                for k in losses:
                    losses[k] += td[k].item()
            for k, v in losses.items():
                logger.log_scalar(f"train/{k}", v / args.frames_per_batch, step=collected)

        if collected >= next_eval:
            next_eval += args.eval_every
            with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
                rollout = eval_env.rollout(200, actor, auto_cast_to_device=True)
                ret = rollout["next", "reward"].sum().item()
            logger.log_scalar("eval/return", ret, step=collected)
            print(f"frames {collected}  eval return {ret:.1f}")

    collector.shutdown()


if __name__ == "__main__":
    main()
