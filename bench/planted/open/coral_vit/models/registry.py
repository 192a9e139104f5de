_entries = {}


def register_model(fn):
    _entries[fn.__name__] = fn
    return fn


def create_model(name, **kwargs):
    return _entries[name](**kwargs)
