"""What is said of every parameter of a problem: its meaning, its unit, the values it takes, and what happens where it is not given."""

from __future__ import annotations

from dataclasses import replace

from bridle.policies.words import ABOVE, COUNT, FROM_NONE, FROM_ZERO, SWITCH, ParameterWords

PARAMETER_WORDS = {
    "horizon": ParameterWords("T, how many rounds", "rounds", COUNT, "as many as the file has"),
    "seed": ParameterWords("the seed of the instance and of its stream", "none", FROM_NONE),
    "dim": ParameterWords("d, coordinates of a decision", "coordinates", COUNT),
    "modulus": ParameterWords(
        "0: linear costs; above 0: quadratic costs with this strong convexity", "cost per squared unit of action", FROM_ZERO
    ),
    "constraints": ParameterWords("k, constraints a round reveals", "constraints", COUNT),
    "slater": ParameterWords("by how much one action satisfies every constraint", "constraint", FROM_ZERO),
    "family": ParameterWords("m, how many linear costs the adversary chooses from", "costs", COUNT),
    "domain": ParameterWords("where decisions are made", "a name or a domain", "ball, box, simplex, l1, or a domain"),
    "data": ParameterWords(
        "which data to use", "a name", "a name that `bridle data list` shows, or a file of your own where the problem takes one"
    ),
    "installed": ParameterWords(
        "how much there is of each resource of a file, one number or one for each", "action", ABOVE, "twice the resource's peak"
    ),
    "lookback": ParameterWords("how many of the latest rows of the data a limit is computed from", "rows", "a whole number, 2 or above"),
    "risk": ParameterWords("allowed variance, as a multiple of that of an equal share in every asset", "none", ABOVE),
    "known": ParameterWords("limits are told before each decision, and kept", "yes or no", SWITCH),
    "relatives": ParameterWords("the file has price relatives, not prices", "yes or no", SWITCH, "what the data set is known to have"),
    "budget": ParameterWords("the budget, as a share of what it costs on average to bid what impressions are worth", "share", ABOVE),
    "share": ParameterWords("what may be spent, as a share of what all auctions would cost together", "share", ABOVE),
    "auction": ParameterWords("what the winner pays", "a name", "second (the others' highest bid) or first (its own)"),
    "levels": ParameterWords(
        "how many multipliers of the value there are, that of no bid included", "multipliers", "a whole number, 2 or above"
    ),
    "tolerance": ParameterWords("largest covariance of score and sex that is allowed", "covariance", ABOVE),
    "radius": ParameterWords("largest length of the weights", "weights", ABOVE),
    "elasticity": ParameterWords(
        "by how many percent sales fall when a price rises by 1 percent, at list prices on average", "percent per percent", ABOVE
    ),
    "substitution": ParameterWords(
        "by how many percent, at most, sales rise when all other prices rise by 1 percent",
        "percent per percent",
        "0 or above; how far above depends on elasticity",
    ),
    "stock": ParameterWords("a day's share of the stock, in average days' sales at list prices", "days of sales", ABOVE),
    "season": ParameterWords("how far demand swings over a week, as a share of it", "share", "0 or above and below 1"),
    "shock": ParameterWords("how far the level of demand may be off in a month, as a share of it", "share", "0 or above and below 1"),
    "spokes": ParameterWords("n, airports beside the hub; there are 2 n flights and 2 n (n + 1) products", "airports", COUNT),
    "load": ParameterWords("requests on average, as a multiple of what there is to sell, on average over the flights", "none", ABOVE),
    "fares": ParameterWords("the high fare, as a multiple of the low one", "low fares", ABOVE),
    "waypoints": ParameterWords("n, waypoints of the robot's way, two coordinates each", "waypoints", COUNT),
    "wind": ParameterWords(
        "n times the largest slope that the wind adds to the energy at one of n waypoints", "cost per unit of action", FROM_ZERO
    ),
    "bidders": ParameterWords("n, who bids", "bidders", COUNT),
    "items": ParameterWords("m, what is sold, one of each", "items", COUNT),
    "bundles": ParameterWords(
        "how many bundles each bidder bids for", "bundles", "a whole number, 1 or above and below 2 to the power of the items"
    ),
    "least": ParameterWords("attention that a provider must get, as a multiple of an even share", "even shares", "between 0 and 1"),
    "groups": ParameterWords(
        "how many groups the providers stand in, neighbours together, each limited as a whole",
        "groups",
        "a whole number, 2 or above and at most the providers",
        "every provider alone",
    ),
    "most": ParameterWords("attention that a provider may get, as a multiple of an even share", "even shares", "1 or above"),
    "window": ParameterWords(
        "S: over every so many rounds in a row, and over no fewer, an action satisfies the constraints in total",
        "rounds",
        "a whole number from 1 to the horizon",
    ),
    "level": ParameterWords("by how much the best action violates a constraint in a bad round", "constraint", ABOVE),
    "P_T": ParameterWords(
        "what the best action violates over its worst interval, in units of F (the largest |g|)",
        "the largest constraint value",
        "0 or above and below the horizon",
    ),
    "conflict": ParameterWords(
        "0: one weight vector serves all tasks; above 0: by how much every one fails a task in every round", "constraint", FROM_ZERO
    ),
    "period": ParameterWords("rounds between one change of sides, or one constraint, and the next", "rounds", COUNT),
    "switching": ParameterWords(
        "what it costs to move the decision by one unit from one round to the next",
        "cost per unit of action",
        FROM_ZERO,
        "movement is free",
    ),
    "truth": ParameterWords("what a hint has of the true gradients: 1 is all, 0 nothing, -1 the opposite", "none", "a number"),
    "error": ParameterWords("how long the noise in a hint is, on average, as a multiple of the gradient's length", "none", FROM_ZERO),
    "noise": ParameterWords("largest error of a constraint's value", "constraint", ABOVE),
    "adaptive": ParameterWords(
        "0: scales are drawn at random; 1: the farther a decision is from the feasible action, the larger they are", "0 or 1", "0 or 1"
    ),
}
"""One name for each parameter everywhere."""

