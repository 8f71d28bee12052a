"""
Ask before fitting
==================

`diagnose` compares ISR with plain and balanced models by cross-validation, predicts whether it will
help, and says which facts explain that: here on images with a shortcut, on data where nothing
shifts, and with too few environments.
"""

import matplotlib.pyplot as plt
import numpy as np

from isrlearn import ISRClassifier, diagnose
from isrlearn.datasets import load_digits_on_paper, make_gaussian_environments
from isrlearn.displays import GroupDisplay

train = load_digits_on_paper().train
diagnosis = diagnose(train.X, train.y, train.environments)
print(diagnosis)
GroupDisplay(diagnosis.comparison.reports).plot()
plt.show()

# %%
# The recommended parameters can be used directly.
advice = diagnosis.recommendation
clf = ISRClassifier(**advice.parameters)
clf.fit(train.X, train.y, environments=train.environments)
print(advice.parameters)

# %%
# With shuffled environments nothing shifts between them any more.
data = make_gaussian_environments(1_000, 4, n_spurious=2, random_state=0)
shuffled = np.random.default_rng(0).permutation(data.environments)
found = diagnose(data.X, data.y, shuffled, compare=False)
print(found.means.p_value, found.means.n_dimensions)

# %%
# Two environments cannot show what six would.
data = make_gaussian_environments(1_000, 2, n_spurious=4, sigma_spurious=1.0, random_state=0)
print(diagnose(data.X, data.y, data.environments, compare=False).findings)
