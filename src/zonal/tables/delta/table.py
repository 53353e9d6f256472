"""Open Delta tables: read versions as snapshots, plan scans and writes, and commit rewrites."""

from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.fs

from zonal.cleaning.retention import Retention
from zonal.cleaning.spares import Spares
from zonal.errors import ColumnError, TableError, quoted, suggestion
from zonal.layouts.layout import Layout
from zonal.parquet.codecs import CODECS, known_codec
from zonal.plan.append import Append, Appending, PartitionValues
from zonal.plan.rewrite import NewDeletes, Reading, Rewrite, Scan, Source, Writing
from zonal.plan.run import run_folder
from zonal.snapshot import Commit, Physical, Snapshot, refuse_impossible
from zonal.storage import Storage, local_path, open_regular
from zonal.storage.causes import STORAGE_ERRORS
from zonal.storage.objects import unavailable
from zonal.tables.delta.adds import LiveFile
from zonal.tables.delta.append import DeltaAppend, appending_of, folders_of, refuse_unfit, values_of
from zonal.tables.delta.commit import commit, log_folder, new_versions
from zonal.tables.delta.features import blockers_of, may_have_vectors, refuse_unreadable, refuse_unwritable
from zonal.tables.delta.files import files_of
from zonal.tables.delta.indexed import covering, indexed, unused
from zonal.tables.delta.layout_commit import DeltaRecording
from zonal.tables.delta.listing import LogFolder
from zonal.tables.delta.log import State, named_in, replay
from zonal.tables.delta.partition_values import constants
from zonal.tables.delta.replacement import DeltaReplacement
from zonal.tables.delta.scan import Columns
from zonal.tables.delta.schema import read_schema
from zonal.tables.delta.spare_files import Log, spare_files
from zonal.tables.delta.traits import ENCODINGS, traits_of
from zonal.tables.delta.vectors import deletion_vector, located, new_vector_file
from zonal.tables.hive_folders import hive_folders
from zonal.tables.protocol import Sending, recorded_layout, unheard
from zonal.values.arrays import Int64Array

_CODEC = "delta.parquet.compression.codec"


def is_delta(location: str, *, storage_options: Mapping[str, str] | None = None) -> bool:
    """Tell whether there is a `_delta_log` folder at the location."""
    storage = Storage(location, storage_options or {})
    filesystem, path = storage.locate(f"{storage.root}/_delta_log")
    try:
        kind = filesystem.get_file_info(path).type
    except STORAGE_ERRORS as error:
        raise TableError(
            f"Can't look for a table at {quoted(storage.root, limit=300)}: {storage.told(error)}"
        ) from None
    return bool(kind == pa.fs.FileType.Directory)


