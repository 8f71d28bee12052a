"""ISR for PyTorch: features of a network, its last layer patched, and trainers to start from."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('isrlearn.torch needs torch: pip install "isrlearn[torch]"') from error

from isrlearn.torch._run import EpochRecord, TrainingResult
from isrlearn.torch.evaluate import evaluate
from isrlearn.torch.features import Features, extract_features
from isrlearn.torch.moments import TorchMoments, torch_moments
from isrlearn.torch.postprocess import postprocess, with_head
from isrlearn.torch.train import train

__all__ = [
    "EpochRecord",
    "Features",
    "TorchMoments",
    "TrainingResult",
    "evaluate",
    "extract_features",
    "postprocess",
    "torch_moments",
    "train",
    "with_head",
]
