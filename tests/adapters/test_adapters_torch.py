"""The optimiser for PyTorch: limits hold, one backward pass, groups, saving and going on, and nothing changes on bad input."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest
import torch

from bridle import InputError, policies
from bridle.adapters.torch import ConstrainedOptimizer
from helpers.torch_networks import losses, network

torch.set_num_threads(1)  # small batches: more threads only wait for each other

ONE_PASS = {"form": "value", "lipschitz": 1.0, "V": 0.01, "halfspace": False}
GIVEN = {"horizon": 200, "lipschitz": 2.0, "modulus": 0.1, "bound": 2.0, "slater": 0.1, "window": 5, "exp_concavity": 0.1}
SETTINGS = {
    "default": {},
    "distance": {"parameters": {}},
    "no halfspaces": {"parameters": {"halfspace": False}},
    "one pass": {"parameters": ONE_PASS},
    "memories": {"parameters": {"window": "auto"}},
    "sinha2024": {"policy": "sinha2024", "parameters": {"horizon": 200, "lipschitz": 2.0, "preset": "practice"}},
    "ftrl": {"policy": "sinha2024", "parameters": {"horizon": 200, "lipschitz": 2.0, "learner": "adaftrl"}},
    "ocs": {"policy": "sinha2024-ocs"},
    "neely2017": {"policy": "neely2017", "parameters": {"horizon": 200, "lipschitz": 2.0, "bound": 2.0}},
    "soft": {"policy": "soft"},
}


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


def train(model, optimizer, rounds, constraints=1):
    for seed in rounds:
        optimizer.step(*losses(model, seed, constraints))
    return [p.detach().clone() for p in model.parameters()]


@pytest.mark.slow
@pytest.mark.parametrize("case", SETTINGS)
def test_it_goes_on_as_if_it_had_not_been_saved(case, dtype):
    whole = network(dtype)
    end = train(whole, ConstrainedOptimizer(whole.parameters(), radius=2.0, constraints=2, **SETTINGS[case]), range(40), 2)
    model = network(dtype)
    optimizer = ConstrainedOptimizer(model.parameters(), radius=2.0, constraints=2, **SETTINGS[case])
    train(model, optimizer, range(20), 2)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    torch.manual_seed(9)
    fresh = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(dtype)  # starts elsewhere
    again = ConstrainedOptimizer(fresh.parameters(), radius=2.0, constraints=2, **SETTINGS[case])
    again.load_state_dict(saved["optimizer"])
    fresh.load_state_dict(saved["model"])
    assert again.rounds == 20
    assert again.ccv == optimizer.ccv
    for mine, theirs in zip(train(fresh, again, range(20, 40), 2), end, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("case", ["default", "distance", "one pass", "sinha2024", "ocs"])
def test_constraints_are_kept_better_than_by_descent_alone(case):
    free, bound = network(), network()
    alone, optimizer = torch.optim.SGD(free.parameters(), lr=0.1), ConstrainedOptimizer(bound.parameters(), radius=3.0, **SETTINGS[case])
    ignored = 0.0
    for seed in range(150):
        cost, (limit,) = losses(free, seed)
        ignored += max(limit.item(), 0.0)
        alone.zero_grad()
        cost.backward()
        alone.step()
    train(bound, optimizer, range(150))
    assert optimizer.rounds == 150
    assert optimizer.ccv < 0.8 * ignored


def test_what_needs_one_backward_pass_makes_one():
    passes = []

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            passes.append(1)
            return grad

    counts = {}
    for case in ("default", "one pass", "sinha2024", "ocs", "no halfspaces", "distance"):
        model = network()
        optimizer = ConstrainedOptimizer(model.parameters(), radius=1.0, **SETTINGS[case])
        found = []
        for shift in (1.0, 1.0, -9.0):  # violated, violated, satisfied
            out = Counted.apply(model(torch.ones(1, 5, dtype=torch.float64))).sum()
            passes.clear()
            optimizer.step((out - 2.0) ** 2, out * 0.0 + out + shift - out.detach())
            found.append(len(passes))
        counts[case] = found
    # The default looks at both gradients once; by distance a violated constraint takes a pass of its own.
    assert counts == {
        "default": [3, 1, 1], "one pass": [1, 1, 1], "sinha2024": [1, 1, 1], "ocs": [1, 1, 0],
        "no halfspaces": [2, 2, 1], "distance": [2, 2, 2],
    }  # fmt: skip


def test_the_scales_of_cost_and_constraint_do_not_matter_by_default():
    ends = []
    for scale in (1.0, 1e-3, 1e4):
        model = network()
        optimizer = ConstrainedOptimizer(model.parameters(), radius=2.0)
        for seed in range(50):
            cost, (limit,) = losses(model, seed)
            optimizer.step(scale * cost, limit / scale)
        ends.append(torch.cat([p.detach().reshape(-1) for p in model.parameters()]))
    torch.testing.assert_close(ends[1], ends[0])
    torch.testing.assert_close(ends[2], ends[0])


def test_a_closure_is_a_step_and_a_vector_is_constraints():
    one, two = network(), network()
    first, second = (ConstrainedOptimizer(m.parameters(), radius=2.0, constraints=3, parameters=ONE_PASS) for m in (one, two))
    for seed in range(10):
        cost, limits = losses(one, seed, 3)
        assert first.step(cost, torch.stack(limits)).item() == cost.item()
        with torch.no_grad():
            second.step(lambda seed=seed: losses(two, seed, 3))
    for p, q in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=0.0, atol=0.0)


def test_groups_have_a_ball_each_and_frozen_weights_stay():
    model = network()
    model[0].bias.requires_grad_(False)
    starts = [p.detach().clone() for p in model.parameters()]
    groups = [{"params": model[0].parameters(), "radius": 0.1}, {"params": model[2].parameters()}]
    train(model, ConstrainedOptimizer(groups, radius=1.5), range(60))
    moved = [(p.detach() - start).norm().item() for p, start in zip(model.parameters(), starts, strict=True)]
    assert moved[1] == 0.0
    assert 0.05 < moved[0] <= 0.1 + 1e-9
    assert 0.1 < np.hypot(moved[2], moved[3]) <= 1.5 + 1e-9


def test_the_weights_are_taken_as_they_are():
    """Edited, moved to other memory, copied: the optimiser goes on from what the module holds."""
    models = [network() for _ in range(3)]
    optimizers = [ConstrainedOptimizer(m.parameters(), radius=2.0, parameters=ONE_PASS) for m in models]
    for m, optimizer in zip(models, optimizers, strict=True):
        train(m, optimizer, range(5))
    for p in models[0].parameters():
        p.data.mul_(0.5)
    for p in models[1].parameters():
        p.data = p.data.clone() * 0.5
    with torch.no_grad():
        for p in models[2].parameters():
            p.mul_(0.5)
    models.append(models[0])
    both = copy.deepcopy((models[0], optimizers[0]))
    ends = [train(m, optimizer, range(5, 10)) for m, optimizer in [*zip(models[:3], optimizers, strict=True), both]]
    for end in ends[1:]:
        for mine, theirs in zip(end, ends[0], strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("case", ["default", "distance", "sinha2024"])
def test_a_loss_that_is_not_finite_changes_nothing(case):
    model = network()
    optimizer = ConstrainedOptimizer(model.parameters(), radius=2.0, **SETTINGS[case])
    train(model, optimizer, range(3))
    weights, before = [p.detach().clone() for p in model.parameters()], optimizer.state_dict()["bridle"]
    cost, (limit,) = losses(model, 3)
    for bad, said in [
        ((cost * float("nan"), limit), "cost must be finite"),
        ((cost, limit + float("inf")), r"constraints\[0\] must be finite"),
        ((cost + (cost - cost.detach()).abs().sqrt(), limit.abs()), "gradient of .* must be finite"),
        ((cost, [limit, limit]), "1 constraint, not 1 and 2"),
        ((cost, None), "1 constraint, not 1 and 0"),
        ((cost, ["text"]), "scalar tensors"),
    ]:
        with pytest.raises(InputError, match=said):
            optimizer.step(*bad)
        cost, (limit,) = losses(model, 3)
    after = optimizer.state_dict()["bridle"]
    for p, q in zip(model.parameters(), weights, strict=True):
        torch.testing.assert_close(p.detach(), q, rtol=0.0, atol=0.0)
    assert before.keys() == after.keys()
    assert all(torch.equal(torch.as_tensor(before["leaves"][name]), torch.as_tensor(after["leaves"][name])) for name in before["leaves"])
    assert before["rounds"] == after["rounds"] == 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"radius": 0.0}, "radius must be above 0"),
        ({"radius": 1e-3, "around": "origin"}, "radius must be larger than the weights"),
        ({"radius": 1.0, "around": "there"}, "around"),
        ({"radius": 1.0, "policy": "anytimes"}, "did you mean"),
        ({"radius": 1.0, "policy": "steiner", "parameters": {"horizon": 9}}, "engine 'python' only"),
        ({"radius": 1.0, "constraints": 0}, "constraints must be 1 or above"),
    ],
)
def test_what_cannot_be_used_is_refused(settings, said):
    with pytest.raises(InputError, match=said):
        ConstrainedOptimizer(network().parameters(), **settings)


@pytest.mark.parametrize("constraints", [1, 2])
def test_every_policy_runs_on_tensors_or_says_that_it_cannot(constraints):
    refused = []
    for name in (name for name in policies.names() if not policies.entry(name).domains):
        settings = {p.name: GIVEN[p.name] for p in policies.parameters(name) if p.required}
        model = network()
        try:
            optimizer = ConstrainedOptimizer(model.parameters(), 1.0, name, settings, constraints)
        except InputError as trouble:
            refused.append((name, str(trouble)))
            continue
        train(model, optimizer, range(4), constraints)
        assert all(bool(p.isfinite().all()) for p in model.parameters()), name
    blind = [(name, said) for name, said in refused if "sees values alone" in said]
    assert [name for name, _ in blind] == ["bandit2", "bandit1"]
    solved = [each for each in refused if each not in blind]
    assert [name for name, _ in solved] == (["yi2021", "yi2021-dynamic", "guo2022", "guo2022-strong"] if constraints == 2 else [])
    assert all("solver" in said for _, said in solved)


def test_a_state_of_another_kind_is_refused():
    model = network()
    optimizer = ConstrainedOptimizer(model.parameters(), radius=1.0)
    other = ConstrainedOptimizer(network().parameters(), radius=1.0, policy="sinha2024-ocs")
    for state in (other.state_dict(), torch.optim.SGD(network().parameters(), lr=0.1).state_dict()):
        with pytest.raises(InputError, match="state_dict must be that of"):
            optimizer.load_state_dict(state)
    with pytest.raises(InputError, match="cannot be added later"):
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))]})
    mixed = [torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))]
    with pytest.raises(InputError, match="one dtype"):
        ConstrainedOptimizer(mixed, radius=1.0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("case", SETTINGS)
def test_a_gpu_decides_as_the_processor_does(case):
    here, there = network(), network().cuda()
    ends = [
        train(m, ConstrainedOptimizer(m.parameters(), radius=2.0, constraints=2, **SETTINGS[case]), range(40), 2) for m in (here, there)
    ]
    for mine, theirs in zip(*ends, strict=True):
        torch.testing.assert_close(mine, theirs.cpu(), rtol=1e-6, atol=1e-6)
