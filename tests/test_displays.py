"""The displays draw what the results say, on axes of their own or on given ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor
from isrlearn.datasets import make_gaussian_environments
from isrlearn.displays import GroupDisplay, SamplesDisplay, SpectrumDisplay, TradeOffDisplay
from isrlearn.metrics import group_report

plt = pytest.importorskip("matplotlib.pyplot", reason="needs: pip install isrlearn[plot]")


@pytest.fixture(autouse=True)
def no_windows():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_gaussian_environments(200, 3, n_spurious=2, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return ISRClassifier().fit(data.X, data.y, data.environments)


def test_groups_are_those_of_the_report_worst_first(data, model):
    display = GroupDisplay.from_estimator(model, data.X, data.y, data.environments)
    report = group_report(data.y, model.predict(data.X), data.environments)
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == [group.value for group in report.by_rank]
    assert display.ax_.get_xlim() == (0, 1)
    assert display.figure_ is display.ax_.figure
    worst = display.ax_.get_yticklabels()[0].get_text()
    assert worst.startswith("{}, {}".format(*report.worst_group))


def test_several_models_share_the_axes(data, model):
    models = {"ISR": model.predict(data.X), "constant": np.zeros_like(data.y)}
    _, ax = plt.subplots()
    display = GroupDisplay.from_predictions(data.y, models, data.environments, ax=ax)
    assert display.ax_ is ax
    assert len(ax.patches) == 2 * 6
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(models)


def test_names_of_many_groups_do_not_overlap():
    e = np.repeat(np.arange(46), 10)
    display = GroupDisplay.from_predictions(e % 2, e % 2, e)
    display.figure_.canvas.draw()
    names = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(names))


def test_a_regression_is_scored_by_its_error(data):
    regressor = ISRRegressor(n_spurious=0).fit(data.X, data.X[:, 0], data.environments)
    display = GroupDisplay.from_estimator(regressor, data.X, data.X[:, 0], data.environments)
    assert display.ax_.get_xlabel() == "rmse"


def test_spectrum_marks_what_shifts(model):
    ax = SpectrumDisplay.from_estimator(model).ax_
    shifts, rest, noise = ax.lines
    assert len(shifts.get_xdata()) == model.rank_test_.rank
    shown = np.concatenate([shifts.get_ydata(), rest.get_ydata()])
    assert shown.tolist() == model.rank_test_.spectrum.tolist()
    assert noise.get_ydata()[0] == model.rank_test_.noise
    assert ax.get_yscale() == "log"


def test_spectrum_needs_a_test(data):
    model = ISRClassifier(n_spurious=1).fit(data.X, data.y, data.environments)
    with pytest.raises(ValueError, match="n_spurious='auto'"):
        SpectrumDisplay.from_estimator(model)


def test_trade_off_of_a_search_and_of_models(data, model):
    search = ISRClassifierCV(n_spurious=1, scale=[0.0, 1.0], C=[0.1, 1.0], weights=None, cv=3)
    search.fit(data.X, data.y, data.environments)
    display = TradeOffDisplay.from_estimator(search)
    assert len(display.average) == 4
    assert display.best == search.best_index_
    models = {"ISR": model.predict(data.X), "constant": np.zeros_like(data.y)}
    display = TradeOffDisplay.from_predictions(data.y, models, data.environments)
    assert display.worst[1] == 0
    assert [text.get_text() for text in display.ax_.texts] == list(models)


def test_samples_keep_their_cells(data, model):
    display = SamplesDisplay.from_estimator(model, data.X, data.y, data.environments)
    assert display.places.shape == (600, 2)
    assert len(display.ax_.collections) == 6
    assert sum(len(dots.get_offsets()) for dots in display.ax_.collections) == 600


def test_the_legend_of_many_samples_fits():
    rng = np.random.default_rng(0)
    y, e = rng.integers(0, 3, 600), rng.integers(0, 20, 600)
    X = rng.normal(size=(600, 3)) + np.outer(e % 4, [2, 0, 0])
    names = np.array([f"University Hospital, Department of Radiology, {i}" for i in range(20)])
    display = SamplesDisplay.from_estimator(ISRClassifier().fit(X, y, e), X, y, names[e])
    display.figure_.draw_without_rendering()  # warns if the points have no room
    legend = display.ax_.get_legend()
    assert len(legend.get_texts()) == 60
    assert legend.get_window_extent().ymin >= 0


def test_samples_need_a_direction():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    model = ISRClassifier(missing_environments="single").fit(X, y)
    with pytest.raises(ValueError, match="nothing shifts"):
        SamplesDisplay.from_estimator(model, X, y, np.zeros(200))
