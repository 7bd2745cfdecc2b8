"""One policy or problem in full, in words: from the registry's data, for the command line, the typed overloads and the reference."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Sequence

from bridle.policies import registry
from bridle.policies.words import ParameterFacts, sentences

WIDTH = 110
"""Where lines of a generated docstring are broken."""

TYPES = {
    "Setting": "float or list of float",
    "int": "int",
    "float": "float",
    "str": "str",
    "bool": "bool",
    "Learner[Any]": "learner",
    "Potential": "potential",
    "Domain": "domain",
    "Sequence[float]": "list of float",
    "Sequence[object]": "list",
}
"""How the annotations of factories read in a docstring."""

TYPICAL = {"horizon": 1000, "lipschitz": 1.0, "bound": 1.0, "modulus": 0.5, "slater": 0.1, "exp_concavity": 1.0}
"""Values for the parameters that must be given, for examples."""


def type_words(annotation: str) -> str:
    """An annotation as a docstring says it.

    >>> type_words("str | Learner[Any] | None")
    'str or learner'
    """
    return " or ".join(TYPES.get(part, part) for part in annotation.split(" | ") if part != "None")


def numpydoc_parameters(parameters: Iterable[ParameterFacts], width: int = WIDTH) -> list[str]:
    """The lines of a section Parameters."""
    lines = []
    for p in parameters:
        kind = type_words(p["type"])
        lines.append(f"{p['name']} : {kind}{'' if p['required'] else ', optional'}" if kind else p["name"])
        lines += textwrap.wrap(_capital(sentences(p)), width, initial_indent="    ", subsequent_indent="    ")
    return lines


def theory(name: str) -> str:
    """What the file of a policy says of its update and its guarantee, without the proof and the examples; empty where it says nothing.

    >>> theory("yi2022").splitlines()[0]
    'Yi et al. 2022, one node: primal-dual steps on the clipped constraint with a multiplier that is pulled back to zero.'
    """
    text = inspect.cleandoc(getattr(inspect.getmodule(registry.entry(name).factory), "__doc__", None) or "")
    paragraphs = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(("Proof", ">>>")):
            break
        paragraphs.append(_joined(paragraph))
    return "\n\n".join(paragraphs).replace("; the proof is below", "")


def _joined(paragraph: str) -> str:
    """A paragraph whose lines are joined, so that any width can break them anew; formulas stay as they are, and so do tables."""
    lines: list[str] = []
    for line in paragraph.splitlines():
        new = not lines or line.startswith(("Guarantee:", "Reference:", "|")) or lines[-1].startswith(" ")
        if new or (line.startswith(" ") and not lines[-1].startswith(("Guarantee:", "Reference:"))):
            lines.append(line)
        else:
            lines[-1] += f" {line.strip()}"
    return "\n".join(lines)


def example(name: str) -> list[str]:
    """How the policy is made in Python.

    >>> example("sinha2024")[0]
    'bridle.policy("sinha2024", bridle.Ball(2), horizon=1000, lipschitz=1.0)'
    """
    item = registry.entry(name)
    domain = "bridle.Simplex(2)" if item.domains == ("simplex",) else "bridle.Ball(2)"
    needed = [f"{p.name}={TYPICAL.get(p.name, 1.0)}" for p in registry.parameters(name) if p.required]
    return [f'bridle.policy("{name}", {", ".join([domain, *needed])})']


def guarantee(name: str) -> list[str]:
    """What a policy assumes, promises and costs, one line each."""
    item = registry.entry(name)
    sharper = ", sharper with Slater" if item.slater == "sharper" and "Slater" not in item.violation else ""
    return [
        *([f"assumes: {'; '.join(item.assumptions())}"] if item.assumptions() else []),
        *([f"regret {item.regret}"] if item.regret != "-" else []),
        *([f"violation {item.violation}{sharper}"] if item.violation != "-" else []),
        f"constraints: {item.constraints}; of several: {item.reduces}",
        f"sees: {item.feedback}",
        f"{item.cost} a round",
        item.reference,
    ]


def document(name: str) -> str:
    """The docstring of one policy, as `bridle.policy` would have it, were it a function of its own.

    Parameters
    ----------
    name : str
        A name from `bridle.policies.names`.

    Returns
    -------
    str
        One line on what it is; what it assumes and promises; every parameter with meaning, default, values and unit; an example.

    Raises
    ------
    InputError
        No policy has this name.

    Examples
    --------
    >>> print(document("adahedge").splitlines()[0])
    Exponential weights, constraints ignored.
    """
    own, shared = ([p.facts() for p in parameters] for parameters in (registry.parameters(name), registry.shared_parameters(name)))
    head = ["name : str", f'    "{name}".', "domain : Domain", "    The set of actions: what decisions are made from."]
    return docstring(
        _capital(registry.entry(name).title) + ".",
        guarantee(name),
        [*head, *numpydoc_parameters([*own, *shared])],
        ("Configured", "The policy with these parameters, for `bridle.play` and `bridle.Session`."),
        example(name),
    )


def docstring(title: str, about: Sequence[str], parameters: Sequence[str], returns: tuple[str, str], examples: Sequence[str]) -> str:
    """A docstring in numpydoc's form."""
    sections = [
        title,
        textwrap.fill(" ".join(_capital(line) + ("" if line.endswith(".") else ".") for line in about), WIDTH),
        "\n".join(["Parameters", "----------", *parameters]),
        "\n".join(["Returns", "-------", returns[0], f"    {returns[1]}"]),
        "\n".join(["Raises", "------", "InputError", "    A parameter is unknown, is missing, or has a value that it does not take."]),
        "\n".join(["Examples", "--------", ">>> import bridle", *(f">>> made = {line}" for line in examples)]),
    ]
    return "\n\n".join(sections)


def _capital(text: str) -> str:
    """A sentence with a capital letter, unless it begins with a symbol such as G or x."""
    first = text.split(" ", 1)[0]
    return text if first.endswith(",") or (len(first) < 2 and first != "a") or not first.islower() else text[0].upper() + text[1:]
