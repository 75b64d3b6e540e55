"""Credentials in forty shapes are found wherever they stand, and ordinary words are left alone."""

import shlex
import time

import pytest

from adjudge.provenance.redact import MARK, redacted, redacted_value, secrets_of_environment

S = "Zq7rT2wXy9LmNb4K"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJlLW9mLXRva2Vu"
SHAPES = [
    f"https://user:{S}@host.example/path",
    f"postgres://app:{S}@db:5432/x",
    f"redis://:{S}@cache:6379/0",
    f"s3+https://bob:{S}@store/x.jsonl",
    f"https://{S}@git.example/repo.git",
    f"http://u:p%40{S}@host/",
    f"https://h/x?X-Amz-Signature={S}&y=1",
    f"https://h/x?X-Amz-Credential={S}",
    f"https://h/x?X-Amz-Security-Token={S}",
    f"https://h/x?X-Goog-Signature={S}",
    f"https://h/x?sv=2024&sig={S}",
    f"https://h/x?AWSAccessKeyId={S}&Expires=1",
    f"https://h/v1?api_key={S}",
    f"https://h/v1?apikey={S}",
    f"https://h/v1?key={S}",
    f"https://h/v1?access_token={S}",
    f"https://h/v1?a=1&token={S}#x",
    f"cmd: run --api-key {S} --fast",
    f"cmd: run --api-key={S}",
    f"cmd: run --token {S}",
    f"cmd: run --password '{S}'",
    f"cmd: run --auth-token={S} -v",
    f"cmd: run -password {S}",
    f"cmd: run --client-secret {S}",
    f"curl -H 'Authorization: Bearer {S}' h",
    f"curl -H 'Authorization: Basic {S}' h",
    f"Authorization: {S}",
    f"Proxy-Authorization: Basic {S}",
    f"X-Api-Key: {S}",
    f"api-key: {S}",
    f"Cookie: session={S}",
    f"password={S}",
    f"PGPASSWORD={S} psql",
    f"OPENAI_API_KEY={S} run",
    f'{{"api_key": "{S}"}}',
    f"{{'client_secret': '{S}'}}",
    f"AccountName=x;AccountKey={S};EndpointSuffix=y",
    f"SharedAccessSignature=sr&sig={S}",
    f"sk-{S}",
    f"sk-ant-api03-{S}",
    f"sk-proj-{S}",
    f"ghp_{S}{S}",
    f"github_pat_{S}_{S}",
    f"glpat-{S}",
    f"hf_{S}{S}",
    f"xoxb-{S}",
    "AKIAIOSFODNN7EXAMPLE",
    f"AIzaSy{S}{S}",
    f"ya29.{S}",
    f"npm_{S}{S}",
    f"bearer {S}",
    JWT,
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{S}\n-----END OPENSSH PRIVATE KEY-----",
]


def test_there_are_forty_shapes():
    assert len(SHAPES) >= 40


@pytest.mark.parametrize("text", SHAPES, ids=range(len(SHAPES)))
def test_a_credential_is_found_in_text_words_and_settings(text):
    secret = S if S in text else text
    words = shlex.split(text) if text.startswith("cmd: ") else [text]
    for made in (redacted(text), " ".join(redacted_value({"a": words})["a"])):
        assert secret not in made
        assert MARK in made


@pytest.mark.parametrize(
    "text",
    [
        "adjudge flight --task S1 --outputs outputs.jsonl --reference reference.jsonl --seed 7",
        "--column id=question_id --column token=id --json-path $.details",
        "s3://bucket/folder/outputs.jsonl",
        "https://host.example/results?page=2&limit=100",
        "max_tokens=4096 completion_tokens: 12",
        "the answer passes; 'pass' is true, tokens 17, key 3",
        "eligibility_rate.low >= 0.9",
        "--key-env OPENAI_API_KEY --api-key $OPENAI_API_KEY",
        "field 'Turn Rate (deg/sec)' of F01-0001",
        "2026-01-01T00:00:00+00:00",
        "outputs.jsonl:17: label 'Fake ' is not one of real, fake",
    ],
)
def test_ordinary_words_stay(text):
    assert redacted(text) == text
    assert redacted_value(text.split(" ")) == text.split(" ")


@pytest.mark.parametrize(
    "name",
    ["MY_APIKEY", "GITHUB_PAT", "SMTP_PASS", "PROXY_AUTH", "X_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PWD", "PASSWORD"],
)
def test_values_of_the_environment_by_their_names(monkeypatch, name):
    monkeypatch.setenv(name, "an ordinary sentence")
    assert "an ordinary sentence" in secrets_of_environment()
    assert redacted("it said: an ordinary sentence!") == f"it said: {MARK}!"


def test_an_address_in_the_environment_gives_its_password_alone(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", f"postgres://app:{S}@db.example:5432/x")
    monkeypatch.setenv("WORK_PWD_DIR", "/somewhere/else")
    assert redacted(f"db.example {S} /somewhere/else") == f"db.example {MARK} /somewhere/else"


def test_a_flag_and_its_value_as_two_words():
    words = ["adjudge", "collect", "--api-key", S, "--seed", "7"]
    assert redacted_value(words) == ["adjudge", "collect", "--api-key", MARK, "--seed", "7"]


@pytest.mark.parametrize("unit", ["x", ".", "-eyJ", "a://", "--token ", "password=", "authorization ", "eyJaaaaaaaa."])
def test_a_long_text_is_gone_through_once(unit):
    def seconds(length):
        text = unit * (length // len(unit))
        start = time.process_time()
        redacted(text)
        return time.process_time() - start

    assert seconds(400_000) < 4  # 0.1 s; minutes where every place is a beginning


def test_a_token_after_a_dash_is_found():
    assert redacted(f"session-{JWT}!") == f"session-{MARK}!"


def test_a_text_of_nothing_but_credentials_is_redacted_whole():
    assert redacted(" ".join(f"password={place:06d}x" for place in range(2000))) == MARK


def test_what_is_said_of_a_signature_file_is_no_signature():
    assert redacted("run/manifest.json.sig: cannot be written: Read-only file system").endswith(
        "sig: cannot be written: Read-only file system"
    )
    assert "c2VjcmV0c2VjcmV0" not in redacted("https://store/a?sig=c2VjcmV0c2VjcmV0") + redacted(
        "sig: c2VjcmV0c2VjcmV0"
    )
