"""The client is httpx, or httpx2 where only that is installed."""

import sys

import pytest

from adjudge.collect.chat import ChatSubject, http_library
from adjudge.errors import ConfigError


def test_httpx2_stands_in_for_httpx(monkeypatch):
    import httpx

    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.setitem(sys.modules, "httpx2", httpx)
    assert http_library("openai:m") is httpx
    assert ChatSubject("m", base_url="http://127.0.0.1:9/v1").model == "m"


def test_without_either_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ConfigError, match=r"needs httpx or httpx2; install one with: pip install 'adjudge\[collect\]'"):
        ChatSubject("m", base_url="http://127.0.0.1:9/v1")
