"""`bridle fraud`: what cannot be run is refused in one line, for either protocol."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--protocol", "papers"), "unknown protocol 'papers'; did you mean paper?"),
        (("--variant", "cod"), "unknown variant 'cod'; did you mean code?"),
        (("--lambdas", "0"), "lambdas must be above 0, not 0"),
        (("--lambdas", "0.1,x"), "lambdas must be a number, not 'x'"),
        (("--lambdas", "0.1,0.1"), "lambdas must differ"),
        (("--lambdas", ","), "lambdas must hold at least one number"),
        (("--lambdas", "1:0.1:5"), "from a smaller to a larger one"),
        (("--lambdas", "0.1:1:1"), "lambdas must be 2 or above"),
        (("--seeds", "0"), "seeds must be 1 or above, not 0"),
        (("--engine", "fortran"), "unknown engine 'fortran'"),
        (("--out", " "), "--out must name a folder"),
        (("--data", "/nowhere/creditcard.csv"), "there is no such file"),
        (("--json", "/nowhere/facts.json"), "there is no folder /nowhere"),
        (("--protocol", "stream", "--lambdas", "0.1"), "--lambdas is for protocol paper"),
        (("--protocol", "stream", "--variant", "text"), "--variant is for protocol paper"),
        (("--protocol", "stream", "--engine", "abacus"), "unknown engine 'abacus'"),
        (("--protocol", "stream", "--out", ""), "--out must name a folder"),
        (("--protocol", "stream", "--data", "nowhere.csv"), "there is no such file"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, options, message):
    status, out, err = run("fraud", "--out", tmp_path, *options)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
