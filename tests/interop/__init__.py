"""Other engines judge what zonal wrote, and zonal what they wrote."""
