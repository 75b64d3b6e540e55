"""Prompt templates: two messages from one file, in a sandbox, and what is not there is an error."""

import hashlib

import pytest

from adjudge.collect.templates import Template, plain_prompt, prompt_hashes, shipped_template, template_file
from adjudge.errors import ConfigError
from adjudge.protocols.flight.make_tasks import task_named, task_record


def test_blocks_are_the_messages_and_without_blocks_all_is_the_users():
    both = Template("{% block system %} S {{ use_tools }} {% endblock %}{% block user %} {{ a }} {% endblock %}", "t")
    prompt = both.render({"a": "x<y"}, use_tools=True)
    assert (prompt.system, prompt.user) == ("S True", "x<y")
    alone = Template("Ask {{ sample['odd name'] }}", "t").render({"odd name": 3}, use_tools=False)
    assert (alone.system, alone.user) == (None, "Ask 3")


@pytest.mark.parametrize(
    "source, words",
    [
        ("{{ label }}", "'label' is undefined"),
        ("{% if %}", "t:1: "),
        ("{% block system %}x{% endblock %}", "no block `user`"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ 'a' + 1 }}", "TypeError"),
    ],
)
def test_a_wrong_template_says_what_is_wrong(source, words):
    with pytest.raises(ConfigError, match=words):
        Template(source, "t").render({"id": "a"}, use_tools=False)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        template_file(tmp_path / "none.j2")


def test_the_triage_template_asks_for_three_verdicts():
    template = shipped_template("adjudge.collect", "triage")
    with_tools = template.render({"id": "a", "text": "Look."}, use_tools=True)
    without = template.render({"id": "a"}, use_tools=False)
    assert '"uncertain"' in with_tools.system
    assert with_tools.system == without.system
    assert with_tools.system_text == f"{with_tools.system}\n\n{with_tools.tools}"
    assert "tools" in with_tools.tools
    assert (without.tools, without.system_text) == (None, without.system)
    assert with_tools.user.endswith("Look.")
    assert without.user == "Is this real or fake?"


@pytest.mark.parametrize("task, words", [("S1", "One state is"), ("M1", "Three"), ("M3", "exactly 3 numbers")])
def test_the_flight_template_takes_every_task(task, words):
    from adjudge.protocols.flight.fields import FIELDS

    chosen = task_named(task)
    record = task_record(chosen, "a", "f", [dict.fromkeys(FIELDS, 1.0)] * chosen.shown, [])
    prompt = shipped_template("adjudge.protocols.flight", "flight").render(record, use_tools=False)
    assert words in prompt.system
    assert prompt.user == record["question"]


def test_what_the_mode_adds_is_hashed_apart():
    template = Template("{% block tools %}Use them.{% endblock %}{% block user %}u{% endblock %}", "t")
    with_tools, without = (template.render({}, use_tools=mode) for mode in (True, False))
    assert (with_tools.system_text, without.system_text) == ("Use them.", None)
    hashes = prompt_hashes(with_tools)
    assert hashes.pop("tools") == hashlib.sha256(b"Use them.").hexdigest()
    assert hashes == prompt_hashes(without)


def test_the_question_of_a_sample_is_its_prompt():
    assert plain_prompt({"text": "t", "question": "q"}).user == "q"
    assert plain_prompt({"id": "a", "text": 3}) is None
    assert prompt_hashes(None) == {"system": None, "user": None}
