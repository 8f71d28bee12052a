"""``isr fit --engine dask`` gives the model of ``isr fit``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from isrlearn import load
from isrlearn.datasets import make_gaussian_environments

pd = pytest.importorskip("pandas")
pytest.importorskip("dask")


@pytest.fixture
def table(tmp_path):
    data = make_gaussian_environments(300, 3, n_invariant=3, n_spurious=1, random_state=0)
    frame = pd.DataFrame(data.X).add_prefix("f")
    frame["y"], frame["place"] = data.y, data.environments
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=200)
    return tmp_path / "t.parquet"


@pytest.fixture
def fitted(isr, table):
    """Runs ``isr fit``: the model and what was said of it."""

    def run(*more):
        out = table.with_name("m.isr")
        arguments = ["fit", table, "--label", "y", "--environment", "place", "--out", out]
        status, said, err = isr(*arguments, "--json", *more)
        assert status == 0, err
        return load(out), json.loads(said)

    return run


def assert_same(a, b):
    np.testing.assert_allclose(a[0].coef_, b[0].coef_, atol=1e-8)
    for name in ("classes", "environments", "count", "n_spurious", "n_features"):
        assert a[1].get(name) == b[1].get(name)
    assert list(a[0].feature_names_in_) == list(b[0].feature_names_in_)


@pytest.mark.parametrize("task", [[], ["--task", "regression"], ["--head", "lda"]])
def test_both_engines_fit_the_same(fitted, task):
    assert_same(fitted("--engine", "dask", *task), fitted("--no-search", *task))


@pytest.mark.filterwarnings("always")
def test_a_text_table_is_fitted_without_a_warning(isr, table):
    path = table.with_suffix(".csv")
    pd.read_parquet(table).to_csv(path, index=False)
    arguments = ["fit", path, "--label", "y", "--environment", "place", "--engine", "dask"]
    status, _, err = isr(*arguments, "--out", table.with_name("m.isr"))
    assert (status, err) == (0, "")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_is_found_by_its_address(fitted):
    from isrlearn.dask import local_cluster

    with local_cluster(1) as cluster:
        address = cluster.scheduler_address
        found = fitted("--engine", "dask", "--scheduler", address)
    assert_same(found, fitted("--no-search"))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--engine", "dask", "--search"], "--engine dask fits given settings"),
        (["--scheduler", "tcp://host:1"], "--scheduler needs --engine dask"),
        (["--engine", "dask", "--scheduler", "tls://host:1"], "there is no Dask scheduler at 'tls"),
        (["--engine", "spark"], "'spark' is not one of 'memory', 'dask'"),
    ],
)
def test_what_does_not_go_together(isr, table, more, message):
    arguments = ["fit", table, "--label", "y", "--environment", "place"]
    status, _, err = isr(*arguments, "--out", table.with_name("m.isr"), *more)
    assert status == 2
    assert message in " ".join(err.split())