OF_PROBLEM: dict[str, dict[str, ParameterWords]] = {
    "lower-bound": {
        "dim": replace(PARAMETER_WORDS["dim"], values="the horizon", absent="the horizon"),
        "modulus": replace(PARAMETER_WORDS["modulus"], meaning="the costs are absolute values, and have none", values="0"),
    },
    "multi-task": {"dim": replace(PARAMETER_WORDS["dim"], values="a whole number, 2 or above")},
    "recommendation": {
        "dim": replace(PARAMETER_WORDS["dim"], meaning="d, how many providers", unit="providers", values="a whole number, 2 or above"),
        "data": replace(PARAMETER_WORDS["data"], values="simulated or ratings"),
    },
    "tangent": {"noise": replace(PARAMETER_WORDS["noise"], values=FROM_ZERO)},
    "pricing": {"dim": replace(PARAMETER_WORDS["dim"], meaning="d, how many products", unit="products")},
    "ad-pacing": {"dim": replace(PARAMETER_WORDS["dim"], meaning="d, segments of the audience", unit="segments")},
    "portfolio": {
        "data": replace(PARAMETER_WORDS["data"], values="a set of prices that `bridle data list` shows, or a .csv or .npz of your own")
    },
    "capacity": {
        "data": replace(PARAMETER_WORDS["data"], values="alibaba, or a .csv or .npz of your own with a column for each resource"),
        "modulus": replace(
            PARAMETER_WORDS["modulus"], meaning="strong convexity of what idle or missing capacity costs; 0: only what is switched on costs"
        ),
    },
    "auctions": {
        "data": replace(
            PARAMETER_WORDS["data"],
            meaning="the recorded auctions",
            unit="a file",
            values="a .csv or .npz with columns value and price",
            absent="an error: there are no auctions to play",
        )
    },
    "revenue": {"data": replace(PARAMETER_WORDS["data"], values="simulated or bikes")},
    "navigation": {
        "constraints": replace(PARAMETER_WORDS["constraints"], meaning="k, obstacles of a lap", unit="obstacles"),
        "slater": replace(PARAMETER_WORDS["slater"], meaning="how far a free route is from every obstacle at least", unit="action"),
    },
    "bundle-auctions": {
        "budget": replace(PARAMETER_WORDS["budget"], meaning="what a bidder may pay, as a share of the dearest bundle bid for"),
        "noise": replace(
            PARAMETER_WORDS["noise"],
            meaning="by what share a reported value may be off; 0: values are reported as they are",
            unit="share",
            values="0 or above and below 1",
        ),
        "constraints": replace(PARAMETER_WORDS["constraints"], meaning="k, limits that answer a proposal", unit="limits"),
    },
    "experts": {
        "dim": replace(PARAMETER_WORDS["dim"], meaning="N, how many experts", unit="experts", values="a whole number, 2 or above"),
        "share": replace(
            PARAMETER_WORDS["share"], meaning="the share of experts that never violate the limit", values="above 0 and below 1"
        ),
        "adaptive": replace(
            PARAMETER_WORDS["adaptive"], meaning="0: careless experts violate at random; 1: the one with the most weight does"
        ),
    },
    "drifting-optimum": {"period": replace(PARAMETER_WORDS["period"], meaning="rounds until costs are back where they were")},
    "jumping-limits": {"period": replace(PARAMETER_WORDS["period"], meaning="rounds between one jump and the next")},
    "seasonal-limits": {"period": replace(PARAMETER_WORDS["period"], meaning="rounds of a season")},
    "uphill": {"modulus": replace(PARAMETER_WORDS["modulus"], meaning="strong convexity of the cost", values=ABOVE)},
}
"""Where a parameter of one problem means something else than usual, or takes other values."""


def words_for(problem: str, parameter: str) -> ParameterWords:
    """What is said of this parameter of this problem; empty words where nothing is known of it.

    >>> words_for("pricing", "dim").unit
    'products'
    """
    for known in (OF_PROBLEM.get(problem, {}), PARAMETER_WORDS):
        if parameter in known:
            return known[parameter]
    return ParameterWords("", "", "")
