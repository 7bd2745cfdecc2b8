from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from bridle import cli

settings.register_profile(
    "bridle", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("bridle")


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
