"""finch: tools for bird calls.

python cli.py fit [--config finch.yaml] [key=value ...]
python cli.py count [--config finch.yaml]
"""

import argparse

import cfg as config
from fitting import Fit
from listener import Listener


def do_fit(args):
    Fit(config.load(args.config, args.override)).run()


def do_count(args):
    tree = config.load(args.config, [])
    model = Listener(tree.data.bands, tree.model.width, tree.model.layers, tree.data.species)
    for name, parameter in model.named_parameters():
        print(f"{name:40s} {parameter.numel():8d}")


def main():
    parser = argparse.ArgumentParser(description="tools for bird calls")
    commands = parser.add_subparsers(required=True)
    fit = commands.add_parser("fit", help="train the listener")
    fit.add_argument("--config", default="finch.yaml")
    fit.add_argument("override", nargs="*")
    fit.set_defaults(run=do_fit)
    count = commands.add_parser("count", help="count parameters")
    count.add_argument("--config", default="finch.yaml")
    count.set_defaults(run=do_count)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
