"""Files in S3 are read with few requests, whose answers are those of a whole file, whatever is asked for."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.s3_server import CUT, Fault
from zonal.storage import Storage, open_regular
from zonal.storage.ranged import TAIL, RangedFile
from zonal.worker.read.data_file import KnownFile, open_parquet

pytest.importorskip("obstore", reason="obstore needs Python 3.11")


def put(server, body, name="a"):
    server.client.put_object(Bucket="box", Key=name, Body=body)
    filesystem, path = Storage("s3://box", server.options).locate(f"s3://box/{name}")
    server.heard.clear()
    return filesystem, path


def asked(server, name="a"):
    return [request.partition(" ")[0] for request in server.heard if request.partition("?")[0].endswith(f"/box/{name}")]


BYTES = np.random.default_rng(0).bytes(3 * TAIL)


@pytest.mark.parametrize("length", [0, 1, TAIL - 1, TAIL, TAIL + 1, 3 * TAIL])
def test_every_range_is_that_of_the_whole_file(length, server):
    body = BYTES[:length]
    with open_regular(*put(server, body)) as file, io.BytesIO(body) as whole:
        assert isinstance(file, RangedFile)
        assert file.size() == length
        for start, count in [(0, 10), (length // 2, TAIL), (max(0, length - 5), 99), (length, 1), (0, length)]:
            whole.seek(start)
            assert file.read_at(count, start) == whole.read(count)
        file.seek(0)
        assert file.read() == body
    if 0 < length <= TAIL:
        assert asked(server) == ["GET"]


def test_a_known_size_and_a_long_tail_save_requests(server):
    filesystem, path = put(server, BYTES)
    with open_regular(filesystem, path, size=len(BYTES)) as file:
        assert asked(server) == []
        assert file.read_at(100, 5) == BYTES[5:105]
    server.heard.clear()
    with open_regular(filesystem, path, tail=len(BYTES) + 7) as file:
        assert file.read() == BYTES
    assert asked(server) == ["GET"]


def test_near_ranges_are_one_request_and_stay_until_others_are_loaded(server):
    body = np.random.default_rng(1).bytes(4 * 1024**2)
    with open_regular(*put(server, body)) as file:
        server.heard.clear()
        file.load([(0, 100), (200_000, 300_000)])
        assert asked(server) == ["GET"]
        assert file.read_at(50, 25) == body[25:75]
        assert file.read_at(100_000, 200_000) == body[200_000:300_000]
        assert asked(server) == ["GET"]
        file.load([(1000, 2000), (3 * 1024**2, 3 * 1024**2 + 5)])
        assert asked(server) == ["GET"] * 3
        assert file.read_at(10, 0) == body[:10]
        assert asked(server) == ["GET"] * 4


def test_columns_of_a_row_group_are_read_by_one_request(server):
    rows = pa.table({name: np.random.default_rng(ord(name)).random(20_000) for name in "abcdef"})
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=10_000)
    put(server, sink.getvalue(), "p")
    storage, path = Storage("s3://box", server.options), "s3://box/p"
    with open_parquet(storage, path) as file:
        assert file.read(1, [0, 5]).equals(rows.slice(10_000).select(["a", "f"]))
        footer = KnownFile(file.footer, file.size)
    server.heard.clear()
    with open_parquet(storage, path, footer) as file:
        assert file.read(0, [1, 3]).equals(rows.slice(0, 10_000).select(["b", "d"]))
    assert asked(server, "p") == ["GET"]


def test_a_file_that_is_not_there_is_told_as_that(server):
    filesystem, _ = put(server, b"x")
    with pytest.raises(FileNotFoundError):
        open_regular(filesystem, "box/b")


def test_a_connection_that_is_cut_is_asked_again(server):
    filesystem, path = put(server, BYTES)
    server.faults = [Fault("GET", "/box/a", CUT, times=2)]
    with open_regular(filesystem, path) as file:
        assert file.read_at(10, 0) == BYTES[:10]


def test_credentials_are_in_no_message(server):
    filesystem, path = put(server, b"x")
    server.faults = [Fault("GET", "/box/a", "403 Forbidden", times=9, code="AccessDenied")]
    with pytest.raises(OSError, match="AccessDenied") as caught:
        open_regular(filesystem, path)
    assert server.options["aws_secret_access_key"] not in str(caught.value)
