"""DQN learns to swing up Acrobot."""

import gymnasium as gym
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor

TOTAL_STEPS = 14_000


def make_env(seed):
    env = Monitor(gym.make("Acrobot-v1"))
    env.reset(seed=seed)
    env.action_space.seed(seed)
    return env


def main():
    env = make_env(1)
    eval_env = make_env(2)

    model = DQN(
        "MlpPolicy",
        env,
        learning_rate=6.3e-4,
        buffer_size=50_000,
        learning_starts=1_000,
        batch_size=128,
        gamma=0.99,
        train_freq=4,
        gradient_steps=-1,
        target_update_interval=250,
        exploration_fraction=0.12,
        exploration_final_eps=0.1,
        policy_kwargs={"net_arch": [256, 256]},
        seed=1,
        device="cpu",
    )
    model.set_logger(configure("logs", ["stdout", "csv"]))
    evaluation = EvalCallback(
        eval_env,
        eval_freq=2_000,
        n_eval_episodes=5,
        best_model_save_path="best",
        log_path="eval_logs",
    )
    model.learn(total_timesteps=TOTAL_STEPS, callback=evaluation, log_interval=10)
    model.save("dqn_acrobot")


if __name__ == "__main__":
    main()
