from . import losses, networks  # noqa: F401  (fill the registry)
