"""Results made or changed by the names of their fields, whichever group a field is in."""

from dataclasses import MISSING, fields, is_dataclass, replace
from typing import get_type_hints


def made(kind, **values):
    """Make a result; values that no field of its own takes go to its groups."""
    result, left = _made(kind, dict(values))
    assert not left, f"{kind.__name__} has no {', '.join(left)}"
    return result


def _made(kind, values):
    hints, given = get_type_hints(kind), {}
    for each in fields(kind):
        if each.name in values:
            given[each.name] = values.pop(each.name)
        elif is_dataclass(hints[each.name]) and each.default is MISSING and each.default_factory is MISSING:
            given[each.name], values = _made(hints[each.name], values)
    return kind(**given), values


def changed(result, **values):
    """Return a result with other values, each in the group that has it."""
    own = {each.name for each in fields(result)}
    for name in values.keys() - own:
        group = next(each.name for each in fields(result) if name in _names(getattr(result, each.name)))
        result = replace(result, **{group: replace(getattr(result, group), **{name: values[name]})})
    return replace(result, **{name: value for name, value in values.items() if name in own})


def names_of(result):
    """Return the names of a result's own fields, and of its groups'."""
    return _names(result).union(*(_names(getattr(result, name)) for name in _names(result)))


def _names(group):
    return {each.name for each in fields(group)} if is_dataclass(group) else set()
