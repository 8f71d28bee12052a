"""
In a notebook
=============

Results show themselves: the last line of a cell is enough. There are six hospitals; in each one the
protocol of the scanner goes with the diagnosis in its own way. The last hospital is new.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from isrlearn import ISRClassifier, compare_models, diagnose, scan
from isrlearn.displays import SamplesDisplay
from isrlearn.metrics import group_report
from isrlearn.report import make_report

rng = np.random.default_rng(0)
protocol = {"Aarhus": 2.0, "Basel": 1.5, "Cork": -1.0, "Delft": 2.5, "Evora": -1.5, "Fulda": -2.0}
names = [f"region {i + 1}" for i in range(12)]
site = np.repeat(list(protocol), 300)
ill = rng.integers(0, 2, len(site))
X = pd.DataFrame(rng.normal(size=(len(site), 12)), columns=names)
X.iloc[:, :2] += ill[:, None]
X["region 3"] += ill * pd.Series(site).map(protocol)
old = site != "Fulda"
train, new = (X[old], ill[old], site[old]), (X[~old], ill[~old], site[~old])

# %%
# **Will it help?** The recommendation is about the hospitals that are known. What to expect in the
# next one is the last answer; folded below it is the score in each hospital when it is left out.
diagnosis = diagnose(*train)
diagnosis  # noqa: B018

# %%
# The recommendation alone.
diagnosis.recommendation  # noqa: B018

# %%
# **Scores of groups**, here in the new hospital.
model = ISRClassifier().fit(X[old], ill[old], environments=site[old])
group_report(ill[~old], model.predict(X[~old]), environments=site[~old])

# %%
# **A comparison** with plain and balanced models, which are tuned as carefully.
compare_models(*train, model=model, test=new)

# %%
# **A report**: the verdict and the scores; `save` writes the page.
report = make_report(model, train, new)
report  # noqa: B018

# %%
# **A scan** for the column that is a shortcut, among columns of few values.
frame = X[old].assign(hospital=site[old], weekday=rng.choice(["Mon", "Tue", "Wed"], old.sum()))
found = scan(frame, pd.Series(np.where(ill[old], "ill", "well"), name="diagnosis"))
print(found.headline)
SamplesDisplay.from_estimator(model, *train)
plt.show()
found  # noqa: B018
