"""
Save, load, export
==================

A fitted model is one affine map. It is saved to a file that can be read without running code, and
exported for programs that do not use isrlearn.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from isrlearn import ISRClassifier, load, save
from isrlearn.datasets import load_digits_on_paper
from isrlearn.displays import SamplesDisplay
from isrlearn.io import export_model, read_model

splits = load_digits_on_paper()
train, test = splits.train, splits.test
clf = ISRClassifier().fit(train.X, train.y, environments=train.environments)
folder = Path(tempfile.mkdtemp())

# %%
# The model file.
path = folder / "model.isr"
save(clf, path)
again = load(path)
print("same predictions:", (again.predict(test.X) == clf.predict(test.X)).all())
print("bytes:", path.stat().st_size, "– made with", read_model(path).versions)
SamplesDisplay.from_estimator(again, test.X, test.y, test.environments)
plt.show()

# %%
# Two arrays for NumPy.
export_model(clf, "numpy", folder / "model.npz")
arrays = np.load(folder / "model.npz", allow_pickle=False)
scores = test.X @ arrays["coef"].T + arrays["intercept"]
print("same scores:", np.allclose(scores.ravel(), clf.decision_function(test.X)))

# %%
# ONNX, for any runtime (extra `onnx`).
export_model(clf, "onnx", folder / "model.onnx")
print("ONNX bytes:", (folder / "model.onnx").stat().st_size)
