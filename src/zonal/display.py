"""What results show of themselves, and how in a notebook."""

from dataclasses import dataclass
from importlib import import_module

from zonal.arguments import check_arguments


@dataclass(frozen=True)
class Display:
    """What a result shows.

    Arguments:
        picture: draw the files, for a page or a notebook; by default, of tables with up to 500 files.
        hide_literals: show no values that queries compare with.
    """

    picture: bool | None = None
    hide_literals: bool = False

    def __post_init__(self) -> None:
        check_arguments(type(self), vars(self))


class Shown:
    """A result that Jupyter and its like draw as tables, and as rectangles where it has a picture.

    The drawing belongs to `report`, a layer far above the results: it is imported when a notebook asks for it, so that
    the results themselves depend on no HTML.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return a fragment of HTML that runs no script."""
        html: str = import_module("zonal.report.notebook.results").html_of(self)
        return html
