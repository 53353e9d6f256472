"""Iceberg tables whose rows another writer deletes by position; the delete files are written by hand."""

import pyarrow as pa

from support.cluster_tables import Iceberg
from support.iceberg_rewriting import Writer, delete_positions


class Positioned(Iceberg):
    """A table of one file per part, known as `0.parquet` and so on."""

    def create(self, parts, fields=(), *, partitioning=(), values=None, properties=None):  # noqa: ARG002 - as `Vectored`
        """Append the parts; `values` has the partition values of each, which its rows have."""
        parts = [_with(part, each) for part, each in zip(parts, values or [{}] * len(parts), strict=True)]
        self.make(parts[:1], partitioning, properties)
        self.paths, self.deleted = {}, {}
        self.paths["0.parquet"] = self.newest_path()
        for number, part in enumerate(parts[1:], 1):
            super().append(part)
            self.paths[f"{number}.parquet"] = self.newest_path()
        return self

    def newest_path(self):
        """The file of the append that came last."""
        (path,) = {file.file_path for file in self.live()} - {*self.paths.values()}
        return path

    @property
    def data_folder(self):
        """Where other writers put their delete files."""
        return f"{self.root}/data"

    def live(self):
        return [task.file for task in self.table.scan().plan_files()]

    def delete(self, name, positions, **fields):
        """Delete these positions of a file beside those that are deleted already."""
        new = sorted(set(positions) - self.deleted.get(name, set()))
        self.deleted[name] = {*self.deleted.get(name, ()), *new}
        self.delete_all({name: new}, **fields)

    def delete_all(self, positions, **fields):
        """Commit one position delete file for files of one partition."""
        by_path = {self.paths.get(name, name): sorted(places) for name, places in positions.items()}
        file = next(file for file in self.live() if file.file_path in by_path)
        place = {"partition": file.partition, "spec_id": file.spec_id}
        delete_positions(self.catalog, self.data_folder, by_path, **place, **fields)

    def remove(self, name):
        """Delete all rows of a file with the file; rows have unique ids."""
        (file,) = [file for file in self.live() if file.file_path == self.paths[name]]
        low, high = (self._bound(bounds) for bounds in (file.lower_bounds, file.upper_bounds))
        self.table.delete(f"id >= {low} and id <= {high}")

    @staticmethod
    def _bound(bounds):
        return int.from_bytes(bounds[1], "little", signed=True)

    def drop_deletes(self):
        """Commit a snapshot without any delete file: rows that were deleted are back."""
        writer = Writer(self.catalog)
        writer.manifests = [manifest for manifest in writer.manifests if manifest.content == 0]
        writer.publish()

    def delete_files(self):
        """The live delete files with the data sequence numbers that they have."""
        table = self.table
        manifests = [m for m in table.current_snapshot().manifests(table.io) if m.content == 1]
        return [entry for m in manifests for entry in m.fetch_manifest_entry(table.io)]

    def stored_deletes(self):
        """The delete files that zonal wrote, whether the table has them or not."""
        return sorted(self.root.rglob("zonal-*/deletes-*"))


def _with(part, values):
    for name, value in values.items():
        part = part.append_column(name, pa.array([value] * part.num_rows, pa.string()))
    return part
