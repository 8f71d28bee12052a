"""ISR for PyTorch: features and moments of a network, and its last layer patched."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('isrlearn.torch needs torch: pip install "isrlearn[torch]"') from error

from isrlearn.torch.features import evaluate, extract_features, torch_moments
from isrlearn.torch.postprocess import postprocess, with_head

__all__ = [
    "evaluate",
    "extract_features",
    "postprocess",
    "torch_moments",
    "with_head",
]
