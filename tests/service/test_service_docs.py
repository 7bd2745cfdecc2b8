"""What docs/service.md tells to type works as it stands there."""

from __future__ import annotations

import configparser
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bridle.service.config import read_config
from bridle.service.recipes import session_recipe

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")


def blocks(kind: str, heading: str) -> list[str]:
    """The blocks of this kind under a heading."""
    part = re.split(r"^## ", PAGE, flags=re.M)
    (under,) = [each for each in part if each.startswith(heading)]
    return re.findall(rf"^```{kind}\n(.*?)^```", under, flags=re.M | re.S)


@pytest.mark.slow
def test_five_minutes_and_the_backup_work_as_they_are_written(tmp_path):
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    install, *typed = blocks("sh", "Five minutes")
    (client,) = blocks("python", "Five minutes")
    (backup,) = blocks("sh", "Backup, restore, upgrade")
    assert install.startswith("pip install ")
    (tmp_path / "client.py").write_text(client.replace("8711", str(port)))
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, what in (("bridle", "-m bridle"), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec {sys.executable} {what} "$@"\n')
        (commands / name).chmod(0o755)
    script = "\n".join(["set -euo pipefail", "trap 'kill $(jobs -p)' EXIT", *typed, "python client.py", backup]).replace("8711", str(port))
    setting = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=setting, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads((tmp_path / "ready.json").read_text()) == {"status": "ready"}
    answers = [json.loads(line) for line in re.findall(r"\{.*?\}(?=\{|\n|\d+ rounds)", ran.stdout.split(" rounds,")[0] + "\n")]
    assert any("round" in answer and answer.get("next") for answer in answers)
    assert "4 rounds, " in ran.stdout
    assert "shop-17" in ran.stdout.split("4 rounds, ")[1], "the copy has the session"


def test_the_configuration_on_the_page_is_one_that_is_read(tmp_path, monkeypatch):
    (text,) = blocks("toml", "`bridle.toml`")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASSWORD", "secret")
    for name in ("server.pem", "server.key", "bridle.toml"):
        (tmp_path / name).write_text(text if name.endswith("toml") else "")
    config = read_config("bridle.toml")
    assert (config.port, config.tls_cert, config.limits.batch) == (8711, "server.pem", 10_000)
    made = session_recipe(config.sessions["shop-17"], config.limits)
    assert (made.policy.name, list(made.gates)) == ("rate", ["march"])
    assert read_config("bridle.toml", db="postgresql://bridle:${PASSWORD}@host/name").db == "postgresql://bridle:secret@host/name"


def test_the_unit_on_the_page_has_every_part():
    (text,) = blocks("ini", "Under systemd")
    unit = configparser.ConfigParser()
    unit.read_string(text)
    assert unit["Service"]["ExecStart"].split()[1:] == ["serve", "--config", "/etc/bridle/bridle.toml"]
    assert unit["Install"]["WantedBy"]
