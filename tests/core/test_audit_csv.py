from __future__ import annotations

import csv
import io

import pytest

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.audit_csv import CSV_COLUMNS, csv_header, csv_line, record_to_csv
from jupyter_agentbox.core.calls import Origin
from jupyter_agentbox.core.isolation import Isolation
from tests.samples import a_call, a_request, an_ended_request


def cells(request: ApprovalRequest) -> dict[str, str]:
    [row] = csv.DictReader(io.StringIO(csv_header() + record_to_csv(request)))
    return row


def test_a_line_of_csv_has_all_columns() -> None:
    row = cells(an_ended_request())
    assert tuple(row) == CSV_COLUMNS
    assert (row["call"], row["decided_by"], row["outcome"], row["seconds"]) == (
        "delete_order(order_id=8)",
        "ada",
        "failed",
        "90.0",
    )
    assert (row["arguments"], row["edited_arguments"]) == ('{"order_id": 7}', '{"order_id": 8}')
    assert cells(a_request())["reviewer"] == ""


@pytest.mark.parametrize(("is_own", "cell"), [(True, "true"), (False, "false")])
def test_a_line_of_csv_says_whether_the_user_chose_the_settings_of_the_sandbox(is_own: bool, cell: str) -> None:
    origin = Origin(kernel_id="k1", isolation=Isolation.BUBBLEWRAP, has_own_settings=is_own)
    row = cells(a_request(call=a_call(origin=origin)))
    assert (row["isolation"], row["has_own_settings"]) == ("bubblewrap", cell)


def test_more_columns_stand_at_the_end_and_none_is_there_twice() -> None:
    more = {"asked_by": "ada", "votes": [1]}
    header, line = csv.reader([csv_header(tuple(more)), record_to_csv(a_request(), more)])
    assert header == [*(name for name in CSV_COLUMNS if name != "asked_by"), "asked_by", "votes"]
    assert (len(line), line[-2:]) == (len(header), ["ada", "[1]"])


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "＝", " =", "\n="])
def test_no_cell_is_a_formula(start: str) -> None:
    evil = f'{start}HYPERLINK("http://x","y")'
    for value in cells(a_request(call=a_call(server=evil, tool=evil, arguments={evil: evil}))).values():
        assert not value.lstrip(" ").startswith(("=", "+", "-", "@", "＝"))


def test_no_cell_is_a_formula_where_a_semicolon_begins_a_cell() -> None:
    evil = "select 1; =cmd|' /C calc'!A0;\"@SUM(1)"
    line = record_to_csv(a_request(call=a_call(server=evil, tool=evil, arguments={evil: evil})))
    assert not any(cell.strip(" '\"").startswith(("=", "@")) and cell[0] != "'" for cell in line.split(";")[1:])
    assert "select 1;' =cmd" in line


def test_no_cell_is_longer_than_that_of_a_spreadsheet() -> None:
    [whole, cut] = next(csv.reader([csv_line(["x" * 32_767, "=" + "x" * 32_767])]))
    assert whole == "x" * 32_767
    assert cut == "'=" + "x" * 32_764 + "…"


def test_nothing_in_a_cell_steers_a_terminal() -> None:
    line = record_to_csv(a_request(call=a_call(tool="\x1b]0;owned\x07\x9b2J\u202e\r\nx")))
    assert line.endswith("\r\n")
    assert line[:-2].isprintable()
