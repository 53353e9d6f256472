"""How a row group's rows are stored, as a value: their order, and the encoding of each column.

Which files and row groups a query reads depends on which rows they hold; in what order these are, and how their values
are encoded, changes bytes alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

DICTIONARY = "DICTIONARY"
"""Stands for a dictionary, with plain values in files where it doesn't pay."""
PLAIN = "PLAIN"


@dataclass(frozen=True)
class Packing:
    """How new files store the rows of a row group; chosen by trial on some rows."""

    order: tuple[str, ...] = ()
    """Columns by which the rows are sorted, the first one decides most; without any, they are in the key's order."""
    encodings: Mapping[str, str] = field(default_factory=dict)
    """Encoding of each leaf, by its path in Parquet's schema; others have a dictionary where it pays."""
