"""Tens of thousands of hostile records into sessions of every policy: refused without a trace, or taken in without harm."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import hostile_records
from helpers.extent import examples
from helpers.hostile_records import BYTES, cases, play

RECORDS = 250
GROUPS, EXAMPLES = 4, examples(30, 100)
SCRIPTS = st.binary(min_size=RECORDS * BYTES, max_size=RECORDS * BYTES)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_what_is_refused_leaves_no_trace_and_what_is_accepted_no_harm(group):
    played = []

    @settings(max_examples=EXAMPLES)
    @given(st.sampled_from(cases()[group::GROUPS]), SCRIPTS)
    def torment(case, script):
        played.append(play(case, script)["records"])

    torment()
    assert sum(played) >= EXAMPLES * RECORDS


@pytest.mark.compiles
def test_compiled_rounds_are_tormented_too():
    @settings(max_examples=examples(4, 20))
    @given(st.sampled_from(["anytime", "sinha2024", "soft", "ogd"]), st.integers(1, 2), SCRIPTS)
    def torment(policy, k, script):
        play(hostile_records.Case(policy, k, engine="compiled"), script)

    torment()


def test_a_script_holds_what_is_accepted_and_what_is_refused():
    counts = play(hostile_records.Case("anytime"), bytes(i * i * 31 % 251 for i in range(RECORDS * BYTES)))
    assert counts["accepted"] > 50
    assert counts["refused"] > 50
