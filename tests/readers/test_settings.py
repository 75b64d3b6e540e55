"""Settings of the user as YAML."""

import pytest

from adjudge.errors import ConfigError
from adjudge.readers.settings import yaml_of


@pytest.mark.parametrize(
    "text, words",
    [
        ("a: 1\nb: 2\na: 3", r"s.yaml:3: the key 'a' stands already on line 1"),
        ("rows:\n  - final: VALID\n    final: REJECT", r"s.yaml:3: the key 'final' stands already on line 2"),
        ("{x: {y: 1, y: 1}}", r"s.yaml:1: the key 'y' stands already on line 1"),
    ],
)
def test_a_key_that_stands_twice_in_a_table_is_refused(text, words):
    with pytest.raises(ConfigError, match=words):
        yaml_of(text, "s.yaml")


def test_the_same_key_in_several_tables_and_aliases_are_fine():
    assert yaml_of("a: &one {x: 1}\nb: *one\nc: {x: 2, '1': 3, 1: 4}", "s.yaml") == {
        "a": {"x": 1},
        "b": {"x": 1},
        "c": {"x": 2, "1": 3, 1: 4},
    }
    assert yaml_of("", "s.yaml") is None
