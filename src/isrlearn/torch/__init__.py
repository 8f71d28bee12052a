"""ISR for PyTorch: features and moments of a network, and its last layer patched."""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError('isrlearn.torch needs torch: pip install "isrlearn[torch]"')

from isrlearn.torch.features import evaluate, extract_features, torch_moments
from isrlearn.torch.postprocess import postprocess, with_head

__all__ = ["evaluate", "extract_features", "postprocess", "torch_moments", "with_head"]
