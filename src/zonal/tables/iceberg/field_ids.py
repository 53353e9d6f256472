"""Field ids of manifest lists and manifests, from the tables of "Snapshots", "Manifests" and "Manifest Lists"."""

from collections.abc import Mapping
from typing import Any

Fields = Mapping[int, Any]
"""A record of a manifest or a manifest list, by field id."""

# Lines of a manifest list.
MANIFEST_PATH, SPEC_ID, MANIFEST_CONTENT, MANIFEST_SEQUENCE, ADDED_BY, MANIFEST_KEY = 500, 502, 517, 515, 503, 519
ADDED_FILES, EXISTING_FILES, DELETED_FILES, ADDED_ROWS, EXISTING_ROWS, DELETED_ROWS = 504, 505, 506, 512, 513, 514
MANIFEST_FIRST_ROW_ID = 520
DELETES = 1
"""Content of a manifest of delete files."""

# Entries of a manifest.
STATUS, SNAPSHOT_ID, DATA_FILE, SEQUENCE_NUMBER, FILE_SEQUENCE = 0, 1, 2, 3, 4
DELETED_ENTRY = 2

# Files of an entry.
CONTENT, PATH, FORMAT, PARTITION, RECORDS, SIZE = 134, 100, 101, 102, 103, 104
NULL_COUNTS, NAN_COUNTS, LOWER_BOUNDS, UPPER_BOUNDS, KEY_METADATA, REFERENCED = 110, 137, 125, 128, 131, 143
CONTENT_OFFSET, CONTENT_SIZE, EQUALITY_IDS, SORT_ORDER_ID, FIRST_ROW_ID = 144, 145, 135, 140, 142
DATA, POSITION_DELETES = 0, 1
DELETE_PATH, DELETE_POSITION = 2147483546, 2147483545
"""The columns `file_path` and `pos` of a position delete file."""
