"""How many requests a rewrite makes in an object store: they cost money and time, and none lists the table's folder."""

from collections import Counter

import pytest

from support.cluster_tables import assert_same_rows, parts_of, telemetry
from support.store_tables import StoredDelta, StoredIceberg

pytest.importorskip("obstore", reason="obstore needs Python 3.11")

FILES = 16
ROWS = telemetry(64_000)
TRIALS = 4
"""Row groups that are read once more to measure rows."""


def requests_of(server, paths):
    """Count the requests for each of these objects."""
    counts = Counter(request.partition(" ")[2].partition("?")[0].removeprefix("/box/") for request in server.heard)
    return [counts[path] for path in paths]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_files_are_read_and_written_with_few_requests(kind, server, tmp_path):
    home = StoredDelta(server) if kind == "delta" else StoredIceberg(server, tmp_path)
    table = home.make(parts_of(ROWS, FILES))
    before = table.ever()
    server.heard.clear()
    table.cluster(by=["x", "y"], target_file_size=200_000)
    heard = list(server.heard)
    written = table.ever() - before
    server.heard[:] = heard
    assert len(before) == FILES
    assert sum(requests_of(server, before)) <= 3 * FILES + TRIALS
    assert len(written) > 1
    assert max(requests_of(server, written)) <= 3
    known = ("zonal-", "_delta_log", ".metadata.json")
    assert not [request for request in heard if "list-type" in request and not any(map(request.__contains__, known))]
    assert_same_rows(table.rows(), ROWS)


def test_commits_of_a_delta_log_are_read_once(server):
    table = StoredDelta(server).make(parts_of(ROWS, FILES))
    log = [f"t/_delta_log/{version:020d}.json" for version in range(FILES)]
    server.heard.clear()
    table.cluster(by=["x", "y"], target_file_size=200_000, commit_every=300_000)
    assert max(requests_of(server, log[:-1])) == 1


def test_a_commit_that_was_replaced_since_it_was_read_is_read_again(server):
    """By a writer that writes without a condition: what was read of the log is void."""
    table = StoredDelta(server).make(parts_of(ROWS, 3))
    name = "t/_delta_log/00000000000000000001.json"
    text = server.client.get_object(Bucket="box", Key=name)["Body"].read()

    def replace(path):
        if "/zonal-" in path and server.on_put is not None:
            server.on_put = None
            server.client.put_object(Bucket="box", Key=name, Body=text + b"\n")
            server.heard.clear()

    server.on_put = replace
    table.cluster(by=["x", "y"])
    assert requests_of(server, [name]) != [0]
    assert_same_rows(table.rows(), ROWS)
