_TABLE = {}


def register(group, name):
    def wrap(obj):
        _TABLE[(group, name)] = obj
        return obj

    return wrap


def build(group, spec, **extra):
    spec = dict(spec)
    return _TABLE[(group, spec.pop("name"))](**spec, **extra)


from . import data, models, negatives  # noqa: E402,F401  (fills the table)
