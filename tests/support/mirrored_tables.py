"""Delta tables that are clustered in a bucket, and made, changed and looked at in a local folder that mirrors it.

So a test of `cluster` that writes logs by hand or opens files runs in an object store as it does on a disk.
"""

from contextlib import suppress

from support.cluster_options import grouped
from support.cluster_tables import Delta
from support.delta_vectors import Vectored
from support.local_runner import run_here
from support.s3_server import S3Server
from zonal.verbs.cluster import cluster


class Mirrored(Delta):
    """A table in a folder; while `cluster` runs it is in a bucket, and what others do to the folder gets there, too."""

    bucket = None

    def cluster(self, runner=run_here, **asked):
        if self.bucket is not None:
            return self._cluster(runner, asked)  # a run beside another
        server = S3Server()
        bucket = self.bucket = _Bucket(server, self.root)
        try:
            bucket.bring_up()
            return self._cluster(runner, asked)
        finally:
            self.bucket = None
            bucket.bring_down()
            server.stop()

    def _cluster(self, runner, asked):
        location, options = f"delta:{S3Server.place}{self.bucket.prefix}".rstrip("/"), self.bucket.server.options
        return cluster(location, spark=self._mirrored(runner), storage_options=options, **grouped(**asked))

    def _mirrored(self, act):
        """Let something that is done to the folder be done to the bucket."""

        def mirrored(*given):
            if self.bucket is not None:
                self.bucket.bring_down()
            try:
                return act(*given)
            finally:
                if self.bucket is not None:
                    self.bucket.bring_up()

        return mirrored


class MirroredVectored(Mirrored, Vectored):
    """The same, of a table whose log is written by hand."""

    def commit(self, *actions):
        self._mirrored(super().commit)(*actions)

    def stored_deletes(self):
        return self._mirrored(super().stored_deletes)()


class _Bucket:
    """A bucket and a folder with the same files."""

    prefix = "t/"

    def __init__(self, server, folder):
        self.server, self._folder = server, folder
        self._here, self._there = {}, {}
        """What was the same when both were compared last: times of files, and tags of objects."""

    def bring_up(self):
        """Let objects be as files are that changed, and remove those of files that are gone."""
        here = self._files()
        for path in here.keys() | self._here.keys():
            if path not in here:
                self.server.client.delete_object(Bucket="box", Key=f"{self.prefix}{path}")
                self._there.pop(path, None)
            elif here[path] != self._here.get(path):
                body = (self._folder / path).read_bytes()
                put = self.server.client.put_object(Bucket="box", Key=f"{self.prefix}{path}", Body=body)
                self._there[path] = put["ETag"]
        self._here = here

    def bring_down(self):
        """Let files be as objects are."""
        there = self._objects()
        for path in there.keys() | self._there.keys():
            target = self._folder / path
            if path not in there:
                target.unlink(missing_ok=True)
                self._here.pop(path, None)
                with suppress(OSError):
                    target.parent.rmdir()
            elif there[path] != self._there.get(path):
                target.parent.mkdir(parents=True, exist_ok=True)
                key = f"{self.prefix}{path}"
                target.write_bytes(self.server.client.get_object(Bucket="box", Key=key)["Body"].read())
                self._here[path] = target.stat().st_mtime_ns
        self._there = there

    def _files(self):
        files = (path for path in self._folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self._folder)): path.stat().st_mtime_ns for path in files}

    def _objects(self):
        pages = self.server.client.get_paginator("list_objects_v2").paginate(Bucket="box", Prefix=self.prefix)
        found = (each for page in pages for each in page.get("Contents", []))
        return {each["Key"].removeprefix(self.prefix): each["ETag"] for each in found}
