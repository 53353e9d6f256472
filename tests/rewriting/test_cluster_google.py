"""`cluster` in Google Cloud Storage: what holds in every store, through pyarrow's JSON API and obstore's XML API."""

import pytest

from support.commit_race import check_race
from support.gcs_server import GcsServer
from support.store_contract import DeltaBeside, Made, StoreContract
from zonal.storage import Storage

pytest.importorskip("obstore", reason="obstore needs Python 3.11")


@pytest.fixture
def server(monkeypatch):
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    found = GcsServer()
    yield found
    found.stop()


@pytest.fixture
def made(server):
    return Made("delta", server, None)


class TestContract(StoreContract):
    """What holds in every store, on a stub of both APIs."""


class TestBeside(DeltaBeside):
    """What holds beside delta-rs."""


def test_of_many_processes_one_gets_each_version(server):
    check_race(server, processes=4, commits=3)


def test_objects_are_removed_although_some_are_gone(server):
    """Google's server answers a request to delete what isn't there with an error, which S3's doesn't."""
    objects = Storage("gs://box/t", server.options).objects_at("gs://box/t")
    names = [f"{number:02d}" for number in range(24)]
    for name in names[::2]:
        objects.create(name, b"x")
    objects.remove(names)
    assert server.objects() == []
