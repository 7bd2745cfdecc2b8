"""One problem in full, in words, for the command line, the typed overloads and the reference."""

from __future__ import annotations

from bridle.policies.documentation import docstring, numpydoc_parameters
from bridle.problems import problem_facts


def example(name: str) -> str:
    """How the problem is made in Python.

    >>> example("pricing")
    'bridle.problem("pricing", horizon=1000)'
    """
    recorded = ', data="auctions.csv"' if name == "auctions" else ""
    return f'bridle.problem("{name}", horizon=1000{recorded})'


def document(name: str) -> str:
    """The docstring of one problem, as `bridle.problem` would have it, were it a function of its own.

    Parameters
    ----------
    name : str
        A name from `bridle.problems.problem_names`, or a file.

    Returns
    -------
    str
        One line on what it is; what x, f and g are; every parameter with meaning, default, values and unit; an example.

    Raises
    ------
    InputError
        No problem has this name.

    Examples
    --------
    >>> print(document("pricing").splitlines()[0])
    Prices of a shop, set before the day's demand is known, with no more to sell than the stock.
    """
    facts = problem_facts(name)
    parameters = ["name : str", f'    "{name}".', *numpydoc_parameters(facts["parameters"])]
    returns = "Problem", "The domain, the adversary and the constants, for `bridle.play` and `bridle.policy_for`."
    return docstring(facts["summary"], [facts["about"]], parameters, returns, [example(name)])
