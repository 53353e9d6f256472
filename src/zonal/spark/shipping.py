"""How zonal's functions reach executors: by name where zonal is installed there, else with the job itself.

Executors then need numpy and pyarrow only, and run the driver's version of zonal, whatever else they have.
"""

import copyreg
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from pyspark import cloudpickle

Given = ParamSpec("Given")
Result = TypeVar("Result")

_ZONAL = sys.modules[__name__.partition(".")[0]]
"""The whole package: an import of it would stand for one of every module."""

_lock = Lock()
_users = 0
"""Blocks that want zonal by value now, in all threads: cloudpickle has one switch for the whole process."""


@contextmanager
def shipped(*, by_value: bool = True) -> Iterator[None]:
    """While this is open, pickle zonal's functions and classes by value, so that executors need no zonal.

    Spark Connect pickles functions when a query runs: the query must run in here, too, or use `carried`.
    """
    if not by_value:
        yield
        return
    _register(+1)
    try:
        yield
    finally:
        _register(-1)


def carried(function: Callable[Given, Result], *, by_value: bool = True) -> Callable[Given, Result]:
    """Return the same function with all that it needs of zonal inside, whenever it is pickled.

    `function` must not keep state between calls: a worker makes its own copy for each task.
    """
    if not by_value:
        return function
    with shipped():
        pickled = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]

    # A nested function has no name to import it by, so that cloudpickle takes it by value; it names nothing of zonal.
    def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the function
        import pickle  # noqa: PLC0415 - imported by the worker

        return pickle.loads(pickled)(*args, **kwargs)  # noqa: S301 - pickled above

    return run


def _register(change: int) -> None:
    global _users  # noqa: PLW0603 - see `_users`
    with _lock:
        if _users == 0:
            cloudpickle.register_pickle_by_value(_ZONAL)  # type: ignore[no-untyped-call]
        _users += change
        if _users == 0:
            cloudpickle.unregister_pickle_by_value(_ZONAL)  # type: ignore[no-untyped-call]


# What cloudpickle can't take by value, though it is registered: in Python before 3.12 a cached property, which holds a
# lock there, and in all versions a cached function, which it looks up by name.


def _reduced_property(lazy: "cached_property[Any]") -> tuple[Any, ...]:
    return cached_property, (lazy.func,), {"attrname": lazy.attrname}


def _reduced_cache(cached: Any) -> str | tuple[Any, ...]:  # noqa: ANN401 - a private type of functools
    if _users and cached.__module__.partition(".")[0] == _ZONAL.__name__:
        return _cache_again, (cached.__wrapped__, cached.cache_parameters())
    return str(cached.__qualname__)


def _cache_again(function: Callable[..., Any], parameters: dict[str, Any]) -> Callable[..., Any]:
    again: Callable[..., Any] = lru_cache(**parameters)(function)
    return again


if sys.version_info < (3, 12):
    copyreg.pickle(cached_property, _reduced_property)
copyreg.pickle(type(lru_cache(_cache_again)), _reduced_cache)