class DeltaTable:
    """A Delta table at a folder: its newest version, or a pinned one."""

    def __init__(
        self, location: str, *, version: int | None = None, storage_options: Mapping[str, str] | None = None
    ) -> None:
        self._storage = Storage(location, storage_options or {})
        self._version = version
        self._states: WeakValueDictionary[int, State] = WeakValueDictionary()
        """States by version, as long as somebody holds a snapshot that was read from one."""
        self.name = self._storage.root

    def newest(self) -> "DeltaTable":
        """Return the table without a pinned version."""
        table = DeltaTable.__new__(DeltaTable)
        table.__dict__.update(self.__dict__ | {"_version": None})
        return table

    @property
    def pinned(self) -> bool:
        """Whether the table is pinned to a version; see `Versioned`."""
        return self._version is not None

    def at(self, version: int) -> "DeltaTable":
        """Return the table pinned to a version; see `Versioned`."""
        table = self.newest()
        table._version = version
        return table

    def versions(self) -> tuple[Commit, ...]:
        """Return the commits up to the version that can still be read; see `Versioned`.

        Commits from before a checkpoint are listed as far as `log.HISTORY_BYTES` lets them be read.
        """
        log, state = self._log(), self._replay(self._version)
        return tuple(state.commits[number] for number in log.replayable(state.version) if number in state.commits)

    def snapshot(self) -> Snapshot:
        """Read one version from the log alone.

        What the log doesn't say is UNKNOWN or null; a log that can't be read completely raises a `TableError`.
        """
        state = self._replay(self._version, after=self._held(self._version))
        self._states[state.version] = state
        refuse_unreadable(state.protocol, self.name)
        mapping = state.metadata.configuration.get("delta.columnMapping.mode", "none")
        schema, leaves = read_schema(state.metadata.schema, mapping=mapping)
        layout, problems = recorded_layout(state.metadata.configuration)
        files, providers = files_of(state.adds, leaves, state.metadata.partitioning, indexed(state.metadata))
        refuse_impossible(files, self.name)
        marked = {"clusteringProvider": str(providers)} if providers else {}
        return Snapshot(
            name=self.name,
            format="delta",
            location=self._storage.root,
            version=state.version,
            time=state.time,
            schema=schema,
            partitioning=state.metadata.partitioning,
            files=files,
            # Files may hold partition columns, too, but the log's values count: '' in a file is null in the log.
            physical={
                leaf.name: Physical(".".join(leaf.steps), leaf.field_id)
                for leaf in leaves
                if leaf.name not in state.metadata.partitioning
            },
            layout=layout,
            properties={**state.metadata.configuration, **marked},
            commits=state.commits,
            traits=traits_of(self._storage.root, state.metadata.configuration),
            blockers=(*blockers_of(state.protocol, state.metadata), *_uncommitted(self._storage)),
            problems=(*problems, *state.problems, *unused(state.metadata, layout.columns if layout else ())),
            source=state,
        )

    def scan(self, snapshot: Snapshot, files: Int64Array, *, columns: Sequence[str] | None = None) -> Scan:
        """Return what workers need to read the rows of these files; see `Rewritable`."""
        state, chosen = self._chosen(snapshot, files)
        known = Columns.of(state.metadata)
        reading = known.reading if columns is None else known.reading_of(columns)
        names = known.in_files if columns is None else columns
        fixed = [known.fields[name] for name in names if name in known.partitioning]
        return Scan(
            sources=tuple(
                self._source(snapshot, number, file, reading, fixed)
                for number, file in zip(files.tolist(), chosen, strict=True)
            ),
            reading=reading,
            columns=known.paths(names),
            storage=self._storage,
        )

    def writing(self, snapshot: Snapshot, *, layout: Layout, run: str, compression: str | None = None) -> Writing:
        """Return how files that replace others are written, or refuse what a rewrite can't keep."""
        if self._version is not None:
            raise TableError(
                f"Version {self._version} of {quoted(self.name, limit=300)} never changes. Leave it out to rewrite the "
                "table."
            )
        new_versions(self._storage)
        metadata = self._state(snapshot).metadata
        refuse_unwritable(snapshot.blockers, self.name)
        known = Columns.of(metadata)
        return Writing(
            folder=f"{self._storage.root}/{run_folder(layout.id, run)}",
            storage=self._storage,
            schema=known.reading.schema,
            compression=compression or _compression(metadata.configuration),
            subfolders=self._subfolders(snapshot, [known.fields[name].name for name in metadata.partitioning]),
            bloom_columns=_bloom_columns(known, layout),
            properties=covering(metadata, layout.columns),
            encodings=layout.encodings or ENCODINGS,
            log=log_folder(self._storage),
        )

    def _subfolders(self, snapshot: Snapshot, names: Sequence[str]) -> tuple[str, ...]:
        """Return one folder per partition, named by its values under their names in the log.

        The protocol doesn't require them, but Polars reads the values from the folders' names.
        """
        if not names:
            return ()
        _, first = np.unique(snapshot.files.partition, return_index=True)
        _, files = self._chosen(snapshot, first)
        return tuple(
            hive_folders({name: file.values.get(name) for name in names}, empty="", plain_keys=True) or ""
            for file in files
        )

    def commit(self, rewrite: Rewrite, *, sending: Sending = unheard) -> int:
        """Replace files in one new version of the log and return it; see `Rewritable`."""
        log = new_versions(self._storage)
        base, read = self._chosen(rewrite.base, rewrite.removed)
        refuse_unwritable(blockers_of(base.protocol, base.metadata), self.name)
        partitions = rewrite.base.files.partition[rewrite.removed].tolist()
        removed, vectors = read, {}
        if rewrite.carried is not None:
            removed = self._live(self._state(rewrite.carried.seen), [file.path for file in read])
            vectors = rewrite.carried.vectors
        replacement = DeltaReplacement(
            root=self._storage.root,
            base=base,
            removed=removed,
            added=rewrite.added,
            values={number: file.values for number, file in zip(partitions, read, strict=True)},
            layout=rewrite.layout,
            run=rewrite.run,
            properties=rewrite.properties,
            vectors=vectors,
        )
        return commit(replacement, lambda after: self._replay(None, after=after or base), log, sending=sending)

    def new_deletes(self, snapshot: Snapshot, writing: Writing) -> NewDeletes | None:
        """Return where deletion vectors of new files go; see `CarriesDeletes`."""
        state = self._state(snapshot)
        allowed = may_have_vectors(state.protocol, state.metadata.configuration)
        return NewDeletes("vectors", new_vector_file(writing.folder)) if allowed else None

    def record(self, layout: Layout, base: Snapshot) -> None:
        """Record a layout in one new version of the log; see `Rewritable`."""
        state = self._state(base)
        refuse_unwritable(blockers_of(state.protocol, state.metadata), self.name)
        recording = DeltaRecording(self._storage.root, state, layout)
        commit(recording, lambda after: self._replay(None, after=after or state), new_versions(self._storage))

    def appending(self, snapshot: Snapshot, *, layout: Layout, run: str, compression: str | None = None) -> Appending:
        """Return how rows become files of the table; see `Appendable`."""
        new_versions(self._storage)
        state = self._state(snapshot)
        refuse_unfit(state.metadata, snapshot.blockers, self.name)
        writing = self.writing(snapshot, layout=layout, run=run, compression=compression)
        return appending_of(state, snapshot.schema, writing)

    def folders(self, snapshot: Snapshot, partitions: Sequence[PartitionValues]) -> tuple[str, ...]:
        """Return the folder of each partition; see `Appendable`."""
        return folders_of(self._state(snapshot).metadata, partitions)

    def append(self, append: Append, *, sending: Sending = unheard) -> int:
        """Add files in one new version of the log and return it; see `Appendable`."""
        base = self._state(append.base)
        addition = DeltaAppend(
            root=self._storage.root,
            base=base,
            added=append.added,
            values=dict(enumerate(values_of(base.metadata, append.partitions))),
            layout=append.layout,
            run=append.run,
            transaction=append.transaction,
        )
        log = new_versions(self._storage)
        return commit(addition, lambda after: self._replay(None, after=after or base), log, sending=sending)

    def last_transaction(self, snapshot: Snapshot, application: str) -> int | None:
        """Return the last version of an application that the table has; see `Appendable`."""
        return self._state(snapshot).transactions.get(application)

    def refers_to(self, change: Rewrite | Append) -> set[str]:
        """Return the new files of a change that any version since its base has; see `Rewritable`.

        With them are deletion vectors in the run's own folder, whatever version of the change they were written for.
        """
        ours = {file.path for file in change.added}
        own = f"{self._storage.root}/{run_folder(change.layout.id, change.run)}/"
        log, state = self._log(), self._replay(None)
        since = [number for number in log.commits if number > (change.base.version or 0)]
        live = (located(file.path, file.vector, self._storage) for file in state.find(ours))
        named = named_in(log, since, self._storage).union(*live)
        return {path for path in named if path in ours or path.startswith(own)}

    def place(self) -> Storage:
        """Return the table's folder; see `Cleanable`."""
        return self._storage

    def spare(self, retention: Retention) -> Spares:
        """Return the files that no version needs which is kept; see `Cleanable`."""
        return spare_files(self._whole_log(), retention, self.name)

    def needed(self, retention: Retention) -> set[str]:
        """Return the files that the versions need which are kept; see `Cleanable`."""
        return self._whole_log().needed(retention)

    def _whole_log(self) -> Log:
        """Read all commits; refuse a table with a feature by which it may need files that aren't known here."""
        log = Log.read(self._log(), self._storage)
        refuse_unreadable(log.state.protocol, self.name)
        if blockers := blockers_of(log.state.protocol, log.state.metadata):
            raise TableError(
                f"{quoted(self.name, limit=300)} can't be cleaned: zonal doesn't know which files its "
                f"{', '.join(blockers)} needs."
            )
        return log

    def _replay(self, version: int | None, *, after: State | None = None) -> State:
        return replay(self._log(), self._storage.resolve, version=version, after=after)

    def _held(self, version: int | None) -> State | None:
        """Return the newest state up to a version, of those whose snapshots are still referenced.

        So a walk through old versions, oldest first, reads each commit once, and so do the steps of one run.
        """
        older = [state for state in list(self._states.values()) if version is None or state.version <= version]
        return max(older, key=lambda state: state.version, default=None)

    def _log(self) -> LogFolder:
        return LogFolder.of(*self._storage.locate(log_folder(self._storage)))

    def _state(self, snapshot: Snapshot) -> State:
        """Return what the log said when a snapshot of this table was read."""
        if isinstance(snapshot.source, State) and snapshot.location == self._storage.root:
            return snapshot.source
        return self._replay(snapshot.version)

    def _chosen(self, snapshot: Snapshot, files: Int64Array) -> tuple[State, list[LiveFile]]:
        """Return some of a snapshot's files, by path: a checkpoint written since may have another order."""
        state = self._state(snapshot)
        return state, self._live(state, snapshot.files.paths.take(pa.array(files)).to_pylist())

    def _live(self, state: State, paths: Sequence[str]) -> list[LiveFile]:
        """Return a version's files at these locations, in the same order."""
        live = {file.path: file for file in state.find(paths)}
        if missing := [path for path in paths if path not in live]:
            raise TableError(f"{quoted(missing[0], limit=300)} is no file of version {state.version}.")
        return [live[path] for path in paths]

    def _source(
        self, snapshot: Snapshot, number: int, file: LiveFile, reading: Reading, fixed: Sequence[pa.Field]
    ) -> Source:
        if reading.row_id is not None and (file.first_row_id is None or file.row_version is None):
            raise TableError(
                f"The table tracks rows, but the log has no row ids for {quoted(file.path, limit=300)}. Write to the "
                "table with Delta once, so that it gives them, and run zonal again."
            )
        tracked = reading.row_id is not None
        return Source(
            number=number,
            path=file.path,
            size=file.size,
            rows=int(snapshot.files.rows[number]),
            partition=int(snapshot.files.partition[number]),
            vector=deletion_vector(file, self._storage.root, self._storage.resolve),
            constants=constants(file, fixed),
            first_row_id=file.first_row_id if tracked else None,
            row_version=file.row_version if tracked else None,
        )

    def open_file(self, path: str) -> pa.NativeFile:
        """Open one of the snapshot's files for random access; the caller closes it."""
        try:
            filesystem, inner = self._storage.locate(path)
            return open_regular(filesystem, inner)
        except STORAGE_ERRORS as error:
            what = self._storage.told(error, path)
            raise TableError(f"Can't open {quoted(path, limit=300)} of {quoted(self.name)}: {what}") from None


def _uncommitted(storage: Storage) -> tuple[str, ...]:
    """Say why versions can't be added to a table where it lies; nothing is asked of the storage."""
    if local_path(storage.root) is not None:
        return ()
    problem = unavailable(storage.store_at(storage.root).kind)
    return (problem,) if problem else ()


def _compression(configuration: Mapping[str, str]) -> str | None:
    """Return the codec in the table's properties; None where they have none, so that the files' codec is used."""
    name = configuration.get(_CODEC)
    if name is None:
        return None
    if (codec := known_codec(name)) is not None:
        return codec
    raise TableError(f"The table property {_CODEC} is {quoted(name)}. {suggestion(name, CODECS)}")


def _bloom_columns(columns: Columns, layout: Layout) -> tuple[str, ...]:
    paths = columns.paths(columns.in_files)
    if missing := [name for name in layout.bloom_columns if name not in paths]:
        raise ColumnError(
            f"Column {quoted(missing[0])} can't have a bloom filter: no data file has it. "
            f"{suggestion(missing[0], paths)}"
        )
    return tuple(paths[name] for name in layout.bloom_columns)
