"""Settings: their sources, the values that they accept, and how `annals config` prints them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from annals.api.cli.server import url_of_socket
from annals.api.cli.setup.settings_classes import variable_names
from annals.api.settings.settings import Settings
from annals.api.settings.shown_settings import mask_password
from tests.support.console import Annals


def test_flags_win_over_the_environment_and_that_over_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, annals: Annals
) -> None:
    (folder / ".env").write_text("ANNALS_PORT=1\nANNALS_REGISTRYID=file\nANNALS_DATABASE=sqlite:///file.db\n")
    monkeypatch.setenv("ANNALS_REGISTRYID", "environment")
    monkeypatch.setenv("ANNALS_DATABASE", "sqlite:///environment.db")
    printed = annals("config", "--database", "sqlite:///flag.db").out
    for line in ("ANNALS_PORT=1", "ANNALS_REGISTRYID=environment", "ANNALS_DATABASE=sqlite:///flag.db"):
        assert line in printed.splitlines()


@pytest.mark.parametrize(
    "url", ["postgresql://me:geheim@host/name", "postgresql://me@host/name?password=geheim&sslpassword=geheim"]
)
def test_passwords_are_never_shown(url: str, annals: Annals) -> None:
    assert "geheim" not in mask_password(url)
    printed = annals("config", "--database", url)
    assert "***" in printed.out
    assert "geheim" not in printed.out + printed.err


def test_settings_of_kafka_are_shown_without_what_is_secret(monkeypatch: pytest.MonkeyPatch, annals: Annals) -> None:
    for name in ("USERNAME", "PASSWORD", "TOKEN"):
        monkeypatch.setenv(f"ANNALS_KAFKA_{name}", f"geheim-{name}")
    lines = annals("config").out.splitlines()
    assert [line for line in lines if "KAFKA" in line] == [
        "ANNALS_KAFKA_USERNAME=geheim-USERNAME",
        "ANNALS_KAFKA_PASSWORD=**********",
        "ANNALS_KAFKA_TOKEN=**********",
        "# ANNALS_KAFKA_CA=",
    ]


def test_a_refused_setting_does_not_show_its_password_either(annals: Annals) -> None:
    ended = annals("config", "--database", "mysql://me:geheim@host/name")
    assert ended.code == 2
    assert ended.err.startswith("annals: ANNALS_DATABASE: ")
    assert "geheim" not in ended.err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOG_LEVEL", "loud"),
        # ENT-30: a registryid has the form of an id; otherwise an export of the registry could not be imported
        ("REGISTRYID", "a b"),
        ("REGISTRYID", ""),
        ("PORT", "eighty"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(
    name: str, value: str, folder: Path, monkeypatch: pytest.MonkeyPatch, annals: Annals
) -> None:
    monkeypatch.setenv(f"ANNALS_{name}", value)
    ended = annals("config")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"annals: ANNALS_{name}: ")


def test_levels_of_log_lines_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNALS_LOG_LEVEL", "WARNING")
    assert Settings().log_level == "warning"


def test_a_file_of_settings_that_is_no_text_is_one_line(folder: Path, annals: Annals) -> None:
    (folder / ".env").write_bytes(b"\xff\xfe")
    ended = annals("config")
    assert (ended.code, ended.err.count("\n"), ".env" in ended.err) == (2, 1, True)


def test_the_address_of_a_server_is_a_url() -> None:
    assert (url_of_socket("127.0.0.1", 8080), url_of_socket("::1", 8080)) == (
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
    )


# SQLite in memory loses all data with the process, and gives each connection its own database.
@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "annals.db", "mysql://host/name", ""])
def test_a_database_that_keeps_things_is_needed(url: str) -> None:
    with pytest.raises(ValidationError):
        Settings(database=url)


@pytest.mark.parametrize("url", ["example.com", "ftp://example.com", "https://example.com/?a=b", "/registry"])
def test_a_public_url_is_absolute(url: str) -> None:
    with pytest.raises(ValidationError):
        Settings(public_url=url)


def test_a_public_url_loses_its_last_slash() -> None:
    # ENT-40: self is the root followed by the xid, which starts with a slash.
    assert Settings(public_url="https://example.com/registry/").public_url == "https://example.com/registry"


def test_each_setting_says_where_its_value_comes_from(
    folder: Path, monkeypatch: pytest.MonkeyPatch, annals: Annals
) -> None:
    (folder / ".env").write_text("annals_port=1\nANNALS_SPARK_MEMORY=4g\nANNALS_REGISTRYID=file\n")
    monkeypatch.setenv("ANNALS_REGISTRYID", "environment")
    blocks = annals("config", "--explain", "--public-url", "http://x.example").out
    for name, value, kind, default, source in (
        ("PUBLIC_URL", "http://x.example", "text", "none", "flag --public-url"),
        ("REGISTRYID", "environment", "text", "annals", "environment"),
        ("PORT", "1", "integer, at least 0, at most 65535", "8080", ".env"),
        ("INBOUND", "true", "true or false", "true", "default"),
        ("LOG_FORMAT", "console", "console or json", "console", "default"),
        ("SPARK_MEMORY", "4g", "text", "none", ".env"),
    ):
        block = f"#   type: {kind}\n#   default: {default}\n#   value from: {source}\nANNALS_{name}={value}\n"
        assert block in blocks, block


def test_all_settings_are_listed_without_what_is_secret(monkeypatch: pytest.MonkeyPatch, annals: Annals) -> None:
    secrets = {
        "TOKEN": "geheim",
        "LINK_SECRET": "geheim",
        "SEGMENTS": "s3://key:geheim@bucket/x?secret_key=geheim&region=eu",
        "JWT_KEYS": "https://issuer.example/keys?token=geheim",
        "SPARK_CONF": '{"spark.hadoop.fs.s3a.secret.key": "geheim", "spark.executor.cores": "2"}',
    }
    for name, value in secrets.items():
        monkeypatch.setenv(f"ANNALS_{name}", value)
    for options in ((), ("--explain",)):
        printed = annals("config", *options)
        assert "geheim" not in printed.out + printed.err
        assert {line.lstrip("# ").partition("=")[0] for line in printed.out.splitlines()} >= set(variable_names())
        for shown in ("s3://***@bucket/x?secret_key=***&region=eu", '"spark.executor.cores": "2"'):
            assert shown in printed.out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ANNALS_DATABSE", "annals: ANNALS_DATABSE is not a setting; did you mean ANNALS_DATABASE?\n"),
        ("annals_spark_memry", "annals: annals_spark_memry is not a setting; did you mean ANNALS_SPARK_MEMORY?\n"),
        (
            "ANNALS_KAFKA_PASWORD",
            "annals: ANNALS_KAFKA_PASWORD is not a setting; did you mean ANNALS_KAFKA_PASSWORD?\n",
        ),
        ("ANNALS_XYZ", "annals: ANNALS_XYZ is not a setting; annals config lists all settings.\n"),
        # variables of tests, of verbs, of a Kubernetes service named annals, and of other programs
        ("ANNALS_TEST_CUT", ""),
        ("ANNALS_TOKEN", ""),
        ("ANNALS_SERVICE_PORT_HTTP", ""),
        ("ANNALS_PORT_8080_TCP_ADDR", ""),
        ("OTHER_DATABSE", ""),
    ],
)
@pytest.mark.parametrize("place", ["environment", "file"])
def test_a_variable_that_is_no_setting(
    name: str, said: str, place: str, folder: Path, monkeypatch: pytest.MonkeyPatch, annals: Annals
) -> None:
    if place == "environment":
        monkeypatch.setenv(name, "1")
    else:
        (folder / ".env").write_text(f"{name}=1\n")
    ended = annals("config")
    assert (ended.code, ended.err) == (0, said)


def test_verbs_that_load_the_settings_twice_warn_once(monkeypatch: pytest.MonkeyPatch, annals: Annals) -> None:
    monkeypatch.setenv("ANNALS_DATABSE", "x")
    annals("import", "--help")
    ended = annals("rebuild", "--database", "sqlite:///missing.db")
    assert (ended.code, ended.err.count("ANNALS_DATABSE is not a setting")) == (3, 1)


@pytest.mark.parametrize("value", ["{x", "[1]"])
def test_a_wrong_setting_of_spark_is_one_line(value: str, monkeypatch: pytest.MonkeyPatch, annals: Annals) -> None:
    monkeypatch.setenv("ANNALS_SPARK_CONF", value)
    ended = annals("config")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("annals: ANNALS_SPARK_CONF: ")


def test_the_folder_of_segments_may_be_in_the_file(folder: Path, annals: Annals) -> None:
    pytest.importorskip("pyarrow")
    missing = annals("segments", "list")
    assert (missing.code, "--folder or ANNALS_SEGMENTS is needed" in missing.err) == (2, True)
    (folder / "set").mkdir()
    (folder / ".env").write_text("ANNALS_SEGMENTS=set\n")
    empty = annals("segments", "list")
    assert (empty.code, "there are no segments at set." in empty.err) == (3, True), empty
