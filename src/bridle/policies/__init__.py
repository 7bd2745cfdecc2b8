"""Policies for constrained online convex optimisation: functions that make them, one file a paper, and the registry of their names.

To add a policy: write one file here, with a function that is `registered`, and add it to the list below. The checks, the command line and
the documentation's tables read the registry.
"""

# The order of the tables: the paper's own, then those it compares itself with.
# isort: off
from bridle.policies.registry import (
    Configured,
    Through,
    entry,
    known,
    names,
    parameters,
    policy,
    register,
    registered,
    shared_parameters,
)
from bridle.policies.entry import Configuration, Entry, Parameter, Setting, Variant, described
from bridle.policies._sinha2024 import sinha2024, sinha2024_strong
from bridle.policies._sinha2024_ocs import sinha2024_ocs
from bridle.policies._anytime import anytime
from bridle.policies._anytime_entropy import anytime_entropy
from bridle.policies._dynamic import dynamic
from bridle.policies._optimistic import optimistic
from bridle.policies._soft import soft
from bridle.policies._rate import rate
from bridle.policies._experts import experts
from bridle.policies._mahdavi2012 import mahdavi2012
from bridle.policies._jenatton2016 import jenatton2016
from bridle.policies._sun2017 import sun2017
from bridle.policies._neely2017 import neely2017
from bridle.policies._liakopoulos2019 import liakopoulos2019
from bridle.policies._yuan2018 import yuan2018, yuan2018_strong
from bridle.policies._yu2020 import yu2020
from bridle.policies._yi2021 import yi2021
from bridle.policies._yi2021_dynamic import yi2021_dynamic
from bridle.policies._yi2022 import yi2022
from bridle.policies._guo2022 import guo2022, guo2022_strong
from bridle.policies._yi2023 import yi2023, yi2023_strong
from bridle.policies._sinha2023 import banditq
from bridle.policies._vaze2025 import vaze2025, vaze2025_strong
from bridle.policies._hutchinson2025 import hutchinson2025
from bridle.policies._sarkar2025 import sarkar2025
from bridle.policies._yu2026 import yu2026
from bridle.policies._wang2025 import wang2025, wang2025_squared
from bridle.policies._steiner import steiner
from bridle.policies._unconstrained import adaftrl, adagrad, adahedge, ftpl, mlpoly, ogd, ons, track
from bridle.policies._bandit2 import bandit2
from bridle.policies._bandit1 import bandit1
# isort: on

__all__ = [
    "Configuration", "Configured", "Entry", "Parameter", "Setting", "Through", "Variant", "adaftrl", "adagrad", "adahedge", "anytime",
    "anytime_entropy", "bandit1", "bandit2", "banditq", "described", "dynamic", "entry", "experts", "ftpl", "guo2022", "guo2022_strong",
    "hutchinson2025", "jenatton2016", "known", "liakopoulos2019", "mahdavi2012", "mlpoly", "names", "neely2017", "ogd", "ons",
    "optimistic", "parameters", "policy", "rate", "register", "registered", "sarkar2025", "shared_parameters", "sinha2024",
    "sinha2024_ocs", "sinha2024_strong", "soft", "steiner", "sun2017", "track", "vaze2025", "vaze2025_strong", "wang2025",
    "wang2025_squared", "yi2021", "yi2021_dynamic", "yi2022", "yi2023", "yi2023_strong", "yu2020", "yu2026", "yuan2018",
    "yuan2018_strong",
]  # fmt: skip
