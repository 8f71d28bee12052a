"""
Environments known for one row in ten
=====================================

The paper is known for a tenth of the digits. Rows without an environment are still used for the
head; `infer_environments` predicts the missing environments from the rows that have one.
"""

import numpy as np

from isrlearn import ISRClassifier, diagnose, infer_environments
from isrlearn.datasets import load_digits_on_paper
from isrlearn.metrics import worst_group_accuracy

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
def worst(environments, **parameters):
    """Accuracy of the worst test group after a fit."""
    clf = ISRClassifier(**parameters).fit(train.X, train.y, environments=environments)
    return worst_group_accuracy(test.y, clf.predict(test.X), test.environments)


print(f"nothing removed      {worst(train.environments, n_spurious=0):.3f}")
print(f"a tenth of labels    {worst(known, n_spurious=1):.3f}")
print(f"the rest filled in   {worst(filled):.3f}")
print(f"all labels           {worst(train.environments):.3f}")

# %%
# The diagnosis says whether the labels are enough, before any fit.
for sentence in diagnose(train.X, train.y, known, compare=False).findings:
    print("-", sentence)
