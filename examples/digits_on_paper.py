"""
Digits on paper: a shortcut, and ISR
====================================

Odd and even digits are printed on paper of two colours. In training the colour agrees with the
class in 95 % of the images; in the test images it is uninformative. A plain classifier learns the
colour. ISR compares odd digits on blue paper with odd digits on yellow paper, finds the direction
of the colour, and removes it.
"""

import matplotlib.pyplot as plt
import numpy as np

from isrlearn import ISRClassifier, compare_models
from isrlearn.datasets import load_digits_on_paper
from isrlearn.displays import SamplesDisplay, SpectrumDisplay
from isrlearn.metrics import group_report

splits = load_digits_on_paper()
train, test = splits.train, splits.test
cells = [(label, paper) for label in ("even", "odd") for paper in np.unique(train.environments)]

figure, axes = plt.subplots(2, 4, figsize=(8, 4.4), layout="constrained")
for column, (label, paper) in zip(axes.T, cells, strict=True):
    rows = np.flatnonzero((train.y == label) & (train.environments == paper))
    for axis, row in zip(column, rows, strict=False):
        axis.imshow(train.X[row].reshape(8, 8, 3).clip(0, 1))
        axis.set_axis_off()
    column[0].set_title(f"{label}, {paper}\n{len(rows)} images", fontsize=9)

# %%
# The plain head is the same estimator with nothing removed and no weights.
fit = {"X": train.X, "y": train.y, "environments": train.environments}
plain = ISRClassifier(n_spurious=0, weights=None).fit(**fit)
isr = ISRClassifier().fit(**fit)
print(f"{isr.n_spurious_} of {isr.n_features_in_} directions removed")

# %%
# Prediction needs no environments; here they only define the groups of the report.
for name, model in (("plain", plain), ("ISR", isr)):
    print(name)
    print(group_report(test.y, model.predict(test.X), environments=test.environments))

# %%
# What shifts is far above the noise, and the head no longer uses it.
SpectrumDisplay.from_estimator(isr)
SamplesDisplay.from_estimator(isr, test.X, test.y, test.environments)

# %%
# Is it worth using? Plain and balanced models, each with a penalty of its own, are the standard to
# meet. Every group was collected here, and balanced weights do better.
print(compare_models(**fit, model=isr, test=test))

# %%
# The removed direction can be shown as an image: a colour for the whole paper.
pattern = isr.spurious_basis_[:, 0].reshape(8, 8, 3)
figure, axis = plt.subplots(figsize=(3, 3))
axis.imshow(0.5 + 0.5 * pattern / np.abs(pattern).max())
axis.set_axis_off()
axis.set_title("first removed direction")
plt.show()
