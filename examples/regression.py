"""
Regression with a feature that follows the target
=================================================

The spurious features are consequences of the target, with a gain and an offset that differ between
environments. They predict well within an environment and mislead in the next. `ISRRegressor`
compares the means of the environments and needs no classes.

In test the spurious features are permuted: a change that no training environment shows. By default
`ISRRegressor` removes what misleads in held-out training environments, which cannot reveal it, so
the removal is requested with ``compare="means"``.
"""

import matplotlib.pyplot as plt
import numpy as np

from isrlearn import ISRRegressor
from isrlearn.paper.datasets import make_regression_unit_test

errors = {"least squares": [], "ISR": []}
environments = range(2, 9)
for n_environments in environments:
    splits = make_regression_unit_test(
        n_environments=n_environments, n_spurious=3, anticausal=True, random_state=3
    )
    train, test = splits.train, splits.test
    for name, n_spurious in (("least squares", 0), ("ISR", "auto")):
        model = ISRRegressor(n_spurious=n_spurious, compare="means")
        model.fit(train.X, train.y, environments=train.environments)
        errors[name].append(np.mean((model.predict(test.X) - test.y) ** 2))

figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, values in errors.items():
    axis.plot(environments, values, marker="o", label=name)
    print(f"{name:>13}: " + "  ".join(f"{value:.4f}" for value in values))
axis.axhline(0.01, color="grey", linestyle=":", label="noise of the target")
axis.set(xlabel="environments", ylabel="mean squared error in test", ylim=(0, None))
axis.legend()
plt.show()
