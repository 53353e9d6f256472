"""A least-recently-used cache, limited by the weight of its values."""

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """The values used last, whose weights together stay within the limit; a single larger value is kept alone.

    Threads may share it; two that miss the same value make it twice.
    """

    def __init__(self, limit: int, weight: Callable[[Value], int] = lambda _: 1) -> None:
        self._limit = limit
        self._weight = weight
        self._total = 0
        self._lock = Lock()
        self._values: dict[Key, tuple[Value, int]] = {}

    def peek(self, key: Key) -> Value | None:
        """Return the value of a key if it is cached; this doesn't count as use."""
        found = self._values.get(key)
        return None if found is None else found[0]

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made now if it isn't cached."""
        with self._lock:
            if key in self._values:
                self._values[key] = self._values.pop(key)  # the newest is the last
                return self._values[key][0]
        value = make()
        weight = self._weight(value)
        with self._lock:
            self._total += weight - self._values.pop(key, (value, 0))[1]
            self._values[key] = value, weight
            while self._total > self._limit and len(self._values) > 1:
                self._total -= self._values.pop(next(iter(self._values)))[1]
        return value
