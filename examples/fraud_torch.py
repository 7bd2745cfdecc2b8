"""Card fraud with a network in PyTorch: the loss on legitimate transactions is the cost, that on frauds a constraint."""

import sys

import torch
from sklearn.metrics import roc_auc_score

from bridle import data
from bridle.adapters.scaling import past_scaled
from bridle.adapters.torch import ConstrainedOptimizer


def main(rows: int = 30_000, batch: int = 50) -> dict[str, float]:
    """Score each batch before it is learned; the average loss on its frauds should be 0.3 or less."""
    table = data.load("creditcard")
    X = torch.tensor(past_scaled(table.values[:rows, 1:-1]).clip(-5.0, 5.0), dtype=torch.float32)
    y, scores = torch.tensor(table["Class"][:rows], dtype=torch.float32), []
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 10), torch.nn.Sigmoid(), torch.nn.Linear(10, 1))
    optimizer = ConstrainedOptimizer(model.parameters(), radius=5.0)
    for rows_now, labels in zip(X.split(batch), y.split(batch), strict=True):
        out = model(rows_now)[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out, labels, reduction="none")
        scores.append(out.detach())
        optimizer.step((loss * (1.0 - labels)).mean(), (labels * (loss - 0.3)).sum() / labels.sum().clamp(min=1.0))
    return {"auc": float(roc_auc_score(y, torch.cat(scores))), "ccv": optimizer.ccv}


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
