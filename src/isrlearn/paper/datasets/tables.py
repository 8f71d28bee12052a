"""Real tables with environments: people, sentences, tissue samples, movements."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from isrlearn.datasets.data import EnvironmentData
from isrlearn.paper.datasets.files import VARIABLE, DataError, Resource, content, folders, located
from isrlearn.paper.datasets.law_school import GENDERS, LAW_SCHOOL_FILE, TableTruth

Files = Iterator[tuple[str, bytes]]  # path and content
Columns = dict[str, NDArray]
#: Share of the rows below which an environment is left out, with its rows.
_LEAST = 0.02
#: Most categories of a column, rows below which a category joins "infrequent", and unknown values.
_MOST_CATEGORIES, _FEWEST_ROWS, _UNKNOWN = 25, 20, ("", "?", "None", "nan")
#: Most rows of a table that are encoded; terms and components of the reviews; rows of a window.
_MOST_ROWS, _TERMS, _COMPONENTS, _WINDOW = 30_000, 20_000, 150, 128
#: Files: sha256 of the decompressed content, and path below the data folder.
_SUMS = """
c30ce1e55a965b04950321870db74c19f4aa437120a692f32e72f6a4fa31c418 adult/adult.csv.gz
c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d compas/compas.csv.gz
21d0e33655666071bde9ed21bf35b24fe14c1476e3dd37a5194b827ad5a570e4 employment-ma/employment_MA_reference.pq
591328bcf7e46139660f2cc6b1705a6f2f66edf2418ce2a893cf2892be3f66a7 employment-ma/employment_MA_analysis.pq
c306840f0c092bda7608a09e61e7e715ac2b7fb2d17da8062900c3ecd6fdbe30 employment-ma/employment_MA_analysis_target.pq
d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d movie-reviews/movie_reviews.csv.gz
fe165fdd409ffc6da0e3eebf395d2ad092b6347c8faf85cbbb526befa85383aa bladderbatch/bladderbatch.npz
30f22ae9d3964d9fa409df80d6897345d83565c764ba468b9a8a8d85270e8037 watch/watch.npz
"""  # noqa: E501
#: Where files come from that cannot be downloaded as they are.
_ORIGINS = {
    "adult": "UCI Adult (CC BY 4.0), 32,561 rows and a header",
    "employment-ma": "a file of the data set employment_MA of the package nannyml 0.13.1",
    "movie-reviews": "33,530 reviews of IMDB and Rotten Tomatoes: text, label, source",
    "bladderbatch": "Bioconductor's bladderbatch (Artistic-2.0) as arrays",
    "watch": "the watch data of the package seglearn 1.2.5 (BSD) as arrays",
}
_URLS = {
    "compas": "https://raw.githubusercontent.com/propublica/compas-analysis/master/"
    "compas-scores-two-years.csv"
}


class Census(NamedTuple):
    """What the columns of a table of people are."""

    numbers: str  # columns, as they are
    categories: str  # columns, one-hot; neither identifiers, nor dates, nor what came later
    label: tuple[str, str]  # its column, and the value that is class 1


@cache
def load_table(name: str, *, environment: str | None = None) -> EnvironmentData:
    """A real table: features, labels and environments of its rows.

    ==============  =======================================  ==============================
    name            label                                    environments (first: default)
    ==============  =======================================  ==============================
    adult           income above 50,000                      sex, race
    compas          arrested again within two years          race, sex
    employment-ma   employed                                 RAC1P (race), SEX, year
    movie-reviews   positive (8,000 rows, 150 components)    source
    bladderbatch    Biopsy, Cancer, Normal                   batch
    watch           exercise (windows of 128 readings)       subject
    law-school      undergraduate grade above 3              gender
    ==============  =======================================  ==============================

    At most 30,000 rows are kept. Categories are one-hot, missing numbers are imputed by the median
    with an indicator, and the column of the environment is not a feature. Environments with less
    than 2 % of the rows of a table of people are left out. Reviews are TF-IDF vectors of at most
    20,000 terms, reduced by a truncated SVD; windows are statistics of each channel. The result is
    kept for the process.

    Parameters
    ----------
    name : str
        One of the names above.
    environment : str, optional
        Which of the columns is the environment.

    Returns
    -------
    EnvironmentData
        ``truth.names`` are the names of the features.

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_table
    >>> load_table("adult")  # doctest: +SKIP
    EnvironmentData(n_samples=30000, n_features=71, environments=['Female', 'Male'])
    """
    if name not in TABLES:
        raise ValueError(f"name={name!r} must be one of {', '.join(TABLES)}")
    load, environments = TABLES[name]
    if environment not in (None, *environments):
        raise ValueError(f"environment={environment!r} must be one of {', '.join(environments)}")
    return load(_files(name), environment or environments[0])


def _files(name: str) -> Files:
    """Path and content of each file of a data set."""
    if name == "law-school":
        yield LAW_SCHOOL_FILE.path, content(LAW_SCHOOL_FILE)
    for line in _SUMS.split("\n"):
        sha256, _, path = line.partition(" ")
        if not path.startswith(f"{name}/"):
            continue
        resource = Resource(path, _URLS.get(name, ""), sha256)
        if not resource.url and located(resource) is None:
            places = " or ".join(str(folder / path) for folder in folders())
            raise DataError(
                f"{places} does not exist. It holds {_ORIGINS[name]}; put it there, or set "
                f"{VARIABLE} to another folder"
            )
        yield path, content(resource)


def _columns(path: str, data: bytes) -> Columns:
    """Columns of a CSV or Parquet file by name; the first one of a name that occurs twice."""
    if path.endswith(".pq"):
        import pyarrow
        from pyarrow import parquet

        table = parquet.read_table(pyarrow.BufferReader(data))
        text = {name: table[name].cast(pyarrow.string()) for name in table.column_names}
        return {name: column.to_numpy(zero_copy_only=False) for name, column in text.items()}
    head, *rows = csv.reader(io.StringIO(data.decode("utf-8")))
    columns = zip(head, zip(*rows, strict=True), strict=True)
    found = {name: np.array(values, dtype=object) for name, values in reversed(list(columns))}
    return {name: found[name] for name in head}


def _people(census: Census, files: Files, environment: str) -> EnvironmentData:
    """A table of people."""
    parts = [_columns(*file) for file in files]
    columns = parts[0] if len(parts) == 1 else _joined(*parts)
    places = columns[environment].astype(str)
    names, e, count = np.unique(places, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(count[e] >= _LEAST * len(e))
    if len(rows) > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_ROWS, replace=False))
    kept = {name: values[rows] for name, values in columns.items() if name != environment}
    numbers, categories = ([name for name in text.split() if name in kept] for text in census[:2])
    X, features = _encoded(kept, numbers, categories)
    y = (kept[census.label[0]].astype(str) == census.label[1]).astype(np.int64)
    return EnvironmentData(X, y, names[e[rows]], TableTruth(features))


def _joined(reference: Columns, analysis: Columns, target: Columns) -> Columns:
    """The rows of both periods; those of the second get their label by their id."""
    order = np.argsort(target["id"])
    found = order[np.searchsorted(target["id"], analysis["id"], sorter=order)]
    analysis = {**analysis, "employed": target["employed"][found]}
    shared = [name for name in reference if name in analysis]
    return {name: np.concatenate([reference[name], analysis[name]]) for name in shared}


def _encoded(
    columns: Mapping[str, NDArray], numbers: list[str], categories: list[str]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Numbers imputed with indicators, categories one-hot, and the names of these features."""
    values = np.column_stack([columns[name] for name in numbers]).astype(object)
    values[np.isin(values.astype(str), list(_UNKNOWN))] = np.nan
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    left = imputer.fit_transform(values.astype(np.float64))
    text = np.column_stack([columns[name] for name in categories]).astype(str).astype(object)
    text[np.isin(text, list(_UNKNOWN))] = "missing"
    limits = {"min_frequency": _FEWEST_ROWS, "max_categories": _MOST_CATEGORIES}
    encoder = OneHotEncoder(drop="if_binary", sparse_output=False, **limits)
    right = encoder.fit_transform(text)
    names = [*imputer.get_feature_names_out(numbers), *encoder.get_feature_names_out(categories)]
    return np.hstack([left, right]), tuple(map(str, names))


