"""
Find the shortcut
=================

Measurements of tumours from two scanners that are calibrated apart; nine of ten malignant tumours
were measured with the same one. `scan` takes every column of few values as the environment in turn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from isrlearn import ISRClassifier, scan
from isrlearn.displays import SamplesDisplay

data, rng = load_breast_cancer(as_frame=True), np.random.default_rng(0)
label = data.target.map({0: "malignant", 1: "benign"}).rename("diagnosis")
n = len(label)
scanner = np.where(rng.random(n) < 0.9, data.target, 1 - data.target)
X = (data.data - data.data.mean()) / data.data.std() + rng.normal(size=data.data.shape)
X.iloc[:, :8] += 1.5 * scanner[:, None]  # calibration
frame = X.assign(
    scanner=np.array(["old", "new"])[scanner],
    weekday=rng.choice(["Mon", "Tue", "Wed", "Thu", "Fri"], n),
    ward=np.where(rng.random(n) < 0.5, data.target, rng.integers(0, 2, n)),
)

# %%
# The ward goes with the diagnosis as well, but no measurement depends on it.
found = scan(frame, label)
found  # noqa: B018

# %%
# The scanner is the environment. The direction along which it shifts the measurements is removed.
clf = ISRClassifier().fit(X, label, environments=frame.scanner)
print(found.headline)
print(f"{clf.n_spurious_} direction of {clf.n_features_in_} removed")
SamplesDisplay.from_estimator(clf, X, label, frame.scanner)
plt.show()

# %%
# Without the shift between the scanners there is none to find.
print(scan(frame.drop(columns=X.columns[:8]), label).headline)
