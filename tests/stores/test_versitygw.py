"""`cluster` in an S3 gateway on a POSIX file system: another implementation of conditions than moto's."""

import pytest

from stores.programs import served, versitygw
from support.commit_race import check_race
from support.s3_server import KEYS, S3Bucket, forget_environment
from support.store_contract import DeltaBeside, Made, StoreContract

pytestmark = pytest.mark.stores


class Gateway(S3Bucket):
    """A bucket at the gateway."""

    def __init__(self, url):
        self.url = url
        self.client.create_bucket(Bucket="box")


@pytest.fixture
def server(tmp_path, monkeypatch):
    forget_environment(monkeypatch)
    (tmp_path / "disk").mkdir()
    command = [versitygw(), "--quiet", "--port", "127.0.0.1:{}", "posix", tmp_path / "disk"]
    keys = {"ROOT_ACCESS_KEY": KEYS["aws_access_key_id"], "ROOT_SECRET_KEY": KEYS["aws_secret_access_key"]}
    with served(command, tmp_path, **keys) as url:
        yield Gateway(url)


@pytest.fixture(params=["delta", "iceberg v2"])
def made(request, server, tmp_path):
    return Made(request.param, server, tmp_path)


class TestContract(StoreContract):
    """What holds in every store."""


class TestBeside(DeltaBeside):
    """What holds beside delta-rs."""


def test_of_many_processes_one_gets_each_version(server):
    check_race(server, processes=8, commits=50)
