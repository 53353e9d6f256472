"""The keys of results in JSON, which other programs read: groups of fields are written flat."""

import json

import pytest

from support.result_values import audit, clustering, health, hostile_advice, plan
from zonal.report.machine.json_form import to_json

KEYS = {
    "advice": (
        hostile_advice,
        "assumptions best blooms bytes candidates files filtered format held_out hidden joins layout now "
        "partition_only partitioning per_day prices queries reason rows sample_rows seconds seed summary table "
        "target_file_bytes verdict version warnings",
    ),
    "audit": (
        audit,
        "alerts asked audited before byte_ratio byte_share bytes columns commits culprits excess_share file_share "
        "files format fresh hidden hindered in_others layout location notes operation outside partition_byte_share "
        "partition_file_share partitioning queries ratio row_group_share rows saving seconds seed selectivity summary "
        "table tolerated version version_time worst_files worst_partitions",
    ),
    "clustering": (
        clustering,
        "added_bytes added_files carried_deletes conflicts depths file_size file_size_reason files_after files_before "
        "format layout layout_recorded location note predicted predicted_bytes predicted_files properties "
        "removed_bytes removed_files rows run seconds table versions",
    ),
    "health": (
        health,
        "blockers bytes columns columns_left_out condition delete_files deleted_rows files files_in_layout format "
        "largest_file layout median_file name partitioning partitions problems rows smallest_file time version",
    ),
    "plan": (
        plan,
        "bytes commits cores file_size file_size_reason files format layout layout_recorded lookups merges new_bytes "
        "new_files not_taken note partitions properties queries rows seconds share_before share_predicted table",
    ),
}
QUERY = (
    "before_share byte_share bytes count excess_bytes excess_files file_share files fresh_share hindrance "
    "partition_bytes partition_files query ratio remedy row_group_share selectivity source weight"
)
COMMIT = (
    "bytes excess_share files id ids kind operation read_files_share read_share replaced sentence since time widths "
    "writer"
)


def keys(document):
    return " ".join(sorted(document))


@pytest.mark.parametrize("kind", KEYS)
def test_a_result_is_one_flat_object(kind):
    make, expected = KEYS[kind]
    assert keys(json.loads(to_json(make()))) == expected


def test_a_query_and_a_commit_of_an_audit_are_flat_too():
    document = json.loads(to_json(audit()))
    assert keys(document["asked"][0]) == QUERY
    assert keys(document["commits"][0]) == COMMIT
    assert (document["table"], document["ratio"]) == ("plain", 0.45), "of the table, not of a query"
