"""
Environments known for one row in ten
=====================================

The paper is known for a tenth of the digits. Rows without an environment are still used for the
head; `infer_environments` predicts the missing environments from the rows that have one.
"""

import matplotlib.pyplot as plt
import numpy as np

from isrlearn import ISRClassifier, diagnose, infer_environments
from isrlearn.datasets import load_digits_on_paper
from isrlearn.displays import GroupDisplay

splits = load_digits_on_paper()
train, test = splits.train, splits.test

rng = np.random.default_rng(0)
known = train.environments.astype(object)
known[rng.random(len(known)) > 0.1] = None
filled = infer_environments(train.X, train.y, environments=known, random_state=0)
print(f"filled in correctly: {np.mean(filled == train.environments):.1%}")


# %%
# The subspace is found from the rows whose environment is given, the head from all of them. A tenth
# of the labels leaves next to nothing of the rare groups, so the labels alone do not help here.
def predicted(environments, **parameters):
    """Predictions of the test rows after a fit."""
    clf = ISRClassifier(**parameters).fit(train.X, train.y, environments=environments)
    return clf.predict(test.X)


models = {
    "nothing removed": predicted(train.environments, n_spurious=0),
    "a tenth of labels": predicted(known, n_spurious=1),
    "the rest filled in": predicted(filled),
    "all labels": predicted(train.environments),
}
display = GroupDisplay.from_predictions(test.y, models, test.environments)
for name, report in display.reports.items():
    print(f"{name:<20} {report.worst:.3f}")
plt.show()

# %%
# The diagnosis says whether the labels are enough, before any fit.
for sentence in diagnose(train.X, train.y, known, compare=False).findings:
    print("-", sentence)
