"""A key in the environment is in no file and no output, whoever tries to put it there."""

import base64
import json

from adjudge.provenance.redact import Redactor, secrets_of_url

KEY = "sk-test-3f9a77e1c0ffee"
OTHER = 'pass"word\\with/signs-99'


def everything(folder, *texts):
    found = [text.encode() for text in texts]
    found += [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return b"\n".join(found)


def test_no_key_in_any_file_or_output(server, program, collect, dataset, results, tmp_path):
    data = dataset(["plain", "forbidden", "echo my key", "leak it", "malformed"])
    env = {"MY_SERVER_KEY": KEY, "DATABASE_PASSWORD": OTHER}
    with_password = server.url.replace("http://", "http://user:urlpassword77@") + "?sig=0123456789abcdef0123"
    outputs = []
    for subject, address, name in (
        ("openai:echo", server.url, "a"),
        ("openai:echo", with_password, "b"),
        (f"p={program}", server.url, "c"),
    ):
        arguments = (
            *("--dataset", data, "--subject", subject, "--base-url", address, "--key-env", "MY_SERVER_KEY"),
            *("--output", f"{name}.jsonl", "--cache", f"store-{name}"),
        )
        for more in ((), ("--resume", "--retry-errors")):
            outputs += collect(*arguments, *more, env=env)
    forbidden = results("a.jsonl")["s00001", "echo", False, 0]
    echoed = [results(f"{name}.jsonl")["s00002", "echo", False, 0]["response"] for name in "ab"]
    leaked = results("c.jsonl")["s00003", "p", False, 0]
    assert "Bearer [redacted]" in forbidden["error"]
    assert echoed == ["you said Bearer [redacted]", "you said Basic [redacted]"], "sent, and not written"
    assert "'MY_SERVER_KEY': '[redacted]'" in leaked["response"]
    found = everything(tmp_path, *outputs)
    assert b"MY_SERVER_KEY" in found, "the search would find what is there"
    basic = base64.b64encode(b"user:urlpassword77").decode()
    for secret in (KEY, "urlpassword77", basic, "0123456789abcdef0123", OTHER, json.dumps(OTHER)[1:-1]):
        assert secret.encode() not in found


def test_the_key_of_the_environment_is_sent(server, collect, dataset, results):
    collect(
        *("--dataset", dataset(["echo"]), "--subject", "openai:m", "--base-url", server.url),
        *("--output", "results.jsonl"),
        env={"OPENAI_API_KEY": "short"},
    )
    (record,) = results().values()
    assert record["response"] == "you said Bearer short"


def test_a_secret_is_found_in_text_and_in_json():
    redactor = Redactor([OTHER, KEY, KEY + "-longer"])
    assert redactor.text(f"a {KEY}-longer b") == "a [redacted] b"
    line = json.dumps({"x": OTHER}).encode()
    assert redactor.line(line) == b'{"x": "[redacted]"}'
    assert redactor.line(b"nothing") == b"nothing"


def test_short_values_of_an_address_are_no_secrets():
    assert secrets_of_url("http://u:longpassword@h/v1?api-version=2024-05-01&k=abcdefabcdefabcdef") == [
        "longpassword",
        base64.b64encode(b"u:longpassword").decode(),
        "abcdefabcdefabcdef",
    ]
    assert secrets_of_url(None) == secrets_of_url("http://h/v1") == []
