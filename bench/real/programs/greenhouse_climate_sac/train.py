"""SAC on the greenhouse with evaluation and checkpoint callbacks of Stable-Baselines3."""
import argparse
import os

from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecNormalize

from greenhouse import GreenhouseEnv


class ComfortCallback(BaseCallback):
    """Writes how far the house is from its targets, as a running mean."""

    def __init__(self, decay=0.99):
        super().__init__()
        self.decay, self.mean = decay, None

    def _on_step(self):
        house = self.training_env.envs[0].unwrapped
        off = abs(house.temperature - house.target_temperature)
        self.mean = off if self.mean is None else self.decay * self.mean + (1 - self.decay) * off
        self.logger.record("comfort/off_temperature", self.mean)
        return True


def linear(initial):
    return lambda remaining: initial * remaining


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--timesteps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--out", default="runs/sac")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)

    env = VecNormalize(make_vec_env(GreenhouseEnv, n_envs=1, seed=args.seed), norm_obs=True, norm_reward=False)
    eval_env = VecNormalize(make_vec_env(GreenhouseEnv, n_envs=1, seed=args.seed + 100), norm_obs=True,
                            norm_reward=False, training=False)

    model = SAC(
        "MlpPolicy", env,
        learning_rate=linear(1e-3),
        buffer_size=50_000,
        learning_starts=300,
        batch_size=256,
        gamma=0.98,
        tau=0.01,
        train_freq=1,
        gradient_steps=1,
        policy_kwargs=dict(net_arch=[128, 128]),
        seed=args.seed,
    )
    model.set_logger(configure(args.out, ["csv", "tensorboard"]))
    callbacks = CallbackList([
        ComfortCallback(),
        EvalCallback(eval_env, eval_freq=1000, n_eval_episodes=5, deterministic=True,
                     log_path=args.out, best_model_save_path=args.out),
        CheckpointCallback(save_freq=2000, save_path=args.out, name_prefix="sac", save_vecnormalize=True),
    ])
    model.learn(total_timesteps=args.timesteps, callback=callbacks, log_interval=4)

    mean, std = evaluate_policy(model, eval_env, n_eval_episodes=10)
    print(f"return {mean:.1f} +- {std:.1f}")
    model.save(os.path.join(args.out, "final"))


if __name__ == "__main__":
    main()
