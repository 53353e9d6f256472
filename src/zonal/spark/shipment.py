"""Send zonal's functions to executors: by name where zonal is installed there, else by value with the job.

By value, executors need numpy and pyarrow only, and run the driver's version of zonal, whatever else they have.
"""

import copyreg
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

Given = ParamSpec("Given")
Result = TypeVar("Result")

OLDEST_NUMPY, OLDEST_PYARROW = (2, 1), (17, 0)
"""The oldest versions that workers may have; `tests/clusters/test_executor_pythons.py` runs on them."""
_ZONAL = sys.modules[__name__.partition(".")[0]]
"""The whole package; import-linter would take `import zonal` for an import of every module."""

_lock = Lock()
_users = 0
"""Open `shipped` blocks in all threads: cloudpickle has one switch for the whole process."""


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
    """Return the same function, which includes all that it needs of zonal whenever it is pickled.

    `function` yields its results, and must not keep state between calls: a worker makes its own copy for each task. A
    worker that lacks what the function needs raises an error that names its Python and its host.
    """
    with shipped(by_value=by_value):
        pickled = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    held = _Held(function, pickled)

    # A nested function can't be imported by name, so that cloudpickle takes it by value; it names nothing of zonal.
    def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the function
        return held(*args, **kwargs)

    return run


class _Held:
    """A pickled function: a worker that unpickles this gets the function itself, or a readable error."""

    def __init__(self, function: Callable[..., Any], pickled: bytes) -> None:
        self.function = function
        self.pickled = pickled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the function
        return self.function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _loader(), (self.pickled,)


def _loader() -> Callable[[bytes], Any]:
    """Return what unpickles a function in a worker; it is nested, so that it travels by value."""
    oldest = [list(each) for each in (OLDEST_NUMPY, OLDEST_PYARROW)]
    drivers = [np.__version__, pa.__version__]
    complaint = _complaint()

    def load(pickled: bytes) -> Any:  # noqa: ANN401 - any function
        import pickle  # noqa: PLC0415 - all of these are imported by the worker
        from collections.abc import Iterator  # noqa: PLC0415

        try:
            function = pickle.loads(pickled)  # noqa: S301 - pickled above
            import numpy as np  # noqa: PLC0415
            import pyarrow as pa  # noqa: PLC0415

            # numpy 1 takes sums of a uint64 and a number for floats: keys would be others than the driver's.
            found = [[int(part) for part in each.__version__.split(".")[:2]] for each in (np, pa)]
            if any(own < least for own, least in zip(found, oldest, strict=True)):
                raise ImportError("too old")
        except (ImportError, AttributeError) as error:  # the latter: a name that another version lacks
            least = [".".join(map(str, each)) for each in oldest]
            raise complaint(error, f"numpy {least[0]} and pyarrow {least[1]} or later") from None
        if [np.__version__, pa.__version__] == drivers:
            return function

        def run(*args: Any, **kwargs: Any) -> Iterator[Any]:  # noqa: ANN401 - those of the function
            try:
                yield from function(*args, **kwargs)
            except (AttributeError, TypeError) as error:  # a name or an argument that another version lacks
                both = f"numpy {drivers[0]} and pyarrow {drivers[1]}, as the driver has,"
                raise complaint(error, both) from error

        return run

    return load


def _complaint() -> Callable[[Exception, str], ImportError]:
    """Return what says, in a worker, that its packages don't fit, and what to install."""

    def complaint(error: Exception, wanted: str) -> ImportError:
        import platform  # noqa: PLC0415
        import sys  # noqa: PLC0415
        from importlib import metadata  # noqa: PLC0415

        if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == error.name:
            what = f"has no {error.name}"
        else:
            known = {each.metadata["Name"]: each.version for each in metadata.distributions()}
            both = " and ".join(f"{name} {known.get(name, 'of no known version')}" for name in ("numpy", "pyarrow"))
            what = f"has {both}, which can't run what was sent ({error})"
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return ImportError(
            f"the Python of a Spark worker, {sys.executable} on {platform.node()}, {what}. Install {wanted} there, or "
            f"set PYSPARK_PYTHON, or spark.pyspark.python, to a Python {version} that has them, before Spark starts"
        )

    return complaint


def _register(change: int) -> None:
    global _users  # noqa: PLW0603 - see `_users`
    with _lock:
        if _users == 0:
            cloudpickle.register_pickle_by_value(_ZONAL)  # type: ignore[no-untyped-call]
        _users += change
        if _users == 0:
            cloudpickle.unregister_pickle_by_value(_ZONAL)  # type: ignore[no-untyped-call]


# What cloudpickle can't take by value, though it is registered: in Python before 3.12 a cached property, which holds a
# lock there, and in all versions a cached function, which it looks up by name, and a context variable.


def _reduced_property(lazy: "cached_property[Any]") -> tuple[Any, ...]:
    return cached_property, (lazy.func,), {"attrname": lazy.attrname}


def _reduced_cache(cached: Any) -> str | tuple[Any, ...]:  # noqa: ANN401 - a private type of functools
    if _users and cached.__module__.partition(".")[0] == _ZONAL.__name__:
        return _cache_again, (cached.__wrapped__, cached.cache_parameters())
    return str(cached.__qualname__)


def _reduced_variable(variable: "ContextVar[Any]") -> tuple[Any, ...]:
    """Take a variable with the value that it has here as its default there."""
    return _variable_again, (variable.name, variable.get())


def _variable_again(name: str, default: object) -> "ContextVar[Any]":
    return ContextVar(name, default=default)


def _cache_again(function: Callable[..., Any], parameters: dict[str, Any]) -> Callable[..., Any]:
    again: Callable[..., Any] = lru_cache(**parameters)(function)
    return again


if sys.version_info < (3, 12):
    copyreg.pickle(cached_property, _reduced_property)
copyreg.pickle(type(lru_cache(_cache_again)), _reduced_cache)
copyreg.pickle(ContextVar, _reduced_variable)
