"""
Patching the last layer of a trained network
============================================

A small CNN learns the colour of the paper. `postprocess` folds ISR into its last layer: the same
module with new weights in one layer, without retraining. Needs the extra `torch`.
"""

from collections import OrderedDict

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from isrlearn.datasets import load_digits_on_paper
from isrlearn.displays import GroupDisplay
from isrlearn.paper.training import train
from isrlearn.torch import evaluate, postprocess

splits = load_digits_on_paper()


def batches(part, shuffle=False):
    """Images, classes and environments as tensors."""
    x = torch.tensor(part.X, dtype=torch.float32).reshape(-1, 8, 8, 3).permute(0, 3, 1, 2)
    y = torch.tensor(part.y == "odd").long()
    environment = torch.tensor(part.environments == "blue paper").long()
    return DataLoader(TensorDataset(x, y, environment), batch_size=64, shuffle=shuffle)


torch.manual_seed(0)
body = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
model = nn.Sequential(OrderedDict(body=body, fc=nn.Linear(144, 2)))
model = train(model, batches(splits.train, shuffle=True), optimizer="adam", epochs=10).model

# %%
# The trained layer can be replaced by a new head on the rest, or keep its own weights with the
# removal folded in.
reports = {"trained": evaluate(model, batches(splits.test))}
for head in ("refit", "adapt"):
    patched = postprocess(model, batches(splits.train), layer="fc", head=head)
    reports[f"ISR, {head}"] = evaluate(patched, batches(splits.test))
print({name: round(report.worst, 3) for name, report in reports.items()})
GroupDisplay(reports).plot()
plt.show()

# %%
# The state dict has the same keys and shapes.
print({name: tuple(value.shape) for name, value in patched.state_dict().items()})
