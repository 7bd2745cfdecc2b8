"""What a server is told: the file, the command line, and what of it makes no sense."""

from __future__ import annotations

import pytest

from bridle.core import InputError
from bridle.service.config import ServiceConfig, ServiceLimits, read_config

WHOLE = """
db = "sqlite:///${BRIDLE_TEST_FILE}"
port = 9000
log = "warning"
drain = 3
[limits]
body = 1000
rate = 5.5
[sessions.shop-17]
policy = "anytime"
domain = { kind = "box", low = 0.0, high = 40.0, dim = 1 }
gates.march = { budget = 500.0 }
"""


def written(tmp_path, text):
    path = tmp_path / "bridle.toml"
    path.write_text(text)
    return str(path)


def test_a_file_is_read_and_the_command_line_has_the_last_word(tmp_path, monkeypatch):
    monkeypatch.setenv("BRIDLE_TEST_FILE", "run.db")
    config = read_config(written(tmp_path, WHOLE), port=9001, host=None)
    assert (config.db, config.port, config.host, config.log, config.drain) == ("sqlite:///run.db", 9001, "127.0.0.1", "warning", 3.0)
    assert config.limits == ServiceLimits(body=1000, rate=5.5)
    assert config.sessions["shop-17"]["gates"] == {"march": {"budget": 500.0}}
    assert config.address == "http://127.0.0.1:9001"


def test_nothing_said_is_the_documented_default():
    assert read_config(None) == ServiceConfig()
    assert (ServiceConfig().db, ServiceConfig().host, ServiceConfig().port) == ("sqlite:///bridle.db", "127.0.0.1", 8711)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prot = 1", "did you mean port"),
        ("[limits]\nbodi = 1", "did you mean body"),
        ("[limits]\nbody = 'x'", "limits.body must be a number"),
        ("[limits]\nbody = 0", "limits.body must be 1 or above"),
        ("port = 70000", "port must be"),
        ("port = true", "port must be"),
        ("log = 'loud'", "log"),
        ("db = 5", "db must be a text"),
        ("db = '${NO_SUCH_VARIABLE_HERE}'", "NO_SUCH_VARIABLE_HERE, which is not set"),
        ("[sessions]\nx = 1", "sessions must be tables"),
        ("[sessions.'a b']\npolicy = 'anytime'", "name must have"),
        ("[tls]\ncert = 'a.pem'", "belong together"),
        ("[tls]\ncert = 'no-such.pem'\nkey = 'no-such.key'", "there is no such file"),
        ("insecure = true", "unknown setting 'insecure'"),
        ("x = [", "cannot read"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(tmp_path, text, sentence):
    with pytest.raises(InputError, match=sentence):
        read_config(written(tmp_path, text))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "example.org"])
def test_without_keys_only_this_machine_is_served(host):
    with pytest.raises(InputError, match="--insecure is for this machine alone"):
        read_config(None, host=host, insecure=True)
    assert read_config(None, host="127.0.0.1", insecure=True).insecure


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*No such file"):
        read_config(str(tmp_path / "none.toml"))
