"""Post-process a small CNN that was trained on digits on paper, seed by seed.

    python benchmarks/torch_digits.py --seeds 10 --out docs/benchmarks/torch-digits

A convolutional network is trained by ERM on images whose paper gives the class away in 95 % of
cases, and post-processed with its own training images. All rows of the table are the same network
with another last layer; every new head chooses its own C among the same values by the worst group
of the validation images.
"""

from __future__ import annotations

import argparse
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from isrlearn import ISRClassifierCV
from isrlearn.datasets import EnvironmentData, load_digits_on_paper
from isrlearn.paper.tables import Table, csv_text, markdown, plus_minus, write_files
from isrlearn.paper.training import train
from isrlearn.torch import evaluate, extract_features, postprocess, with_head

ORIGINAL = "trained by ERM"
ADAPTED = "ISR, own head adapted"
ISR = "ISR, new head"
WEIGHTED = "new head, equally weighted groups, nothing removed"
PENALTIES = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
#: Settings of the new heads. Those that remove nothing show what the head and its weights do alone.
HEADS: dict[str, dict[str, Any]] = {
    "new head, nothing removed": {"n_spurious": 0, "weights": None},
    WEIGHTED: {"n_spurious": 0, "weights": "group"},
    ISR: {"n_spurious": "auto", "weights": None},
    "ISR, new head, equally weighted groups": {"n_spurious": "auto", "weights": "group"},
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
    model = trained.model
    layers = {
        ORIGINAL: (model, ""),
        ADAPTED: (postprocess(model, batches(splits.train), head="adapt"), ""),
    }
    found, held_out = (
        extract_features(model, batches(part), layer="fc")
        for part in (splits.train, splits.validation)
    )
    for name, settings in HEADS.items():
        search = ISRClassifierCV(C=PENALTIES, scale=0.0, **settings)
        search.fit(found.X, found.y, found.environments, validation=held_out)
        layers[name] = with_head(model, search, layer="fc"), search.best_params_["C"]
    rows = []
    for name, (patched, C) in layers.items():
        report = evaluate(patched, batches(splits.test))
        scores = {"worst": report.worst, "average": report.average}
        rows.append({"seed": seed, "model": name, "C": C, **scores})
    return rows


def table(rows: list[dict[str, Any]]) -> Table:
    """Means and standard deviations over seeds, and gains over the network as trained."""
    scores = {(r["model"], r["seed"]): r for r in rows}
    seeds = sorted({r["seed"] for r in rows})
    lines = []
    for name in [ORIGINAL, ADAPTED, *HEADS]:
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
    spread = np.std(values, ddof=1) if len(values) > 1 else np.nan
    return plus_minus(np.mean(values), spread, sign=sign)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/torch-digits"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for seed in range(options.seeds) for row in measured(seed, options.epochs)]
    notes = [
        f"Made by `python benchmarks/torch_digits.py --seeds {options.seeds} --epochs "
        f"{options.epochs}`.",
        f"A CNN with two convolutional layers and 32 features, trained for {options.epochs} "
        f"epochs of Adam on 1,000 images of `load_digits_on_paper`. Each of {options.seeds} seeds "
        "draws new splits, papers and initial weights. Rows differ only in the weights of the "
        "last layer. Each new head chooses its own C among "
        f"{', '.join(f'{C:g}' for C in PENALTIES)} by the worst group of the 297 validation "
        "images, on which colour and class are independent; the own head has nothing to choose. "
        "Equally weighted groups need the paper of every training image, as ISR does here.",
    ]
    page = markdown("A CNN on digits on paper, post-processed", notes, [table(rows)])
    write_files(options.out, {"results.csv": csv_text(list(rows[0]), rows), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
