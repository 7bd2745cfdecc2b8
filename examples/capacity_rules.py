"""Capacity before demand: rules that somebody runs today, and a mixture of them that learns what each is worth."""

import numpy as np

import bridle

PERIOD, PRICE = 48, 20.0  # slots of a day; what a missing unit costs, against 1 for one that is held
BOX = bridle.Box(0.0, 100.0, dim=1)


def demand(slots: int, seed: int) -> np.ndarray:
    """A daily rhythm, a level that drifts, and bursts."""
    rng, t = np.random.default_rng(seed), np.arange(slots)
    level = 12.0 + np.cumsum(0.05 * rng.standard_normal(slots))
    bursts = np.where(rng.random(slots) < 0.02, rng.exponential(6.0, slots), 0.0)
    return np.clip(level * (1.0 + 0.5 * np.sin(2.0 * np.pi * t / PERIOD)) + rng.standard_normal(slots) + bursts, 0.0, 100.0)


def rules() -> dict[str, object]:
    """Each is a function of what has been seen: demand is what was held less what was left over."""

    def seen(past: tuple[bridle.Feedback, ...]) -> np.ndarray:
        return np.array([float(each.g[0] + each.x[0]) for each in past[-8 * PERIOD :]])

    def ewma(k: float):
        def rule(past: tuple[bridle.Feedback, ...]) -> np.ndarray | None:
            d = seen(past[-PERIOD:])
            return None if len(d) < 2 else np.clip([np.average(d, weights=0.8 ** np.arange(len(d))[::-1]) + k * d.std()], 0.0, 100.0)

        return rule

    def same_slot(k: float):
        def rule(past: tuple[bridle.Feedback, ...]) -> np.ndarray | None:
            d = seen(past)[-PERIOD::-PERIOD]
            return None if len(d) < 3 else np.clip([d.mean() + k * d.std()], 0.0, 100.0)

        return rule

    def quantile(q: float):
        return lambda past: None if not past else [np.quantile(seen(past[-PERIOD:]), q)]

    named: dict[str, object] = {f"ewma + {k:g} sigma": ewma(k) for k in (0.0, 0.5, 1.0, 2.0)}
    named |= {f"same slot + {k:g} sigma": same_slot(k) for k in (0.0, 1.0, 2.0, 3.0)}
    named |= {f"quantile {q:g}": quantile(q) for q in (0.5, 0.95, 1.0)}
    return named | {"everything": lambda past: [100.0]}


def main(slots: int = 2000, seed: int = 0) -> dict[str, float]:
    """The mean cost of the mixture, and of each rule in the slots in which it had something to say, over the mean demand."""
    own = rules()
    for name, rule in own.items():
        rule.__name__ = name
    session = bridle.Session(bridle.policy("mlpoly", BOX, rules=list(own.values())))
    needed, paid, counts = demand(slots, seed), np.zeros(len(own)), np.zeros(len(own))
    for need in needed:
        x, proposals = session.decide(), session.proposals[:, 0]
        short = need > x[0]
        cost, slope = float(x[0] + PRICE * max(0.0, need - x[0])), 1.0 - PRICE * short
        session.observe(f=cost, df=[slope], g=float(need - x[0]), dg=[-1.0])
        awake = ~np.isnan(proposals)
        paid[awake] += proposals[awake] + PRICE * np.maximum(0.0, need - proposals[awake])
        counts += awake
    unit = float(needed.mean())
    return {"mixture": session.cost / slots / unit} | dict(zip(own, (paid / counts / unit).tolist(), strict=True))


if __name__ == "__main__":
    for name, cost in sorted(main().items(), key=lambda pair: pair[1]):
        print(f"{name:22s} {cost:8.3f}")
