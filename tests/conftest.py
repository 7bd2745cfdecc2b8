from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from bridle import cli

settings.register_profile(
    "bridle", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("bridle")


FORKING = ("test_fact_file.py", "test_kills.py", "test_sqlite_store.py", "test_storage.py")
"""Tests that fork a child for every step come first: a fork takes ten times as long once the process holds compilers and all they made."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of tests in their order, but those that fork first."""
    items.sort(key=lambda item: item.path.name not in FORKING)


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line in this process: exit status, standard output, standard error."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def command(*arguments: Any) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return command
