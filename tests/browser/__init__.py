"""Tests in a real browser, run by `make test-browser`; a package, so that its files may be named like those above."""
