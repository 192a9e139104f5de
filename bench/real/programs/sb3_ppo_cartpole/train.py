"""PPO on CartPole with eight environments and a periodic evaluation."""

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

ENV_ID = "CartPole-v1"
N_ENVS = 8
TOTAL_STEPS = 80_000


def linear_schedule(start):
    def value(progress_remaining):
        return start * progress_remaining

    return value


def main():
    train_env = make_vec_env(ENV_ID, n_envs=N_ENVS, seed=0)
    eval_env = Monitor(gym.make(ENV_ID))
    eval_env.reset(seed=100)

    model = PPO(
        "MlpPolicy",
        train_env,
        learning_rate=linear_schedule(1e-3),
        n_steps=256,
        batch_size=64,
        n_epochs=10,
        gamma=0.98,
        gae_lambda=0.95,
        ent_coef=0.001,
        seed=0,
        device="cpu",
        verbose=1,
    )
    callbacks = [
        EvalCallback(
            eval_env,
            best_model_save_path="best",
            log_path="eval_logs",
            eval_freq=1250,
            n_eval_episodes=5,
            deterministic=True,
        ),
        CheckpointCallback(save_freq=2500, save_path="checkpoints", name_prefix="ppo"),
    ]
    model.learn(total_timesteps=TOTAL_STEPS, callback=callbacks)
    model.save("ppo_cartpole")

    mean, std = evaluate_policy(model, eval_env, n_eval_episodes=10)
    print(f"reward over ten episodes: {mean:.1f} +- {std:.1f}")


if __name__ == "__main__":
    main()
