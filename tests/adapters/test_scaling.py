"""Scaling by the past alone: the same one row at a time and all at once, and never with what comes later."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle import InputError
from bridle.adapters import scaling


def one_by_one(table, scale=None):
    scale, rows = scale or scaling.Scale(table.shape[1]), []
    for row in table:
        rows.append(scale.apply(row))
        scale = scale.learn(row)
    return np.array(rows), scale


def table_of(seed, rows, dim):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((rows, dim)) * 10.0 ** rng.integers(-6, 7, dim) + 10.0 ** rng.integers(-6, 7, dim)
    table[:, 0] = np.round(rng.random(rows))  # a switch, and one that never moves
    table[:, -1] = 0.1
    return table


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 5))
def test_row_by_row_and_all_at_once_agree(seed, rows, dim):
    table = table_of(seed, rows, dim)
    alone, _ = one_by_one(table)
    np.testing.assert_allclose(scaling.past_scaled(table), alone, rtol=1e-12, atol=1e-12)


def test_it_is_the_mean_and_deviation_of_the_rows_before():
    table = table_of(4, 40, 4)
    scaled = scaling.past_scaled(table)
    for t in range(2, 40):
        moved = np.ptp(table[:t], axis=0) > 0.0
        past = table[:t, moved]
        np.testing.assert_allclose(scaled[t, moved], (table[t, moved] - past.mean(axis=0)) / past.std(axis=0), rtol=1e-9, atol=1e-9)
        assert not scaled[t, ~moved].any()
    changed = table.copy()
    changed[30:] += 5.0  # what comes later makes no difference to what came before
    np.testing.assert_array_equal(scaling.past_scaled(changed)[:30], scaled[:30])


def test_a_large_offset_costs_no_precision():
    noise = np.random.default_rng(0).standard_normal((500, 1))
    np.testing.assert_allclose(scaling.past_scaled(noise + 2.0**30)[2:], scaling.past_scaled(noise)[2:], atol=1e-5)


@pytest.mark.parametrize("bad", [[1.0, 2.0], [[np.nan]], [[]], "rows"])
def test_what_is_no_table_is_refused(bad):
    with pytest.raises(InputError, match="X must"):
        scaling.past_scaled(bad)
