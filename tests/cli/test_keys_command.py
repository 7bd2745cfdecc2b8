"""`bridle keys`: keys are made, listed and revoked, wherever the database is named."""

from __future__ import annotations

import json

import pytest

from bridle.database import open_store
from bridle.service.auth import recognise
from helpers.durable_runs import url_of


@pytest.mark.parametrize("before", [True, False])
def test_the_database_is_named_before_or_after_the_command(run, tmp_path, before):
    url = url_of(tmp_path)

    def keys(command, *words):
        return run("keys", *(["--db", url, command, *words] if before else [command, *words, "--db", url]))

    status, text, _ = keys("add", "shop", "--scope", "decide, observe", "--scope", "read")
    assert status == 0
    with open_store(url, readonly=True) as store:
        (kept,) = store.keys.list()
    assert (kept.name, kept.scopes, recognise(text.strip(), {kept.id: kept})) == ("shop", "decide observe read", kept)
    status, text, _ = keys("list", "--json", "-")
    assert (status, [each["id"] for each in json.loads(text)]) == (0, [kept.id])
    assert keys("revoke", kept.id)[0] == 0
    assert keys("revoke", kept.id)[0] == 2
    assert kept.id in run("keys", "--db", url)[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list"], "--db must be given"),
        ([], "--db must be given"),
        (["--db", "URL", "add", "shop", "--scope", "decide,everything"], "everything"),
        (["--db", "URL", "add", "shop", "--scope", ""], "scope"),
    ],
)
def test_what_makes_no_sense_is_one_line(run, tmp_path, words, said):
    status, out, err = run("keys", *(url_of(tmp_path) if word == "URL" else word for word in words))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err
