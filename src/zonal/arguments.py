"""Arguments of wrong types are refused by name, as the annotations of a function or class have them."""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from zonal.errors import ZonalError, option

_NUMBERS: Mapping[object, type] = {int: Integral, float: Real}
_WORDS: Mapping[object, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    datetime: "a datetime",
    os.PathLike: "a path",
    Callable: "a function",
    Sequence: "a sequence",
    Mapping: "a mapping",
}
_PLURALS: Mapping[str, str] = {"a text": "texts", "a path": "paths"}


def check_arguments(annotated: Callable[..., object], given: Mapping[str, object]) -> None:
    """Raise an error for the first argument that isn't what its annotation says.

    Annotations in quotes, whose classes are imported for type checkers alone, protocols and tuples are left to the
    caller. A kind that is `Annotated` with a text is called so in the message.

    >>> def look(table: str, *, columns: Sequence[str] | None = None) -> None: ...
    >>> check_arguments(look, {"table": "events", "columns": "id"})
    Traceback (most recent call last):
    zonal.errors.ZonalError: columns='id' is not a sequence of texts, or None.
    """
    for name, kind in annotated.__annotations__.items():
        if name in given and not _fits(given[name], kind):
            is_secret = isinstance(given[name], Mapping)  # of storage options or settings, which may hold passwords
            raise ZonalError(f"{option(name, None if is_secret else given[name])} is not {_words(kind)}.")


def _fits(value: object, kind: Any) -> bool:  # noqa: ANN401 - annotations are of many classes
    if _is_union(kind):
        return any(_fits(value, each) for each in get_args(kind))
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is Annotated:
        return _fits(value, inner[0])
    if not isinstance(origin, type) or origin is tuple or getattr(origin, "_is_protocol", False):
        return kind is not None or value is None
    if origin in _NUMBERS:
        return isinstance(value, _NUMBERS[origin]) and not isinstance(value, bool)
    if origin is Sequence:  # a text is a sequence of texts, too, but nobody means its letters
        return isinstance(value, Sequence) and not isinstance(value, str) and all(_fits(each, *inner) for each in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(all(map(_fits, item, inner)) for item in value.items())
    return isinstance(value, origin)


def _is_union(kind: object) -> bool:
    return get_origin(kind) in (Union, UnionType)


def _words(kind: Any) -> str:  # noqa: ANN401
    if _is_union(kind):
        kinds = get_args(kind)
        if any(get_origin(each) is os.PathLike for each in kinds):
            kinds = tuple(each for each in kinds if each is not str)
        *others, last = dict.fromkeys(map(_words, kinds))
        return f"{', '.join(others)}, or {last}" if others else last
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is Annotated:
        return str(inner[1])
    words = _WORDS.get(origin) or f"a {getattr(origin, '__name__', 'value')}"
    if origin in (Sequence, Mapping):
        return f"{words} of {' to '.join(_PLURALS.get(_words(each), _words(each)) for each in inner)}"
    return words
