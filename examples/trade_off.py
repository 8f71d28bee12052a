"""
Worst group against average
===========================

A search scores every setting by its worst group and on average. Which of the two matters more is
your decision; the Pareto front shows what is possible.
"""

import matplotlib.pyplot as plt

from isrlearn import ISRClassifierCV
from isrlearn.datasets import load_digits_on_paper
from isrlearn.displays import TradeOffDisplay

train = load_digits_on_paper().train
search = ISRClassifierCV(
    n_spurious=[1, 2], scale=[0.0, 0.25, 0.5, 1.0], C=[0.001, 0.01, 0.1], cv=5, random_state=0
)
search.fit(train.X, train.y, environments=train.environments)
print("best by the worst group:", search.best_params_)

# %%
# These rows come from the training environments, where the shortcut works: the average is best with
# nothing removed. The worst group needs the opposite.
frame = search.trade_off()
front = frame[frame.on_front].sort_values("average")
print(front[["n_spurious", "scale", "C", "average", "worst_group"]].to_string(index=False))

TradeOffDisplay.from_estimator(search)
plt.show()
