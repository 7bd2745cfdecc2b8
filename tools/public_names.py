"""What is public: the names in `bridle.__all__` and in the `__all__` of the modules listed here. The reference and its tests read it.

Whatever is not listed may change without notice; the versions page says what is promised of the names that are.

python tools/public_names.py        print every public name by page
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import NamedTuple

import bridle


class Page(NamedTuple):
    """A page of the reference: the names of `bridle` that are defined in `homes`, and all names of `modules`."""

    slug: str
    title: str
    about: str
    homes: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


PAGES = (
    Page(
        "play", "Play a game", "Make a policy and a problem, and let them meet.", ("game.play", "policies", "problems", "advice", "solvers")
    ),
    Page("measures", "Measure it", "What a trace cost, and how far its constraints were broken.", ("game.metrics",)),
    Page("session", "Sessions", "Decide round by round in a program of your own, with certificates.", ("session",)),
    Page("service", "Client of the service", "Talk to a decision service.", ("service",)),
    Page("domains", "Domains", "The sets in which decisions lie.", ("domains",)),
    Page("functions", "Functions", "Costs and constraints, with their gradients.", ("functions", "networks")),
    Page("learners", "Learners and potentials", "The parts that policies are made of.", ("learners",), ("bridle.learners.potentials",)),
    Page("budgets", "Budgets and pacing", "Gates and pacers for money that can be spent once.", ("budgets", "pacing")),
    Page("records", "Rounds, feedback and bounds", "What passes between a policy and the world.", ("core",)),
    Page("warnings", "Errors and warnings", "What bridle complains of, and what to do then."),
    Page("rules", "Rules", "Rules of thumb that propose actions.", (), ("bridle.rules",)),
    Page("adversaries", "Adversaries", "What answers decisions in a game.", (), ("bridle.adversaries",)),
    Page("checks", "Checks", "Does a policy or a domain of your own keep its contract?", (), ("bridle.checks",)),
    Page("compare", "Compare", "A grid of games, its tables and its report.", ("comparisons",)),
    Page("data", "Data", "Named data sets, fetched once and verified.", (), ("bridle.data",)),
    Page("engines", "Engines", "Who plays the rounds.", (), ("bridle.engines",)),
    Page("sklearn", "Adapter: scikit-learn", "Estimators that learn under limits.", (), ("bridle.adapters.sklearn",)),
    Page("river", "Adapter: river", "Models of streams that learn under limits.", (), ("bridle.adapters.river",)),
    Page("torch", "Adapter: PyTorch", "Optimisers that train under limits.", (), ("bridle.adapters.torch",)),
)
"""The pages, in the order of the reference."""


def home(name: str) -> str:
    """The part of the package in which a name of `bridle` is defined.

    >>> home("Ball"), home("InputError")
    ('domains', 'core')
    """
    thing = getattr(bridle, name)
    return str(getattr(thing, "__module__", None) or thing.__name__).removeprefix("bridle.")


def is_complaint(name: str) -> bool:
    """Whether a name of `bridle` is an error or a warning."""
    thing = getattr(bridle, name)
    return isinstance(thing, type) and issubclass(thing, Exception)


def page_of(name: str) -> Page:
    """The page on which a name of `bridle` is documented."""
    if is_complaint(name):
        return next(page for page in PAGES if page.slug == "warnings")
    found = [page for page in PAGES for start in page.homes if f"{home(name)}.".startswith(f"{start}.")]
    if not found:
        raise LookupError(f"tools/public_names.py says on no page where bridle.{name} of bridle.{home(name)} is documented")
    return found[0]


def names_of(page: Page) -> Iterator[tuple[str, str]]:
    """The names on a page, each with the module from which it is imported."""
    for name in bridle.__all__:
        elsewhere = any(f"bridle.{home(name)}.".startswith(f"{module}.") for module in page.modules)
        if page_of(name) == page and not elsewhere:
            yield "bridle", name
    for module in page.modules:
        for name in exported(module):
            yield module, name


def exported(module: str) -> list[str]:
    """The public names of a public module."""
    found = importlib.import_module(module)
    return sorted(found.__all__, key=str.lower)


if __name__ == "__main__":
    for each in PAGES:
        print(each.slug, *(f"{module}.{name}" for module, name in names_of(each)))
