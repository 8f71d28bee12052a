"""Small networks whose last layer is ``fc``, built from a seed."""

from __future__ import annotations

from typing import Any

__all__ = ["convolutional", "perceptron", "word_average"]


def convolutional(
    n_outputs: int, seed: int, *, side: int = 28, width: int = 16, n_features: int = 128
) -> Any:
    """Three convolutions of images (3, side, side), 128 features, and a linear layer on them."""
    from torch import nn

    def block(n_in: int, n_out: int) -> list[Any]:
        # Group norm: an image must not be normalised by the colours of its batch.
        layer = nn.Conv2d(n_in, n_out, 3, stride=2, padding=1)
        return [layer, nn.ReLU(), nn.GroupNorm(8, n_out)]

    left = -(-side // 8)  # pixels after three strides of 2

    def build() -> Any:
        body = nn.Sequential(
            *block(3, width),
            *block(width, 2 * width),
            *block(2 * width, 4 * width),
            nn.Flatten(),
            nn.Linear(4 * width * left**2, n_features),
            nn.ReLU(),
        )
        return _named(body, nn.Linear(n_features, n_outputs))

    return _seeded(build, seed)


def perceptron(n_inputs: int, seed: int, *, width: int = 64, n_features: int = 30) -> Any:
    """Three linear layers that give one number, the last one on 30 features."""
    from torch import nn

    def build() -> Any:
        body = nn.Sequential(
            nn.Linear(n_inputs, width), nn.ReLU(), nn.Linear(width, n_features), nn.ReLU()
        )
        return _named(body, nn.Linear(n_features, 1))

    return _seeded(build, seed)


def word_average(n_outputs: int, seed: int, *, n_words: int = 30_522, n_features: int = 64) -> Any:
    """The mean of the words' vectors, a hidden layer and a linear one.

    Takes token, mask and segment ids (n, length, 3); the default number of words is BERT's.
    """
    import torch
    from torch import nn

    class Average(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(n_words, n_features)
            self.hidden = nn.Linear(n_features, n_features)

        def forward(self, x: Any) -> Any:
            mask = x[:, :, 1:2].float()
            mean = (self.words(x[:, :, 0]) * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
            return torch.relu(self.hidden(mean))

    return _seeded(lambda: _named(Average(), nn.Linear(n_features, n_outputs)), seed)


def _named(body: Any, head: Any) -> Any:
    from collections import OrderedDict

    from torch import nn

    return nn.Sequential(OrderedDict(body=body, fc=head))


def _seeded(build: Any, seed: int) -> Any:
    """What is built from a seed of its own; the global generator is left as it was."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()
