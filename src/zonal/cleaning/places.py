"""Where a quarantine lies: what a clean-up asks of it, which disks and object stores do in different ways."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

FOLDER = "_zonal_quarantine"
MANIFEST, UNDONE, DRAFT = "manifest.jsonl", "undone.jsonl", "draft.tmp"
"""A run's manifest; what it is called once all files are back; and a file that is there before the manifest is."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Manifest:
    """A manifest as the storage has it."""

    text: str
    time: datetime
    """When it was written, by the storage's clock."""


class QuarantinePlace(Protocol):
    """The quarantine in one table's folder. Its runs have names, and their files numbers; paths are the table's.

    What fails is an `OSError`. Interrupted anywhere, every file is in its old place, in the new one, or in both.
    """

    folder: str
    """For people."""

    def runs(self) -> Iterable[str]:
        """Return the names of all that is here."""

    def has(self, run: str) -> bool:
        """Tell whether there is a run of this name."""

    def read(self, run: str, name: str) -> Manifest | None:
        """Read a manifest; None where there is none of this name."""

    def opened(self, run: str) -> datetime:
        """Return when a run without a manifest was opened, by the storage's clock."""

    def numbers(self, run: str) -> set[int]:
        """Return the numbers of the files that are here."""

    def open(self, run: str) -> datetime:
        """Make room for a run, and return the time that the storage's clock shows."""

    def close(self, run: str) -> None:
        """Remove what `open` made, unless it is in use; where that fails, it stays."""

    def write(self, run: str, text: str) -> None:
        """Write the manifest whole, to stay even if this machine ends now."""

    def discard(self, run: str) -> None:
        """Remove a manifest whose files were not moved; where that fails, it stays."""

    def move_in(self, run: str, number: int, path: str) -> str | None:
        """Move a file here. Return None where it was, else why it stays; empty where it is gone already.

        After an `OSError` it isn't known whether it was moved.
        """

    def settle(self, run: str, paths: Collection[str]) -> None:
        """Let moves stay, and remove folders of zonal's runs that they left empty; where that fails, they stay."""

    def prepare_return(self, run: str, manifest: str) -> None:
        """Find out how files can be brought back, before the first one is."""

    def is_taken(self, run: str, number: int, path: str) -> bool:
        """Tell whether another file has the path of one that is here."""

    def move_back(self, run: str, number: int, path: str) -> bool:
        """Bring a file back, never over another one; False where it isn't here."""

    def is_there(self, path: str) -> bool:
        """Tell whether the table's folder has a file."""

    def settle_return(self, paths: Collection[str]) -> None:
        """Let files that were brought back stay."""

    def mark_undone(self, run: str) -> None:
        """Give the manifest its other name, unless the run may still be moving files."""

    def drop(self, run: str, numbers: Collection[int]) -> None:
        """Delete files for good."""

    def drop_manifests(self, run: str) -> None:
        """Delete all that a run has beside its files."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Do something to some files: in order, or many at once where each takes a while; results are in order."""
