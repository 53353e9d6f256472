"""Resolve the names that people and table properties give to Parquet's compression codecs."""

from collections.abc import Mapping

from zonal.errors import ZonalError, quoted, suggestion

CODECS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")
"""Codecs that can be written, by Arrow's names."""
_ALIASES = {"uncompressed": "none", "lz4_raw": "lz4", "lz4raw": "lz4", "lz4_hadoop": "lz4"}


def known_codec(name: str) -> str | None:
    """Return a codec by any of its names; None where it can't be written.

    >>> known_codec("UNCOMPRESSED"), known_codec("LZ4_RAW"), known_codec("lzo")
    ('none', 'lz4', None)
    """
    plain = name.strip().lower()
    codec = _ALIASES.get(plain, plain)
    return codec if codec in CODECS else None


def asked_codec(name: str | None) -> str | None:
    """Return the codec of this name, or raise an error with the nearest name; None stays None."""
    if name is None:
        return None
    if (codec := known_codec(name)) is not None:
        return codec
    raise ZonalError(f"There is no compression {quoted(name)}. {suggestion(name, CODECS)}")


def usual_codec(sizes: Mapping[str, int]) -> str:
    """Return the codec of most bytes, given the bytes of files per codec; zstd where no codec is known.

    >>> usual_codec({"SNAPPY": 20, "ZSTD": 10, "LZO": 30}), usual_codec({})
    ('snappy', 'zstd')
    """
    known = dict.fromkeys(CODECS, 0)
    for name, size in sizes.items():
        if (codec := known_codec(name)) is not None:
            known[codec] += size
    return max(known, key=lambda codec: known[codec])  # the first codec where nothing is known
