"""Budgets in a session's journal: gates and pacers whose payments are events, so that money and decisions are on the disk together.

In memory they are what they are anywhere (`bridle.budgets`); a payment is made there, written down, and given out once it is durable. What
is rebuilt from the journal has every payment that was acknowledged, in its order, so that its money, its price and its plan are the same
bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from bridle import storage, validate
from bridle.budgets import Account, Gate, Pacer
from bridle.core import InputError, Pay, SetBudget
from bridle.pacing import Asked
from bridle.storage import Facts

Budgets: TypeAlias = Mapping[str, Gate] | None
"""Gates and pacers by name, if there are any."""


class SessionBudgets:
    """The gates and pacers of a session, by name."""

    def __init__(self, budgets: Mapping[str, Gate]) -> None:
        self.budgets = dict(budgets)

    @classmethod
    def checked(cls, gates: Budgets) -> SessionBudgets:
        """The budgets that a caller gives: copies of them, so that nobody else pays from these."""
        if gates is not None and not isinstance(gates, Mapping):
            raise validate.refused("gates must be gates and pacers under their names", gates)
        for name, budget in (gates or {}).items():
            if not isinstance(name, str) or not 0 < len(name) <= 200:
                raise validate.refused("gates must have names of 1 to 200 characters", name)
            if not isinstance(budget, Gate):
                raise validate.refused(f"gates[{name!r}] must be a Gate or a Pacer", budget)
            if budget._kept.file is not None:
                raise InputError(f"gates[{name!r}] is open on a file of its own, and cannot be in the journal of a session as well")
        return cls.restored(cls(gates or {}).facts())

    @classmethod
    def restored(cls, facts: Mapping[str, Facts]) -> SessionBudgets:
        """The budgets that stand where these facts say."""
        budgets: dict[str, Gate] = {}
        for name, (kind, numbers) in ((name, (each["kind"], each["facts"])) for name, each in facts.items()):
            budget = Pacer(0.0, 1) if kind == "pacer" else Gate(0.0)
            budget._become(numbers, f"the budget {name!r}")
            budgets[name] = budget
        return cls(budgets)

    def facts(self) -> dict[str, Facts]:
        """All of them, as JSON has them."""
        return {
            name: {"kind": "pacer" if isinstance(budget, Pacer) else "gate", "facts": dict(budget.facts())}
            for name, budget in sorted(self.budgets.items())
        }

    def find(self, name: object) -> Gate:
        """The budget of this name."""
        budget = self.budgets.get(name) if isinstance(name, str) else None
        if budget is None:
            known = ", ".join(map(repr, sorted(self.budgets))) or "none"
            raise validate.refused(f"gate must be the name of a budget of this session ({known})", name)
        return budget

    def account(self, name: str) -> tuple[Account, Asked | None]:
        """Where a budget stands, to go back to."""
        budget = self.find(name)
        return budget._account, budget._asked if isinstance(budget, Pacer) else None

    def go_back(self, name: str, account: tuple[Account, Asked | None]) -> None:
        """Undo what was paid since: it was written down nowhere."""
        budget = self.find(name)
        budget._account, asked = account
        if isinstance(budget, Pacer) and asked is not None:
            budget._asked = asked

    def asked(self, name: str) -> tuple[float, ...]:
        """What a pacer was asked of the round that is now to be paid."""
        budget = self.find(name)
        return tuple(budget._asked) if isinstance(budget, Pacer) else ()

    def pay(self, paid: Pay) -> float | None:
        """Make a payment in memory; what was counted, of a gate."""
        budget = self.find(paid.name)
        if isinstance(budget, Pacer):
            budget._asked = Asked(*paid.asked)
            budget.pay(paid.amount)
            return None
        return budget.pay(paid.amount)

    def set_budget(self, command: SetBudget) -> None:
        """Change a budget, in memory."""
        name, budget, rounds = command
        found = self.find(name)
        if isinstance(found, Pacer):
            found.set_budget(budget, rounds)
        elif rounds is not None:
            raise InputError(f"rounds cannot be given: {name!r} is a gate, which has none")
        else:
            found.set_budget(budget)

    def standing(self, name: str) -> bytes:
        """Where a budget stands, in bytes."""
        return storage.canonical(dict(self.find(name).facts())).encode()
