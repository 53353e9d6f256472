"""`cluster` in Google Cloud Storage: what holds in every store, through pyarrow's JSON API and obstore's XML API."""

import pytest

from support.gcs_server import GcsServer
from support.store_contract import Made, StoreContract

pytest.importorskip("obstore", reason="obstore needs Python 3.11")


@pytest.fixture
def made(monkeypatch):
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    server = GcsServer()
    yield Made("delta", server, None)
    server.stop()


class TestContract(StoreContract):
    """What holds in every store, on a stub of both APIs."""
