"""
Features like those of Waterbirds
=================================

4,795 rows of 512 features in four groups, two of them rare: 184 land birds over water and 56
water birds over land. The settings are chosen by the worst group of a validation split and
evaluated on the test split.
"""

import matplotlib.pyplot as plt

from isrlearn import ISRClassifierCV
from isrlearn.datasets import make_waterbirds_like
from isrlearn.displays import GroupDisplay
from isrlearn.metrics import group_report, group_sizes

splits = make_waterbirds_like(random_state=0)
train, test = splits.train, splits.test
print(group_sizes(train.y, train.environments))

# %%
# `scale=1` keeps everything: a plain head whose penalty is chosen by the same rule.
models = {
    "plain": ISRClassifierCV(scale=1.0, n_spurious=0, C=[0.001, 0.01], weights=None),
    "plain, groups reweighted": ISRClassifierCV(
        scale=1.0, n_spurious=0, C=[0.001, 0.01], weights="group"
    ),
    "ISR": ISRClassifierCV(scale=0.0, C=[0.001, 0.01], weights=["class", "group"]),
}
reports = {}
for name, model in models.items():
    model.fit(train.X, train.y, environments=train.environments, validation=splits.validation)
    reports[name] = group_report(test.y, model.predict(test.X), environments=test.environments)
    print(f"{name}: worst {reports[name].worst:.3f}, average {reports[name].average:.3f}")
print("chosen:", models["ISR"].best_params_)

# %%
# Every group, not only the worst.
GroupDisplay(reports).plot()
plt.show()
