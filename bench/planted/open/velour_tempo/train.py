from tempo.config import Config
from tempo.fit import Trainer

if __name__ == "__main__":
    Trainer(Config()).fit()
