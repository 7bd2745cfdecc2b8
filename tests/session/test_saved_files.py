"""Files of another version of the format are refused in one sentence, and stay as they are."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

import bridle
from bridle.session import savefile
from helpers.save_files import contents, edit, put_together

SAVED = Path(__file__).parent / "saved"


def test_a_save_file_of_0_1_0_is_refused():
    with pytest.raises(bridle.InputError, match=r"^cannot read .*anytime-late\.npz: it was not written by this version of bridle$"):
        bridle.Session.load(SAVED / "anytime-late.npz")


def test_a_save_file_of_a_later_version_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    bridle.Session(bridle.policy("anytime", bridle.Ball(2))).save(path)
    edit(path, lambda header, arrays: header.update(schema=savefile.SCHEMA + 1))
    with pytest.raises(bridle.InputError, match="it has schema 6, and this version of bridle reads schema 5 alone"):
        bridle.Session.load(path)


def test_a_file_without_its_digest_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    bridle.Session(bridle.policy("anytime", bridle.Ball(2))).save(path)
    put_together(path, *contents(path), seal=False)
    with pytest.raises(bridle.InputError, match="it was not written by this version of bridle"):
        bridle.Session.load(path)


def test_a_database_of_0_1_0_is_refused_and_stays_as_it_is(tmp_path):
    with sqlite3.connect(tmp_path / "run.db") as raw:
        raw.executescript(gzip.decompress((SAVED / "journal.sql.gz").read_bytes()).decode())
    raw.close()
    with pytest.raises(bridle.InputError, match="its tables have version 1, and this version of bridle reads version 2 alone"):
        bridle.Session.open(f"sqlite:///{tmp_path}/run.db", "shop")
    with sqlite3.connect(tmp_path / "run.db") as raw:
        assert raw.execute("SELECT count(*) FROM event").fetchone() == (18,)
    raw.close()


def test_a_comparison_of_0_1_0_is_refused():
    with pytest.raises(bridle.InputError, match=r"it has no column .*, so it is not a comparison of this version of bridle"):
        bridle.Comparison.load(SAVED / "0.1.0" / "results.parquet")