def _movie_reviews(files: Files, environment: str) -> EnvironmentData:
    """Components of TF-IDF vectors of full reviews and of short ones, 4,000 each."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    columns, rng = _columns(*next(files)), np.random.default_rng(0)
    source = columns[environment].astype(str)
    members = [np.flatnonzero(source == name) for name in np.unique(source)]
    rows = np.concatenate([rng.choice(each, 4000, replace=False) for each in members])
    vectors = TfidfVectorizer(max_features=_TERMS, sublinear_tf=True, stop_words="english")
    counts = vectors.fit_transform(columns["text"][rows])
    X = TruncatedSVD(_COMPONENTS, random_state=0).fit_transform(counts)
    truth = TableTruth(tuple(f"component {i}" for i in range(X.shape[1])))
    return EnvironmentData(X, columns["label"][rows].astype(np.int64), source[rows], truth)


def _arrays(files: Files) -> dict[str, Any]:
    """Arrays of a data set's .npz file."""
    with np.load(io.BytesIO(next(files)[1]), allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def _bladderbatch(files: Files, environment: str) -> EnvironmentData:
    """Expression of 22,283 probes in 57 samples; eight of the fifteen cells are empty."""
    found = _arrays(files)
    X, truth = found["expression"].astype(np.float64), TableTruth(tuple(found["probe"].tolist()))
    return EnvironmentData(X, found["cancer"], found[environment], truth)


def _watch(files: Files, environment: str) -> EnvironmentData:
    """Statistics of the channels of a smartwatch in windows that do not overlap."""
    found = _arrays(files)
    starts = np.cumsum(found["length"]) - found["length"]
    n_windows = found["length"] // _WINDOW
    series = np.repeat(np.arange(len(starts)), n_windows)
    within = np.concatenate([np.arange(n) for n in n_windows])
    rows = (starts[series] + _WINDOW * within)[:, None] + np.arange(_WINDOW)
    windows = found["values"][rows].astype(np.float64)  # (n, window, channel)
    statistics: dict[str, NDArray] = {
        "mean": windows.mean(axis=1),
        "deviation": windows.std(axis=1),
        "lowest": windows.min(axis=1),
        "median": np.median(windows, axis=1),
        "highest": windows.max(axis=1),
        "change": np.abs(np.diff(windows, axis=1)).mean(axis=1),
    }
    names = tuple(f"{channel} {what}" for what in statistics for channel in found["channels"])
    y = found["exercise_names"][found["exercise"][series]]
    X = np.hstack(list(statistics.values()))
    return EnvironmentData(X, y, found[environment][series], TableTruth(names))


def _law_school(files: Files, environment: str) -> EnvironmentData:
    """Students of law; the label is an undergraduate grade above 3."""
    columns = {name: values.astype(float) for name, values in _columns(*next(files)).items()}
    kept = {name: columns[name] for name in columns if name not in ("ugpa", environment)}
    y = np.where(columns["ugpa"] > 3, "above 3", "up to 3")
    places = GENDERS[columns[environment].astype(int)]
    return EnvironmentData(np.column_stack(list(kept.values())), y, places, TableTruth((*kept,)))


_ADULT = Census(
    "age education-num capital-gain capital-loss hours-per-week",
    "workclass marital-status occupation relationship race sex native-country",
    ("income-per-year", ">50K"),
)
_COMPAS = Census(
    "age juv_fel_count juv_misd_count juv_other_count priors_count days_b_screening_arrest "
    "c_days_from_compas",
    "sex race c_charge_degree c_charge_desc",
    ("two_year_recid", "1"),
)
_EMPLOYMENT = Census(
    "AGEP",
    "SCHL MAR RELP DIS ESP CIT MIG MIL ANC NATIVITY DEAR DEYE DREM SEX RAC1P",
    ("employed", "1"),
)
#: Loader of each table, and the columns that may be its environment, the default first.
TABLES: Mapping[str, tuple[Callable[[Files, str], EnvironmentData], tuple[str, ...]]] = {
    "adult": (partial(_people, _ADULT), ("sex", "race")),
    "compas": (partial(_people, _COMPAS), ("race", "sex")),
    "employment-ma": (partial(_people, _EMPLOYMENT), ("RAC1P", "SEX", "year")),
    "movie-reviews": (_movie_reviews, ("source",)),
    "bladderbatch": (_bladderbatch, ("batch",)),
    "watch": (_watch, ("subject",)),
    "law-school": (_law_school, ("gender",)),
}
