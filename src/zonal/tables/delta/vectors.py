"""Deletion vectors in a Delta log: where the log says that they lie, and how it names new ones."""

import struct
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from zonal.errors import TableError, quoted
from zonal.plan.rewrite import Vector
from zonal.storage import Storage
from zonal.tables.delta.adds import LiveFile

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGITS = {character: value for value, character in enumerate(_Z85)}
_NAME = "deletion_vector_"
_FRAME = 8
"""Length and checksum, four bytes each, frame a vector in its file."""


def deletion_vector(file: LiveFile, root: str, resolve: Callable[[str], str]) -> Vector | None:
    """Return the place of a file's deletion vector ("Deletion Vector Descriptor Schema")."""
    if file.vector is None:
        return None
    try:
        return _vector(file.vector, root, resolve)
    except (KeyError, ValueError, TypeError, struct.error) as error:
        raise TableError(
            f"The deletion vector of {quoted(file.path, limit=300)} can't be read: {type(error).__name__} {error}"
        ) from None


def _vector(descriptor: Mapping[str, Any], root: str, resolve: Callable[[str], str]) -> Vector:
    kind, text = descriptor["storageType"], str(descriptor["pathOrInlineDv"])
    rows, size = int(descriptor["cardinality"]), int(descriptor["sizeInBytes"])
    if kind == "i":
        data = z85(text)
        if not size <= len(data) < size + 4:
            raise ValueError(f"{len(data)} bytes instead of {size}")
        return Vector(rows, inline=data[:size])
    location = vector_location(descriptor, root, resolve)
    return Vector(rows, location=location, offset=int(descriptor.get("offset") or 0), size=size + _FRAME)


def vector_location(descriptor: Mapping[str, Any], root: str, resolve: Callable[[str], str]) -> str | None:
    """Return the file that a deletion vector lies in; None for one in the log itself."""
    kind, text = descriptor["storageType"], str(descriptor["pathOrInlineDv"])
    if kind == "u":
        # A random prefix, which may be empty, and a UUID in 20 characters.
        prefix, name = text[:-20], f"{_NAME}{uuid.UUID(bytes=z85(text[-20:]))}.bin"
        return f"{root}/{prefix}/{name}" if prefix else f"{root}/{name}"
    if kind == "p":
        return resolve(text)
    if kind == "i":
        return None
    raise ValueError(f"unknown storage type {quoted(str(kind))}")


def located(path: str, descriptor: Mapping[str, Any] | None, storage: Storage) -> set[str]:
    """Return the location of a file and that of its deletion vector, where it has one that can be read."""
    with suppress(KeyError, ValueError, TypeError, struct.error):
        vector = vector_location(descriptor, storage.root, storage.resolve) if descriptor else None
        return {path} if vector is None else {path, vector}
    return {path}


def z85(text: str) -> bytes:
    """Decode Base85 with ZeroMQ's alphabet (RFC 32): four bytes in five characters.

    >>> z85("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    if len(text) % 5:
        raise ValueError(f"{len(text)} characters are not a multiple of five")
    groups = (text[start : start + 5] for start in range(0, len(text), 5))
    return b"".join(struct.pack(">I", _number(group)) for group in groups)


def _number(group: str) -> int:
    number = 0
    for character in group:
        if character not in _DIGITS:
            raise ValueError(f"{quoted(character)} is not a character of Base85")
        number = number * 85 + _DIGITS[character]
    return number


# --- new ones ------------------------------------------------------------------------------------------------------


def new_vector_file(folder: str) -> str:
    """Return the location of a new file of vectors in a folder below the table's."""
    return f"{folder}/{_NAME}{uuid.uuid4()}.bin"


def descriptor_of(vector: Vector, root: str) -> dict[str, Any]:
    """Describe a stored vector by its path from the table's folder ("Deletion Vector Descriptor Schema").

    All engines read vectors in files; Trino and Presto read none in the log itself, and Trino none by absolute paths.
    """
    path = PurePosixPath((vector.location or "").removeprefix(f"{root}/"))
    if vector.location is None or path.is_absolute() or not path.name.startswith(_NAME):
        raise TableError(f"{quoted(str(vector.location), limit=300)} is no file of deletion vectors of the table.")
    prefix = "" if str(path.parent) == "." else str(path.parent)
    name = uuid.UUID(path.stem.removeprefix(_NAME))
    return {
        "storageType": "u",
        "pathOrInlineDv": prefix + z85_text(name.bytes),
        "offset": vector.offset,
        "sizeInBytes": vector.size - _FRAME,
        "cardinality": vector.rows,
    }


def z85_text(data: bytes) -> str:
    """Encode a multiple of four bytes in Base85 with ZeroMQ's alphabet; `z85` decodes it.

    >>> z85_text(bytes.fromhex("864fd26fb559f75b"))
    'HelloWorld'
    """
    numbers = struct.unpack(f">{len(data) // 4}I", data)
    return "".join(_Z85[number // 85**power % 85] for number in numbers for power in range(4, -1, -1))
