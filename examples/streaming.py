"""
Data that arrive in parts
=========================

All that ISR needs from the data are the moments of each class in each environment, and moments add
up. Parts can therefore be read one after the other, or on different machines, and the result is the
same as for the whole.
"""

import matplotlib.pyplot as plt
import numpy as np

from isrlearn import ISRClassifier
from isrlearn.datasets import make_gaussian_environments
from isrlearn.displays import SpectrumDisplay
from isrlearn.engine import cell_moments

data = make_gaussian_environments(5_000, 6, random_state=0)
order = np.random.default_rng(0).permutation(len(data.y))
parts = np.array_split(order, 10)

whole = ISRClassifier(head="lda", n_components=None)
whole.fit(data.X, data.y, environments=data.environments)

# %%
# One part after the other. The head is fitted from moments too, so each row is needed only once.
streamed = ISRClassifier(head="lda", n_components=None)
for rows in parts:
    streamed.partial_fit(
        data.X[rows], data.y[rows], classes=[0, 1], environments=data.environments[rows]
    )
print("largest difference, streamed:", np.abs(streamed.coef_ - whole.coef_).max())

# %%
# Or moments of each part, computed anywhere and summed in any order.
moments = sum(cell_moments(data.X[rows], data.y[rows], data.environments[rows]) for rows in parts)
summed = ISRClassifier(head="lda", n_components=None).fit_moments(moments)
print("largest difference, summed:  ", np.abs(summed.coef_ - whole.coef_).max())
print("rows per cell:\n", moments.count.astype(int))
SpectrumDisplay.from_estimator(summed)
plt.show()
