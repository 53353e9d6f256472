"""What one run of a rewrite may cost, as a value."""

from dataclasses import dataclass

from zonal.values.sizes import size_of


@dataclass(frozen=True)
class Budget:
    """What one run may cost.

    Arguments:
        max_bytes: rewrite at most this much in one run, in bytes or as in `10GB`; by default, all that is due.
        commit_every: commit after about this much; by default, once, at the end.

    Example:
        >>> plan = zonal.cluster("orders", by="id", budget=zonal.Budget(max_bytes="1MB"), dry_run=True)
        >>> plan.commits
        1
    """

    max_bytes: int | str | None = None
    commit_every: int | str | None = None

    @property
    def most_bytes(self) -> int | None:
        """Return the most bytes that one run rewrites."""
        return size_of(self.max_bytes, "max_bytes")

    @property
    def commit_bytes(self) -> int | None:
        """Return the bytes after which a commit is due."""
        return size_of(self.commit_every, "commit_every")
