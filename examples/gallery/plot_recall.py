"""
Recall held on a stream, and what it costs
==========================================

River's bundled stream of phishing sites (1,250 rows). A limit on recall moves the threshold row by row, so that
what was asked for comes out. Precision is the price. Every row is decided before it is learned.

Read more: :doc:`/adapters`.
"""

import matplotlib.pyplot as plt
import numpy as np
from river import datasets, linear_model, preprocessing

from bridle.adapters.river import ConstrainedClassifier, Recall

rows = list(datasets.Phishing())
labels = np.array([y for _, y in rows])


def decided(model):
    """What the model says of each row before it learns the row."""
    answers = []
    for x, y in rows:
        answers.append(bool(model.predict_one(x)))
        model.learn_one(x, y)
    return np.array(answers)


asked = [0.8, 0.9, 0.95]
models = {at_least: ConstrainedClassifier(constraints=[Recall(at_least=at_least)]) for at_least in asked}
alarms = {at_least: decided(model) for at_least, model in models.items()}
plain = decided(preprocessing.StandardScaler() | linear_model.LogisticRegression())

# %%
# ``limits_`` says what was asked, what came out, what is proved, and the price at the margin: how many more false
# alarms one more hit costs.

print(models[0.95].limits_)

# %%
# River's logistic regression has no such knob: its recall is what it is. On this stream its point even lies a
# little above the curve. The limit buys the choice of the point, and early: river comes near 90 % only after 300
# phishing sites. It does not buy a better curve.


def sides(answers):
    """Recall and precision."""
    return answers[labels].mean(), labels[answers].mean()


fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
points = np.array([sides(alarms[at_least]) for at_least in asked])
left.plot(*points.T, "o-", color="#0072B2", label="bridle, recall asked for")
for at_least, (recall, precision) in zip(asked, points, strict=True):
    left.annotate(f"{at_least:g}", (recall, precision), textcoords="offset points", xytext=(5, 5))
left.plot(*sides(plain), "s", color="#D55E00", label="river's logistic regression")
left.set(xlabel="recall (measured)", ylabel="precision (measured)", title="What each asked recall costs")
left.legend()
counted = np.cumsum(labels)
right.plot(100 * np.cumsum(labels & alarms[0.9])[labels] / counted[labels], color="#0072B2", label="asked: 90 %")
right.plot(100 * np.cumsum(labels & plain)[labels] / counted[labels], color="#D55E00", label="river, nothing asked")
right.axhline(90, color="black", linestyle="--", linewidth=1)
right.set(xlabel="phishing sites so far", ylabel="found so far (%)", title="Recall over the stream", ylim=(50, 101))
right.legend()
plt.show()
