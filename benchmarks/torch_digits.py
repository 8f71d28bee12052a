"""Post-process a small CNN that was trained on digits on paper, seed by seed.

    python benchmarks/torch_digits.py --seeds 10 --out docs/benchmarks/torch-digits

A convolutional network is trained by ERM on images whose paper gives the class away in 95 % of
cases, and post-processed with its own training images. All rows of the table are the same network
with another last layer.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from isrlearn.datasets import EnvironmentData, load_digits_on_paper
from isrlearn.paper.tables import Table, markdown, write_files
from isrlearn.paper.training import train
from isrlearn.torch import evaluate, postprocess

ORIGINAL = "trained by ERM"
ISR = "ISR, new head"
# The other rows show how much of the gain comes from the new head, or from its weights, alone.
POSTPROCESSED: dict[str, dict[str, Any]] = {
    "new head, nothing removed": {"n_spurious": 0},
    ISR: {},
    "ISR, own head adapted": {"head": "adapt"},
    "new head, equally weighted groups, nothing removed": {
        "n_spurious": 0,
        "weights": "group",
    },
    "ISR, new head, equally weighted groups": {"weights": "group"},
}


def network() -> nn.Module:
    """A CNN for 8 x 8 colour images, with 32 features before its last layer, `fc`."""
    body = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(128, 32), nn.ReLU()),
    )
    return nn.Sequential(OrderedDict(body=body, fc=nn.Linear(32, 2)))


def batches(part: EnvironmentData, *, shuffle: bool = False) -> DataLoader:
    """Images, classes and papers of a split."""
    pictures = part.X.reshape(-1, 8, 8, 3).transpose(0, 3, 1, 2)
    x = torch.tensor(np.ascontiguousarray(pictures), dtype=torch.float32)
    y = torch.tensor(part.y == "odd").long()
    environment = torch.tensor(part.environments == "blue paper").long()
    return DataLoader(TensorDataset(x, y, environment), 64, shuffle=shuffle)


def measured(seed: int, epochs: int = 25) -> list[dict[str, Any]]:
    """Worst-group and average test accuracy of a network and of its post-processed versions."""
    splits = load_digits_on_paper(random_state=seed)
    torch.manual_seed(seed)
    trained = train(
        network(),
        batches(splits.train, shuffle=True),
        optimizer="adam",
        lr=3e-3,
        epochs=epochs,
        random_state=seed,
    )
    models = {ORIGINAL: trained.model}
    for name, parameters in POSTPROCESSED.items():
        models[name] = postprocess(trained.model, batches(splits.train), **parameters)
    rows = []
    for name, model in models.items():
        report = evaluate(model, batches(splits.test))
        rows.append({"seed": seed, "model": name, "worst": report.worst, "average": report.average})
    return rows


def table(rows: list[dict[str, Any]]) -> Table:
    """Means and standard deviations over seeds, and gains over the network as trained."""
    scores = {(r["model"], r["seed"]): r for r in rows}
    seeds = sorted({r["seed"] for r in rows})
    lines = []
    for name in [ORIGINAL, *POSTPROCESSED]:
        line = [name]
        for score in ("worst", "average"):
            line.append(_spread([scores[name, seed][score] for seed in seeds], sign=""))
        gains = [scores[name, s]["worst"] - scores[ORIGINAL, s]["worst"] for s in seeds]
        if name != ORIGINAL:
            up = sum(gain > 0 for gain in gains)
            line += [_spread(gains, sign="+"), f"{up} of {len(seeds)}"]
        lines.append([*line, "", ""][:5])
    columns = ["last layer", "worst group", "average", "gain in the worst group", "seeds improved"]
    return Table("Test accuracy, mean ± standard deviation over seeds", columns, lines)


def _spread(values: list[float], sign: str) -> str:
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):{sign}.3f}{spread}"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/torch-digits"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for seed in range(options.seeds) for row in measured(seed, options.epochs)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    notes = [
        f"Made by `python benchmarks/torch_digits.py --seeds {options.seeds} --epochs "
        f"{options.epochs}`.",
        f"A CNN with two convolutional layers and 32 features, trained for {options.epochs} "
        "epochs of Adam on 1,000 images of `load_digits_on_paper`; default parameters of ISR. "
        f"Each of {options.seeds} seeds draws new splits, papers and initial weights. Rows differ "
        "only in the weights of the last layer.",
    ]
    page = markdown("A CNN on digits on paper, post-processed", notes, [table(rows)])
    write_files(options.out, {"results.csv": text.getvalue(), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
