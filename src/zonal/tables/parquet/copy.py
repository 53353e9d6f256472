"""Copy plain Parquet: describe how workers read a folder's files, and make a new folder appear by one rename."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.fs

from zonal.errors import ColumnError, ConflictError, TableError, option, quoted, suggestion
from zonal.layouts.layout import Layout
from zonal.plan.rewrite import Reading, Scan, Source, Writing, Written
from zonal.plan.run import run_folder
from zonal.snapshot import UNKNOWN, Snapshot
from zonal.storage import Storage, local_path
from zonal.storage.durability import flush_folder
from zonal.tables.hive_folders import LONGEST_NAME, hive_folders
from zonal.tables.protocol import Sending, unheard
from zonal.values.arrays import Int64Array
from zonal.values.columns import leaves

LAYOUT_KEY = "zonal.layout"


def scan_files(snapshot: Snapshot, files: Int64Array, storage: Storage, columns: Sequence[str] | None) -> Scan:
    """Return how workers read files of a folder: columns by name, Hive partition columns from the folders' names."""
    names = (
        list(columns) if columns is not None else [n for n in snapshot.schema.names if n not in snapshot.partitioning]
    )
    for name in names:
        if name not in snapshot.schema.names:
            raise ColumnError(f"Unknown column {quoted(name)}. {suggestion(name, snapshot.schema.names)}")
    schema = pa.schema([snapshot.schema.field(name) for name in names])
    known = snapshot.files
    constant = [name for name in names if name in snapshot.partitioning]
    sources = tuple(
        Source(
            number=file,
            path=known.paths[file].as_py(),
            size=int(known.sizes[file]),
            rows=int(known.rows[file]),
            partition=int(known.partition[file]),
            constants={name: _constant(snapshot, name, file) for name in constant},
        )
        for file in files.tolist()
    )
    if unread := [source.path for source in sources if source.rows == UNKNOWN]:
        raise TableError(f"{quoted(unread[0], limit=300)} can't be read: mend it or take it out of the folder.")
    return Scan(sources, Reading(schema), {name: name for name in leaves(schema)}, storage)


def _constant(snapshot: Snapshot, name: str, file: int) -> pa.Scalar:
    bounds = snapshot.files.partition_bounds[name]
    kind = snapshot.schema.field(name).type
    if not bounds.lower[file].is_valid and bounds.nulls[file] == UNKNOWN:
        path = snapshot.files.paths[file].as_py()
        raise TableError(f"{quoted(path, limit=300)} is in no folder {name}=…, as other files are: move it, or them.")
    return pa.array([bounds.lower[file]], bounds.lower.type).cast(kind)[0]


class ParquetDestination:
    """A folder of Parquet files that doesn't exist yet."""

    def __init__(self, location: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        self._storage = Storage(location, storage_options or {})
        self.name = self._storage.root
        self._folder = ""

    def file_columns(self, schema: pa.Schema, partitioning: Sequence[str]) -> list[str]:
        """Return the columns that go into files; the others are in the folders' names."""
        return [name for name in schema.names if name not in partitioning]

    def writing(
        self,
        schema: pa.Schema,
        partitioning: Sequence[str],
        partitions: Sequence[Mapping[str, pa.Scalar]],
        *,
        layout: Layout,
        run: str,
        compression: str | None = None,
    ) -> Writing:
        """Write to a folder beside the new one; refuse if there is something already."""
        if local_path(self.name) is None:
            raise TableError(
                f"{quoted(self.name, limit=300)} is in an object store, where a folder of Parquet files can't appear "
                f"at once. {_instead()}"
            )
        _, path = self._storage.locate(self.name)
        if self._is_there(path):
            raise TableError(
                f"{quoted(self.name, limit=300)} exists already. Choose a new folder for {option('into')}."
            )
        self._folder = f"{path.rpartition('/')[0]}/{run_folder(layout.id, run)}"
        return Writing(
            folder=self._folder,
            storage=self._storage,
            schema=pa.schema([schema.field(name) for name in self.file_columns(schema, partitioning)]),
            subfolders=tuple(_subfolder(values, partitioning) for values in partitions),
            compression=compression or "zstd",
            bloom_columns=layout.bloom_columns,
            encodings=layout.encodings or "plain",
            footer={LAYOUT_KEY: layout.to_json()},
        )

    def publish(self, added: Sequence[Written], *, sending: Sending = unheard) -> int | None:
        """Rename the run's folder to the new one's name."""
        if not added:
            raise TableError(
                f"There are no rows to copy to {quoted(self.name, limit=300)}, and a folder without files has no "
                f"columns either. {_instead()}"
            )
        filesystem, path = self._storage.locate(self.name)
        if self._is_there(path):
            raise ConflictError(f"{quoted(self.name, limit=300)} was made by somebody else meanwhile.")
        sending()
        try:
            filesystem.move(self._folder, path)
        except OSError as error:
            # A network file system may repeat a request that succeeded, and report that the folder is gone.
            if self._is_there(self._folder) or not self._is_there(path):
                raise TableError(f"Can't rename {quoted(self._folder, limit=300)} to {quoted(path)}: {error}") from None
        with suppress(OSError):  # the folder exists: an error would say that it doesn't
            flush_folder(Path(path).parent)
        return None

    def refers_to(self, added: Sequence[Written]) -> set[str]:
        """Return the written files that are in the new folder; see `Destination`."""
        _, path = self._storage.locate(self.name)
        return {file.path for file in added if self._is_there(path + file.path[len(self._folder) :])}

    def _is_there(self, path: str) -> bool:
        try:
            filesystem, _ = self._storage.locate(self.name)
            return bool(filesystem.get_file_info(path).type != pa.fs.FileType.NotFound)
        except OSError as error:
            raise TableError(f"Can't look at {quoted(path, limit=300)}: {error}") from None


def _subfolder(values: Mapping[str, pa.Scalar], partitioning: Sequence[str]) -> str:
    """Return the folders of a partition; refuse a value that is too long for a name, as plain Parquet can't keep it."""
    if hidden := [name for name in partitioning if name.startswith(".")]:
        raise TableError(
            f"The partition column {quoted(hidden[0])} makes folders whose names begin with a dot, which readers of "
            f"Parquet pass over. {_instead()}"
        )
    texts = {name: _text(values[name]) for name in partitioning}
    if (folders := hive_folders(texts)) is None:
        name = max(texts, key=lambda name: len(name) + len(texts[name] or ""))
        raise TableError(
            f"The partition value {quoted(texts[name] or '')} of column {quoted(name)} makes the name of a folder that "
            f"has more than {LONGEST_NAME} bytes, which file systems don't take. {_instead()}"
        )
    return folders


def _text(value: pa.Scalar) -> str | None:
    return str(value.cast(pa.string()).as_py()) if value.is_valid else None


def _instead() -> str:
    return f"Write a table instead: {option('into')} delta:… or iceberg:…."
