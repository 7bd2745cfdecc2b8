"""Estimators and optimisers in the manner of scikit-learn, river and PyTorch, each in the one file that imports that library."""

from __future__ import annotations

from bridle.core import Unavailable


def missing(extra: str, trouble: ModuleNotFoundError) -> Unavailable:
    """The error for a library that is not installed."""
    return Unavailable(f"bridle.adapters.{extra} needs the package {trouble.name}: pip install 'bridle-oco[{extra}]'")
