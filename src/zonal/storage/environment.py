"""What libraries take from the environment alone, set there for as long as a client is made."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from threading import Lock


class _Turn:
    """Whose turn it is to set variables; in a worker, which gets its functions by value, it begins anew."""

    def __init__(self) -> None:
        self.lock = Lock()

    def __reduce__(self) -> tuple[type["_Turn"], tuple[()]]:
        return _Turn, ()


_TURN = _Turn()


@contextmanager
def in_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables; one client after the other, since all threads share the environment."""
    with _TURN.lock:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


@contextmanager
def key_file(text: str) -> Iterator[str]:
    """Write a key to a file that nobody else can read, and remove it afterwards."""
    with NamedTemporaryFile("w", prefix="zonal-", suffix=".json", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        yield file.name
