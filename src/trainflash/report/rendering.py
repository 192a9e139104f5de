"""The pages' templates, all rendered by the same rules."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jinja2


@functools.cache
def template(name: str, **filters: Callable[..., object]) -> jinja2.Template:
    """The template of this name, with the filters that it uses; a name that it asks for and does not get is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("trainflash.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(name)
