"""Documentation examples run as tests, each in a folder of its own, so that what they save does not land in the repository."""

import pytest
from _pytest.doctest import DoctestItem


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(request, monkeypatch):
    if isinstance(request.node, DoctestItem):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
