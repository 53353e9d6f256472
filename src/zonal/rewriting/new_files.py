"""How a rewrite writes its new files, as a value."""

from dataclasses import dataclass

from zonal.arguments import check_arguments
from zonal.layouts.layout import Encodings
from zonal.parquet.codecs import asked_codec
from zonal.values.sizes import Size, size_of


@dataclass(frozen=True)
class NewFiles:
    """How new files are written, and what is checked before they are committed.

    Arguments:
        target_file_size: of each file, in bytes or as in `128MB`; by default, that of the layout or of the
            table's property, else what suits the table's size.
        compression: the codec: zstd, snappy, gzip, lz4, brotli or none; by default, the table's own, and for a copy
            zstd.
        encodings: those that readers of the files know: plain (Parquet 1.0) or modern (DELTA encodings, too); by
            default, as the table's layout has it, else modern for Delta and plain for Iceberg and Parquet.
        keep_properties: leave a Delta table's properties alone that keep readers from using a key's statistics;
            without, the commit changes them.
        verify: also compare a checksum of all rows, taken where they are read and where they are written.

    Example:
        >>> small = zonal.NewFiles(target_file_size="500KB", compression="zstd")
        >>> zonal.cluster("orders", by=["id", "day"], files=small, dry_run=True).layout
        'zorder(id, day, file_size=500KB)'
    """

    target_file_size: Size | None = None
    compression: str | None = None
    keep_properties: bool = False
    verify: bool = False
    encodings: Encodings | None = None

    def __post_init__(self) -> None:
        check_arguments(type(self), vars(self))

    @property
    def target_bytes(self) -> int | None:
        """Return the size of each file in bytes."""
        return size_of(self.target_file_size, "target_file_size")

    @property
    def codec(self) -> str | None:
        """Return the codec by its name in Parquet."""
        return asked_codec(self.compression)
