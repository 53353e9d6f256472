"""Draw `docs/files.svg`, the picture of the README: `python docs/picture.py`."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal import cluster_batch
from zonal.demo.telemetry import telemetry

Ranks = npt.NDArray[np.float64]

SIDE, GAP, TOP, FILES = 330, 40, 62, 64
QUERY = (0.30, 0.70, 0.29, 0.31)
STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #24292f }
  .read { fill: #d9480f; fill-opacity: .22; stroke: #d9480f }
  .skipped { fill: none; stroke: #868e96; stroke-opacity: .55 }
  .query { fill: #1864ab; stroke: #1864ab; fill-opacity: .5 }
  .frame { fill: #ffffff; stroke: #ced4da }
"""


def share_below(values: npt.NDArray[np.int64]) -> Ranks:
    return np.searchsorted(np.sort(values), values) / len(values)


def panel(left: int, title: str, x: Ranks, y: Ranks, starts: npt.NDArray[np.int64]) -> list[str]:
    """Draw each file as the box of its bounds, and colour those that the query reads."""
    boxes = [
        (a.min(), a.max(), b.min(), b.max())
        for a, b in zip(np.split(x, starts[1:]), np.split(y, starts[1:]), strict=True)
    ]
    x0, x1, y0, y1 = QUERY
    reads = [box[0] <= x1 and box[1] >= x0 and box[2] <= y1 and box[3] >= y0 for box in boxes]
    lines = [f'<rect class="frame" x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}"/>']
    for (a, b, c, d), read in sorted(zip(boxes, reads, strict=True), key=lambda drawn: drawn[1]):
        lines.append(rectangle("read" if read else "skipped", left, (a, b, c, d)))
    lines.append(rectangle("query", left, QUERY))
    lines.append(f'<text x="{left}" y="24" font-weight="600">{title}</text>')
    lines.append(f'<text x="{left}" y="46">the query reads {sum(reads)} of {len(boxes)} files</text>')
    lines.append(f'<text x="{left + SIDE / 2}" y="{TOP + SIDE + 22}" text-anchor="middle">ts</text>')
    return lines


def rectangle(name: str, left: int, box: tuple[float, float, float, float]) -> str:
    a, b, c, d = box
    x, y, width, height = left + SIDE * a, TOP + SIDE * (1 - d), SIDE * (b - a), SIDE * (d - c)
    return f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def main() -> None:
    table = telemetry(200_000)
    table = table.append_column("x", pa.array(share_below(table["ts"].cast(pa.int64()).to_numpy())))
    table = table.append_column("y", pa.array(share_below(table["payload_id"].to_numpy())))
    result = cluster_batch(table, ["ts", "payload_id"], file_rows=200_000 // FILES, detail=True)
    arrival = np.arange(0, 200_000, 200_000 // FILES)
    width, height = 2 * SIDE + GAP + 60, TOP + SIDE + 36
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">',
        "<title>The bounds of 64 files over two columns, and one query</title>",
        f'<style>{STYLE}</style><rect width="{width}" height="{height}" fill="#f8f9fa"/>',
        f'<text transform="translate(22 {TOP + SIDE / 2}) rotate(-90)" text-anchor="middle">payload_id</text>',
        *panel(40, "as it arrives", table["x"].to_numpy(), table["y"].to_numpy(), arrival),
        *panel(40 + SIDE + GAP, "zorder(ts, payload_id)", *(result.data[c].to_numpy() for c in "xy"), result.files),
        "</svg>",
    ]
    Path(__file__).with_name("files.svg").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
