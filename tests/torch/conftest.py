"""A small network, and batches whose features shift between environments."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@pytest.fixture(autouse=True)
def one_thread():
    """Sums on one thread have one order, and small networks are faster."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def make_network(n_outputs=2, *, bias=True, dtype=torch.float32):
    """Six inputs, eight features before a last layer called fc."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.5))
    return nn.Sequential(OrderedDict(body=body, fc=nn.Linear(8, n_outputs, bias=bias))).to(dtype)


def make_samples(n=240, n_classes=2, *, task="classification", unknown=False, seed=0):
    """Inputs whose first columns tell the class and whose last one the environment."""
    draw = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % n_classes
    e = (torch.arange(n) // n_classes) % 3
    x = torch.randn(n, 6, generator=draw)
    x[torch.arange(n), y] += 2.0
    x[:, 5] += e - 1.0
    if task == "regression":
        y = x[:, 0] + 0.1 * torch.randn(n, generator=draw)
    if unknown:
        e = torch.where(torch.arange(n) % 7 == 0, -1, e)
    return x, y, e


def make_loader(samples, batch_size=50, **options):
    return DataLoader(TensorDataset(*samples), batch_size, **options)


@pytest.fixture
def network():
    return make_network


@pytest.fixture
def samples():
    return make_samples


@pytest.fixture
def loader():
    return make_loader
