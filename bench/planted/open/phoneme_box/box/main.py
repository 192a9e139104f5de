import argparse

from box import runtime

parser = argparse.ArgumentParser()
parser.add_argument("--settings", default="settings.json")


if __name__ == "__main__":
    values = runtime.settings(parser.parse_args().settings)
    runtime.prepare(values)
    from box.learning import learn

    learn(values)
