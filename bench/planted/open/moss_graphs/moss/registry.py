class Registry(dict):
    def register(self, name):
        def keep(thing):
            self[name] = thing
            return thing

        return keep

    def build(self, spec):
        spec = dict(spec)
        return self[spec.pop("type")](**spec)


MODELS = Registry()
LOSSES = Registry()
