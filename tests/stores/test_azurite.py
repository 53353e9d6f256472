"""`cluster` in Azure's blob storage, by Microsoft's emulator: through pyarrow's client, obstore's and delta-rs's."""

import obstore
import pyarrow.fs
import pytest
from obstore.store import AzureStore

from stores.listing_proxy import ListingProxy
from stores.programs import azurite, served
from support.commit_race import check_race
from support.store_contract import DeltaBeside, Made, StoreContract
from zonal.storage.arguments import AZURITE

pytestmark = pytest.mark.stores


class Emulated:
    """A container, `box`, of the emulator's only account."""

    def __init__(self, url, theirs, place):
        self.url, self.place, self._theirs = url, place, theirs
        self._account = {"azure_storage_account_name": AZURITE["account_name"]}
        self._keyed = self._account | {"azure_storage_account_key": AZURITE["account_key"]}
        config = {**AZURITE, "endpoint": f"{url}/{AZURITE['account_name']}"}
        self._store = AzureStore("box", config=config, client_options={"allow_http": True})

    @property
    def options(self):
        return {"azure_storage_use_emulator": "true", "azure_storage_endpoint": f"{self.url}/{AZURITE['account_name']}"}

    @property
    def theirs(self):
        """The same for delta-rs."""
        endpoint = f"{self._theirs}/{AZURITE['account_name']}"
        return self._keyed | {"azure_storage_endpoint": endpoint, "allow_http": "true"}

    @property
    def properties(self):
        """The same for PyIceberg."""
        host, scheme = self.url.partition("://")[2], "http"
        return {
            "adls.account-name": AZURITE["account_name"], "adls.account-key": AZURITE["account_key"],
            "adls.blob-storage-authority": host, "adls.dfs-storage-authority": host,
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",  # its own choice needs adlfs
            "adls.blob-storage-scheme": scheme, "adls.dfs-storage-scheme": scheme,
        }  # fmt: skip

    def create(self):
        """Make the container, by a client that can."""
        host, account = self.url.partition("://")[2], AZURITE
        hosts = {"blob_storage_authority": host, "blob_storage_scheme": "http"}
        pyarrow.fs.AzureFileSystem(**account, **hosts).create_dir("box")

    def objects(self):
        return [found["path"] for page in obstore.list(self._store) for found in page]

    def read(self, name):
        return bytes(obstore.get(self._store, name).bytes())

    def uploads(self):
        """Blocks that aren't committed belong to no blob that a listing shows, and go by themselves."""
        return []


@pytest.fixture
def server(tmp_path):
    command = [azurite(), "--blobHost", "127.0.0.1", "--blobPort", "{}", "--location", tmp_path, "--silent",
               "--disableTelemetry", "--skipApiVersionCheck"]  # fmt: skip
    with served(command, tmp_path) as url:
        proxy = ListingProxy(url)
        found = Emulated(url, proxy.url, "abfss://box/")
        found.create()
        yield found
        proxy.stop()


@pytest.fixture(params=["az delta", "abfss delta", "abfss iceberg v2"])
def made(request, server, tmp_path):
    scheme, _, kind = request.param.partition(" ")
    server.place = f"{scheme}://box/"
    return Made(kind, server, tmp_path)


class TestContract(StoreContract):
    """What holds in every store."""


class TestBeside(DeltaBeside):
    """What holds beside delta-rs."""


def test_of_many_processes_one_gets_each_version(server):
    check_race(server, processes=8, commits=5)
