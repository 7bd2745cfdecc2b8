"""Constraints around torch's own optimisers: limits hold on average, one backward pass, and every way to train that torch has."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler

from bridle import InputError
from bridle.adapters.torch import ConstrainedOptimizer
from helpers.torch_networks import losses, network

torch.set_num_threads(1)  # small batches: more threads only wait for each other

OPTIMIZERS = {
    "Adam": lambda params: torch.optim.Adam(params, lr=0.01),
    "AdamW": lambda params: torch.optim.AdamW(params, lr=0.01, weight_decay=0.1),
    "SGD": lambda params: torch.optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
    "Adagrad": lambda params: torch.optim.Adagrad(params, lr=0.05),
    "RMSprop": lambda params: torch.optim.RMSprop(params, lr=0.01),
    "LBFGS": lambda params: torch.optim.LBFGS(params, lr=0.05, max_iter=2),
}
FIRST_ORDER = [name for name in OPTIMIZERS if name != "LBFGS"]


def train(model, optimizer, rounds, constraints=1):
    for seed in rounds:
        optimizer.step(lambda seed=seed: losses(model, seed, constraints))
    return weights(model)


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


def assert_same(mine, theirs):
    for p, q in zip(mine, theirs, strict=True):
        torch.testing.assert_close(p, q, rtol=0.0, atol=0.0)


# --- what a step is ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_a_step_is_the_optimisers_own_on_the_weighted_cost(name):
    """Against the loop by hand, with the multipliers written out: bit for bit."""
    model, by_hand = network(), network()
    optimizer, plain = ConstrainedOptimizer(OPTIMIZERS[name](model.parameters()), constraints=2), OPTIMIZERS[name](by_hand.parameters())
    q, squares, slopes, measured, bound = np.zeros(2), np.zeros(2), np.zeros((2, 2)), 0, 0
    for t in range(1, 41):
        cost, limits = losses(by_hand, t, 2)
        if t >= 2 * measured:
            lengths = [squared(value, by_hand) for value in (cost, *limits)]
            slopes += (t - measured) * np.array([[lengths[0], lengths[0]], lengths[1:]])
            measured = t
        pi = np.sqrt(slopes[0]) / np.sqrt(slopes[1])
        g = np.array([limit.item() for limit in limits])
        squares += g * g
        h = np.maximum(q + 0.5 * np.clip(g * np.sqrt(t) / np.sqrt(squares), -1.0, 1.0), 0.0)
        share = 1.0 / (1.0 + h.sum())
        total = cost if share == 1.0 else share * cost
        for weight, limit in zip((share * (pi * h)).tolist(), limits, strict=True):
            total = total if weight == 0.0 else total + weight * limit
        plain.zero_grad()
        total.backward()
        plain.step()
        q = np.maximum(q + g / np.sqrt(squares), 0.0)
        optimizer.step(*losses(model, t, 2))
        assert optimizer.weights.cost == 1.0 / (1.0 + q.sum())
        bound += h.sum() > 0.0
    assert bound > 10
    assert_same(weights(model), weights(by_hand))


def squared(value, model):
    parts = torch.autograd.grad(value, list(model.parameters()), retain_graph=True, allow_unused=True)
    norms = [torch.linalg.vector_norm(part) for part in parts if part is not None]
    return float(torch.linalg.vector_norm(torch.stack(norms))) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST_ORDER)
def test_constraints_hold_on_average_and_free_training_breaks_them(name):
    free, held = network(), network()
    alone, optimizer = OPTIMIZERS[name](free.parameters()), ConstrainedOptimizer(OPTIMIZERS[name](held.parameters()))
    values = {"free": [], "held": []}
    for seed in range(300):
        cost, (limit,) = losses(free, seed)
        values["free"].append(limit.item())
        alone.zero_grad()
        cost.backward()
        alone.step()
        cost, (limit,) = losses(held, seed)
        values["held"].append(limit.item())
        optimizer.step(cost, limit)
    assert np.mean(values["free"][150:]) > 0.5
    assert abs(np.mean(values["held"][150:])) < 0.1
    assert optimizer.ccv == pytest.approx(np.maximum(values["held"], 0.0).sum())


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_limits_that_never_bind_leave_the_optimiser_alone(name):
    model, plain = network(), network()
    optimizer, alone = ConstrainedOptimizer(OPTIMIZERS[name](model.parameters())), OPTIMIZERS[name](plain.parameters())
    for seed in range(20):
        cost, (limit,) = losses(model, seed)
        optimizer.step(cost, limit - 100.0)
        alone.zero_grad()
        losses(plain, seed)[0].backward()
        alone.step()
    assert_same(weights(model), weights(plain))


def test_a_step_makes_one_backward_pass_but_when_it_measures():
    passes = []

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            passes.append(1)
            return grad

    model, counts = network(), []
    optimizer = ConstrainedOptimizer(torch.optim.Adam(model.parameters()))
    for _ in range(70):
        out = Counted.apply(model(torch.ones(1, 5, dtype=torch.float64))).sum()
        passes.clear()
        optimizer.step((out - 2.0) ** 2, out - 0.5)
        counts.append(len(passes))
    assert [t for t, count in enumerate(counts, 1) if count > 1] == [1, 2, 4, 8, 16, 32, 64]
    assert max(counts) == 3


def test_lbfgs_evaluates_with_the_same_weights_and_no_more_often():
    model, by_hand, calls = network(), network(), {"mine": 0, "hand": 0}
    optimizer, plain = ConstrainedOptimizer(OPTIMIZERS["LBFGS"](model.parameters())), OPTIMIZERS["LBFGS"](by_hand.parameters())

    def mine():
        calls["mine"] += 1
        return losses(model, 0)

    for _ in range(5):
        optimizer.weighted(*losses(model, 0))
        share = optimizer.weights

        def hand(share=share):
            calls["hand"] += 1
            plain.zero_grad()
            cost, (limit,) = losses(by_hand, 0)
            total = by_weight(share, cost, limit)
            total.backward()
            return total

        plain.step(hand)
        optimizer.step(mine)
    assert calls["mine"] == calls["hand"] >= 10
    assert_same(weights(model), weights(by_hand))
    with pytest.raises(InputError, match="LBFGS evaluates the cost several times a step: give step a function"):
        optimizer.step(*losses(model, 0))


def test_lbfgs_keeps_a_limit_on_one_batch():
    model = network()
    optimizer = ConstrainedOptimizer(torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3))
    found = []
    for _ in range(80):
        optimizer.step(lambda: losses(model, 0))
        found.append(losses(model, 0)[1][0].item())
    assert losses(network(), 0)[0] > losses(model, 0)[0]  # it learned
    assert abs(np.mean(found[40:])) < 0.05


def by_weight(share, cost, limit=None):
    total = cost if share.cost == 1.0 else share.cost * cost
    return total if limit is None or share.limits[0] == 0.0 else total + float(share.limits[0]) * limit


# --- every way to train -----------------------------------------------------------------------------------------------------------------


def test_weighted_backward_step_is_a_step():
    one, two = network(), network()
    first, second = (ConstrainedOptimizer(torch.optim.Adam(m.parameters(), lr=0.01)) for m in (one, two))
    for seed in range(20):
        first.step(*losses(one, seed))
        second.zero_grad()
        second.weighted(*losses(two, seed)).backward()
        assert second.step() is None
    assert_same(weights(one), weights(two))
    assert first.state_dict()["bridle"] == second.state_dict()["bridle"]


def test_gradients_can_be_clipped_before_the_step():
    one, two = network(), network()
    first, plain = ConstrainedOptimizer(torch.optim.SGD(one.parameters(), lr=0.1)), torch.optim.SGD(two.parameters(), lr=0.1)
    bound = 0
    for seed in range(100):
        first.zero_grad()
        first.weighted(*losses(one, seed)).backward()
        share = first.weights
        torch.nn.utils.clip_grad_norm_(one.parameters(), 0.1)
        first.step()
        plain.zero_grad()
        cost, (limit,) = losses(two, seed)
        by_weight(share, cost, limit).backward()
        bound += share.cost < 1.0
        torch.nn.utils.clip_grad_norm_(two.parameters(), 0.1)
        plain.step()
    assert bound > 10
    assert_same(weights(one), weights(two))


def test_parts_of_a_batch_add_up_to_one_step():
    model, by_hand = network(), network()
    optimizer, plain = ConstrainedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01)), torch.optim.Adam(by_hand.parameters(), lr=0.01)
    seen = []
    for batch in range(15):
        parts = range(4 * batch, 4 * batch + 4)
        optimizer.zero_grad()
        plain.zero_grad()
        values = []
        for seed in parts:
            cost, limits = losses(model, seed)
            silent = seed % 4 == 2  # one part says nothing of the limit
            (optimizer.weighted(cost, [None] if silent else limits) / 4).backward()
            share = optimizer.weights
            cost, (limit,) = losses(by_hand, seed)
            (by_weight(share, cost, None if silent else limit) / 4).backward()
            values += [] if silent else [limit.item()]
        optimizer.step()
        plain.step()
        seen.append(sum(values) / 3)
    assert optimizer.rounds == 15
    assert optimizer.violations[0] == pytest.approx(np.maximum(seen, 0.0).sum(), rel=1e-12)
    assert_same(weights(model), weights(by_hand))


@pytest.mark.parametrize("enabled", [True, False])
def test_a_gradient_scaler_scales_and_skips(enabled):
    model, plain = network(torch.float32), network(torch.float32)
    optimizer, other = (ConstrainedOptimizer(torch.optim.Adam(m.parameters(), lr=0.01)) for m in (model, plain))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, enabled=enabled)
    for seed in range(20):
        optimizer.zero_grad()
        cost, limits = losses(model, seed)
        overflows = enabled and seed == 5  # not where gradients are measured
        scaler.scale(optimizer.weighted(cost, limits)).backward()
        if overflows:
            next(model.parameters()).grad[0, 0] = float("inf")
        before = weights(model)
        scaler.step(optimizer)
        scaler.update()
        if overflows:
            assert_same(weights(model), before)
            assert scaler.get_scale() == 2.0**9
        else:
            other.step(*losses(plain, seed))  # powers of two scale without rounding
    assert optimizer.rounds == (19 if enabled else 20)
    assert_same(weights(model), weights(plain))
    assert optimizer.violations == other.violations


SCHEDULES = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 5, 0.5),
    "Cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 20),
    "OneCycle": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    "Plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=2),
    "Lambda": lambda o: lr_scheduler.LambdaLR(o, lambda t: 0.9**t),
    "Sequential": lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ConstantLR(o, 0.5, 5), lr_scheduler.ExponentialLR(o, 0.9)], [5]),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_moves_the_learning_rate_of_the_wrapped_optimiser(schedule):
    model, inner = network(), network()
    outside = ConstrainedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    inside = ConstrainedOptimizer(torch.optim.SGD(inner.parameters(), lr=0.1, momentum=0.9))
    around, within = SCHEDULES[schedule](outside), SCHEDULES[schedule](inside.wrapped)
    rates = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "call optimizer.step() before lr_scheduler.step()"
        for seed in range(19):
            outside.step(*losses(model, seed))
            inside.step(*losses(inner, seed))
            for each in (around, within):
                each.step(*[1.0] if schedule == "Plateau" else [])
            rates.append(outside.wrapped.param_groups[0]["lr"])
    assert min(rates) < 0.9 * max(rates)
    assert outside.param_groups[0]["lr"] == inside.param_groups[0]["lr"]
    assert_same(weights(model), weights(inner))


@pytest.mark.compiles
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_model_trains_as_the_plain_one(backend):
    model, plain = network(), network()
    compiled = torch.compile(model, backend=backend)
    first, second = (ConstrainedOptimizer(torch.optim.Adam(m.parameters(), lr=0.01)) for m in (model, plain))
    for seed in range(10):
        rows = torch.from_numpy(np.random.default_rng(seed).standard_normal((16, 5)))
        for run, optimizer in ((compiled, first), (plain, second)):
            out = run(rows)[:, 0]
            optimizer.step((out - 2.0).square().mean(), out.mean() - 0.5)
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-12, atol=1e-12)


def test_sparse_gradients_and_frozen_weights_are_taken_as_they_are():
    torch.manual_seed(0)
    table = torch.nn.Embedding(10, 3, sparse=True)
    optimizer = ConstrainedOptimizer(torch.optim.SparseAdam(table.parameters(), lr=0.1))
    for t in range(60):
        out = table(torch.tensor([t % 5]))
        optimizer.step((out - 2.0).square().mean(), out.mean() - 1.0)
    assert table.weight[:5].mean() < 1.4
    model = network()
    model[0].bias.requires_grad_(False)
    start = model[0].bias.clone()
    train(model, ConstrainedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01)), range(10))
    assert torch.equal(model[0].bias, start)


# --- saving -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_goes_on_as_if_it_had_not_been_saved(name):
    whole = network()
    end = train(whole, ConstrainedOptimizer(OPTIMIZERS[name](whole.parameters()), constraints=2), range(40), 2)
    model = network()
    optimizer = ConstrainedOptimizer(OPTIMIZERS[name](model.parameters()), constraints=2)
    train(model, optimizer, range(20), 2)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    fresh = network()
    again = ConstrainedOptimizer(OPTIMIZERS[name](fresh.parameters()), constraints=2)
    again.load_state_dict(saved["optimizer"])
    fresh.load_state_dict(saved["model"])
    copies = [(fresh, again)]
    if name != "LBFGS":  # which torch cannot copy
        copies += [copy.deepcopy((model, optimizer)), pickle.loads(pickle.dumps((model, optimizer)))]
    for other, its in copies:
        assert isinstance(its, ConstrainedOptimizer)
        assert its.rounds == 20
        assert its.violations == optimizer.violations
        assert its.param_groups is its.wrapped.param_groups
        assert_same(train(other, its, range(20, 40), 2), end)


def test_groups_can_be_added_and_hooks_are_called():
    model, called = network(), []
    optimizer = ConstrainedOptimizer(torch.optim.SGD(model[0].parameters(), lr=0.1))
    optimizer.add_param_group({"params": model[2].parameters(), "lr": 0.01})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.01]
    optimizer.register_step_pre_hook(lambda *_: called.append("before"))
    optimizer.register_step_post_hook(lambda *_: called.append("after"))
    optimizer.register_state_dict_post_hook(lambda its, state: called.append("saved"))
    optimizer.register_load_state_dict_pre_hook(lambda its, state: called.append("loading"))
    start = weights(model)
    train(model, optimizer, range(1))
    optimizer.load_state_dict(optimizer.state_dict())
    assert called == ["before", "after", "saved", "loading"]
    assert all(not torch.equal(p, q) for p, q in zip(weights(model), start, strict=True))


# --- what cannot be done is said --------------------------------------------------------------------------------------------------------


def test_a_bad_step_changes_nothing():
    model = network()
    optimizer = ConstrainedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01))
    train(model, optimizer, range(3))
    before, saved = weights(model), optimizer.state_dict()["bridle"]
    for make, said in [
        (lambda f, g: (f * float("nan"), g), "cost must be finite"),
        (lambda f, g: (f, g + float("inf")), r"constraints\[0\] must be finite"),
        (lambda f, g: (f + (f - f.detach()).abs().sqrt(), g), "gradient of .* must be finite"),
        (lambda f, g: (f, [g, g]), "1 constraint, not 1 and 2"),
        (lambda f, g: (f, None), "1 constraint, not 1 and 0"),
        (lambda f, g: (f, ["text"]), "scalar tensors"),
        (lambda f, g: (lambda: f,), "must return the cost and the constraints, and not call backward"),
        (lambda f, g: (), r"weighted\(cost, constraints\)\.backward\(\) before step\(\), in place of cost\.backward"),
    ]:
        cost, (limit,) = losses(model, 3)
        with pytest.raises(InputError, match=said):
            optimizer.step(*make(cost, limit))
    cost, _ = losses(model, 3)
    cost.backward()
    with pytest.raises(InputError, match="in place of cost"):
        optimizer.step()
    assert_same(weights(model), before)
    after = optimizer.state_dict()["bridle"]
    assert after == saved


def test_what_cannot_be_wrapped_is_said():
    def adam():
        return torch.optim.Adam(network().parameters())

    with pytest.raises(InputError, match="settings of bridle's own steps"):
        ConstrainedOptimizer(adam(), radius=3.0)
    with pytest.raises(InputError, match="settings of bridle's own steps"):
        ConstrainedOptimizer(adam(), 3.0)
    with pytest.raises(InputError, match="maximize=True cannot be wrapped"):
        ConstrainedOptimizer(torch.optim.Adam(network().parameters(), maximize=True))
    with pytest.raises(InputError, match="constraints must be 1 or above"):
        ConstrainedOptimizer(adam(), constraints=0)
    optimizer = ConstrainedOptimizer(adam())
    for state in (adam().state_dict(), ConstrainedOptimizer(adam(), constraints=2).state_dict()):
        with pytest.raises(InputError, match="state_dict must be that of"):
            optimizer.load_state_dict(state)
    optimizer.wrapped.load_state_dict(adam().state_dict())


def test_a_policy_says_what_to_do_where_torch_expects_an_optimiser_of_its_own():
    model = network()
    with pytest.raises(InputError, match=r"radius must be given with parameters.*torch\.optim\.Adam"):
        ConstrainedOptimizer(model.parameters())
    optimizer = ConstrainedOptimizer(model.parameters(), radius=2.0)
    copies = [optimizer, copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    optimizer.load_state_dict(optimizer.state_dict())
    for own in copies:
        with pytest.raises(InputError, match=r"no learning rate to schedule.*torch\.optim\.SGD"):
            lr_scheduler.StepLR(own, 5)
        assert "lr" not in own.param_groups[0]
    cost, _ = losses(model, 0)
    cost.backward()
    with pytest.raises(InputError, match=r"no backward.*GradScaler.*torch\.optim\.SGD"):
        optimizer.step()
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(losses(model, 0)[0]).backward()
    with pytest.raises(InputError, match="GradScaler"):
        scaler.step(optimizer)


def test_a_step_that_says_nothing_of_a_limit_does_not_count_for_it():
    model, plain = network(), network()
    optimizer, own = (
        ConstrainedOptimizer(torch.optim.Adam(model.parameters()), constraints=2),
        ConstrainedOptimizer(plain.parameters(), radius=2.0, constraints=2),
    )
    for seed in range(10):
        for m, each in ((model, optimizer), (plain, own)):
            cost, limits = losses(m, seed, 2)
            each.step(cost, [None if seed % 3 else limits[0], limits[1]])
    assert optimizer.state_dict()["bridle"]["duals"]["multipliers.counted"] == [4.0, 10.0]
    assert own.rounds == 10
