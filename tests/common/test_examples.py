import pytest

from adjudge.errors import OutputError
from adjudge.protocols.common.examples import write_examples


def test_rows_are_lines_and_a_file_is_replaced_by_force_alone(tmp_path):
    files = {"a.jsonl": [{"n": 1}, {"n": 2}], "b.jsonl": []}
    paths = write_examples(tmp_path / "new", files, force=False)
    assert [path.read_text() for path in paths] == ['{"n":1}\n{"n":2}\n', ""]
    with pytest.raises(OutputError, match=r"a\.jsonl exists already; --force replaces it"):
        write_examples(tmp_path / "new", files, force=False)
    assert write_examples(tmp_path / "new", {"a.jsonl": [3]}, force=True)[0].read_text() == "3\n"


def test_a_folder_that_cannot_be_made_is_an_output_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write to"):
        write_examples(tmp_path / "file", {"a.jsonl": []}, force=True)
