"""Published folders: read in their layouts, refused with a word on what to download."""

from __future__ import annotations

import csv
import shutil

import numpy as np
import pytest

from isrlearn.paper.datasets import load_celeba, load_multinli, load_waterbirds
from isrlearn.paper.datasets.files import DataError

N_GROUP = 12


def assert_balanced(splits, classes, environments):
    for part in (splits.train, splits.validation, splits.test):
        for label in classes:
            for name in environments:
                assert ((part.y == label) & (part.environments == name)).sum() == N_GROUP


def test_waterbirds(waterbirds_folder):
    splits = load_waterbirds(waterbirds_folder)
    assert_balanced(splits, ("landbird", "waterbird"), ("land", "water"))
    with open(waterbirds_folder / "metadata.csv", newline="") as file:
        first = next(row for row in csv.DictReader(file) if row["split"] == "0")
    assert splits.train.X[0] == str(waterbirds_folder / first["img_filename"])
    assert splits.train.y[0] == ("landbird", "waterbird")[int(first["y"])]
    assert splits.train.environments[0] == ("land", "water")[int(first["place"])]


def test_celeba_as_text_and_as_csv(celeba_folder, tmp_path):
    splits = load_celeba(celeba_folder)
    assert_balanced(splits, (0, 1), (0, 1))
    copy = tmp_path / "data"
    shutil.copytree(celeba_folder / "img_align_celeba", copy / "img_align_celeba")
    for name, head in (("list_attr_celeba", 2), ("list_eval_partition", 0)):
        lines = (celeba_folder / f"{name}.txt").read_text().splitlines()
        names = lines[1].split() if head else ["partition"]
        rows = [["image_id", *names], *(line.split() for line in lines[head:])]
        (copy / f"{name}.csv").write_text("\n".join(",".join(row) for row in rows) + "\n")
    again = load_celeba(tmp_path)
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(again, part).y, getattr(splits, part).y)
        ours, theirs = (getattr(s, part).environments for s in (again, splits))
        np.testing.assert_array_equal(ours, theirs)


def test_celeba_with_other_attributes(celeba_folder):
    splits = load_celeba(celeba_folder, target="Male", environment="Blond_Hair")
    np.testing.assert_array_equal(splits.test.environments, load_celeba(celeba_folder).test.y)
    with pytest.raises(DataError, match="no column 'Smiling'; it has image_id, Bald"):
        load_celeba(celeba_folder, target="Smiling")


def test_multinli(multinli_folder):
    splits = load_multinli(multinli_folder)
    assert_balanced(splits, ("contradiction", "entailment", "neutral"), ("negation", "no negation"))
    assert splits.train.X.shape == (6 * N_GROUP, 128, 3)
    classes = np.array(["contradiction", "entailment", "neutral"])
    np.testing.assert_array_equal(classes[splits.test.X[:, 1, 0] - 2000], splits.test.y)
    negated = splits.test.X[:, 2, 0] == 3000
    np.testing.assert_array_equal(negated, splits.test.environments == "negation")


def test_labels_of_tokens_and_metadata_must_agree(multinli_folder, tmp_path):
    copy = tmp_path / "multinli"
    shutil.copytree(multinli_folder, copy)
    path = copy / "data" / "metadata_random.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(DataError, match=r"the cached features \(216 pairs\) .* \(215\)"):
        load_multinli(copy)


def test_token_files_run_no_code(multinli_folder, tmp_path):
    torch = pytest.importorskip("torch")
    copy = tmp_path / "multinli"
    shutil.copytree(multinli_folder, copy)
    touched = tmp_path / "touched"

    class Hostile:
        def __reduce__(self):
            return (open, (str(touched), "w"))

    path = copy / "glue_data" / "MNLI" / "cached_train_bert-base-uncased_128_mnli"
    torch.save([Hostile()], path)
    with pytest.raises(DataError, match="cannot be read"):
        load_multinli(copy)
    assert not touched.exists()


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (
            load_waterbirds,
            "metadata.csv does not exist: .*waterbird_complete95_forest2water2.tar.gz",
        ),
        (load_celeba, r"list_attr_celeba.txt does not exist: .*CelebA.*\(or the CSV files"),
        (load_multinli, "metadata_random.csv does not exist: .*multinli_bert_features.tar.gz"),
    ],
)
def test_the_message_says_what_to_download(load, message, tmp_path):
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_missing_images_and_bad_columns(waterbirds_folder, tmp_path):
    shutil.copy(waterbirds_folder / "metadata.csv", tmp_path)
    with pytest.raises(DataError, match=r"\.jpg does not exist: download and unpack"):
        load_waterbirds(tmp_path)
    (tmp_path / "metadata.csv").write_text("img_id,img_filename,y,split\n1,a.jpg,0,0\n")
    with pytest.raises(DataError, match="no column 'place'; it has img_id"):
        load_waterbirds(tmp_path)
    (tmp_path / "metadata.csv").write_text("img_filename,y,split,place\na.jpg,0,0\n")
    with pytest.raises(DataError, match="line 2 has 3 fields; the header 4"):
        load_waterbirds(tmp_path)


def test_the_data_folder_is_looked_at(waterbirds_folder, tmp_path, monkeypatch):
    shutil.copytree(waterbirds_folder, tmp_path / "waterbirds")
    monkeypatch.setenv("ISRLEARN_DATA", str(tmp_path))
    assert load_waterbirds().train.X[0].startswith(str(tmp_path / "waterbirds"))
