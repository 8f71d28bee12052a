"""ISR for PyTorch: features of a network, its last layer patched, and trainers to start from."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('isrlearn.torch needs torch: pip install "isrlearn[torch]"') from error

from isrlearn.torch.evaluate import evaluate
from isrlearn.torch.features import Features, extract_features
from isrlearn.torch.moments import TorchMoments, torch_moments
from isrlearn.torch.postprocess import postprocess, with_head

__all__ = [
    "Features",
    "TorchMoments",
    "evaluate",
    "extract_features",
    "postprocess",
    "torch_moments",
    "with_head",
]
