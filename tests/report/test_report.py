"""A report shows what the model does, says what was scored, and is safe to open."""

from __future__ import annotations

import html
import json
import re
import sys

import numpy as np
import pytest
from sklearn.base import clone

from isrlearn import (
    ISRClassifier,
    ISRClassifierCV,
    ISRRegressor,
    ISRTransformer,
    compare_models,
)
from isrlearn.datasets import make_gaussian_environments
from isrlearn.metrics import group_report
from isrlearn.report import make_report


def gaussian(seed=0, **kwargs):
    """Rows of three environments, two of five directions spurious."""
    data = make_gaussian_environments(
        200, 3, n_invariant=3, n_spurious=2, random_state=seed, **kwargs
    )
    return data.X, data.y, data.environments


def fitted(estimator, data):
    X, y, environments = data
    return estimator.fit(X, y, environments=environments)


def settings(page):
    """The numbers that the sliders select from."""
    text = re.search(r'<script type="application/json" id="settings">(.*?)</script>', page, re.S)
    return json.loads(text.group(1))


def words(page):
    """The text of the page, without scripts, style and tags."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


class TestNumbers:
    def test_held_out_scores_are_those_of_the_models(self, digits, digits_report):
        train, test = digits.train, digits.test
        clf = ISRClassifier().fit(train.X, train.y, environments=train.environments)
        expected = group_report(test.y, clf.predict(test.X), environments=test.environments)
        found = digits_report.evidence
        assert [g.value for g in found.report.groups] == [g.value for g in expected.groups]
        rows = train.X, train.y, train.environments
        comparison = compare_models(*rows, model=clf, test=test)
        assert found.comparison.to_dict() == comparison.to_dict()
        assert found.best.to_dict() == comparison.reports["group-balanced"].to_dict()

    @pytest.mark.parametrize("task", ["classification", "regression"])
    def test_every_environment_is_left_out_in_turn(self, task):
        X, y, e = data = gaussian(task=task)
        kinds = {"classification": ISRClassifier(), "regression": ISRRegressor(compare="means")}
        model = fitted(kinds[task], data)
        report, out = make_report(model, data), e == 2
        guess = fitted(clone(model), (X[~out], y[~out], e[~out])).predict(X[out])
        wrong = np.mean(guess != y[out]), np.sqrt(np.mean((guess - y[out]) ** 2))
        score = 1 - wrong[0] if task == "classification" else wrong[1]
        assert report.to_dict()["unseen"]["model"][2] == pytest.approx(score)
        assert "Environments left out in turn" in words(report.html())

    @pytest.mark.parametrize("held_out", [True, False])
    def test_the_other_models_do_not_depend_on_this_one(self, held_out):
        train, scored = gaussian(), gaussian(1) if held_out else None
        for estimator in (ISRClassifier(), ISRClassifier(C=1e-6, weights="group")):
            found = make_report(fitted(estimator, train), train, scored).to_dict()["comparison"]
            found["models"].pop("model")
            assert found["models"] == locals().get("first", found)["models"]
            first = found

    def test_a_search_is_repeated_in_every_fold(self):
        rng = np.random.default_rng(0)
        data = rng.standard_normal((150, 40)), np.arange(150) % 2, np.arange(150) // 2 % 2
        search = ISRClassifierCV(n_spurious=[0, 1], scale=0.0, weights=None, C=[0.01, 1.0])
        found = make_report(fitted(search, data), data).evidence
        expected = compare_models(*data, model=search).reports["model"]
        assert found.report.to_dict() == expected.to_dict()
        assert found.reports[found.chosen] is found.report

    @pytest.mark.parametrize("task", ["classification", "regression"])
    def test_every_setting_is_that_of_an_estimator(self, task):
        train, held_out = gaussian(task=task), gaussian(1, task=task)
        classes = task == "classification"
        kind = ISRClassifier if classes else ISRRegressor
        found = make_report(fitted(kind(n_spurious=2, scale=0.3), train), train, held_out).evidence
        assert found.chosen == (2, 0.3)
        assert {0.0, 0.3, 1.0} <= set(found.scales)
        for (r, scale), report in found.reports.items():
            model = fitted(kind(n_spurious=r, scale=scale), train)
            expected = group_report(
                held_out[1],
                model.predict(held_out[0]),
                environments=held_out[2],
                metric="accuracy" if classes else "rmse",
            )
            if r and scale < 1:
                assert [g.value for g in report.groups] == [g.value for g in expected.groups]
            # With nothing removed the head has other coordinates, and may differ in a row.
            assert report.worst == pytest.approx(expected.worst, rel=0.011)
            assert report.average == pytest.approx(expected.average, rel=0.003)

    def test_folds_hold_out_every_row_once(self):
        data = gaussian()
        report = make_report(fitted(ISRClassifier(), data), data)
        assert report.evidence.kind == "folds"
        assert report.evidence.report.n == len(data[1])
        assert sum(group.n for group in report.evidence.best.groups) == len(data[1])

    def test_many_rows_are_sampled(self, monkeypatch):
        monkeypatch.setattr("isrlearn.report.evidence.MOST_VALUES", 5 * 300)
        train, held_out = gaussian(), gaussian(1)
        clf = fitted(ISRClassifier(), train)
        by_folds, by_test = make_report(clf, train), make_report(clf, train, held_out)
        assert by_folds.evidence.n_used == by_test.evidence.n_used == 298
        assert "298 of the 600 rows of the training table" in words(by_folds.html())
        assert "a sample of 298 of the 600 training rows" in words(by_test.html())
        # The model itself is still the one that was fitted on all rows.
        expected = group_report(held_out[1], clf.predict(held_out[0]), environments=held_out[2])
        assert by_test.evidence.report.worst == expected.worst

    def test_cross_validation_detects_overfitting(self):
        rng = np.random.default_rng(0)
        data = rng.standard_normal((120, 60)), np.arange(120) % 2, np.arange(120) // 2 % 2
        clf = fitted(ISRClassifier(n_spurious=1, C=100.0), data)
        assert (clf.predict(data[0]) == data[1]).mean() > 0.85
        assert make_report(clf, data).evidence.report.average < 0.65

    def test_headline_and_sliders_show_those_numbers(self, digits_report):
        page = digits_report.html()
        found, data = digits_report.evidence, settings(page)
        best, own = (f"{100 * r.worst:.1f}%" for r in (found.best, found.report))
        assert found.comparison.best == "group-balanced"
        line = f"worst group is {best} with the group-balanced model and {own} with this model"
        assert line in words(page)
        point = data["points"][data["at"][0] * len(data["scales"]) + data["at"][1]]
        assert (point["worst"], point["r"]) == (own, digits_report.estimator.n_spurious_)
        assert len(data["points"]) == len(data["counts"]) * len(data["scales"])

    def test_every_model_has_a_column(self, digits_report):
        found = digits_report.evidence.comparison
        page = digits_report.html()
        assert words(page).startswith(found.verdict.capitalize())
        table = re.search(r'id="models".*?</table>', page, re.S).group()
        cells = [
            re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
            for row in re.findall("<tr>.*?</tr>", table)
        ]
        assert cells[0] == ["group", "n", *list(found.models)[:-1], "this model"]
        for row, score in zip(cells[1:3], ("worst", "average"), strict=True):
            expected = [f"{100 * getattr(r, score):.1f}%" for r in found.reports.values()]
            assert row[2:] == expected
        assert len(cells) == 1 + 2 + 4 + 1
        assert all(sentence in words(page) for sentence in found.sentences)

    def test_the_same_report_twice_is_the_same_file(self, digits, digits_report):
        again = make_report(
            digits_report.estimator, digits.train, digits.test, sources=digits_report.sources
        )
        assert again.html() == digits_report.html()


class TestHonesty:
    def test_a_test_table_is_named_as_such(self, digits_report):
        page = words(digits_report.html())
        assert "rows that were not used to fit the model or to choose its settings" in page

    def test_rows_that_chose_the_settings_are_named_as_such(self):
        train, held_out = gaussian(), gaussian(1)
        search = ISRClassifierCV(n_spurious=[1, 2], scale=0.0, C=1.0, weights=None)
        search.fit(train[0], train[1], environments=train[2], validation=held_out)
        page = words(make_report(search, train, held_out, chosen=True).html())
        assert "they chose its settings" in page
        assert "which also chose the settings" in words(
            make_report(search, train, chosen=True).html()
        )

    def test_training_rows_are_named_as_such(self):
        X = np.random.default_rng(0).standard_normal((4, 3))
        data = X, np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
        page = words(make_report(fitted(ISRClassifier(n_spurious=1), data), data).html())
        assert "Caution: scored on the 4 training rows themselves" in page

    def test_without_training_rows_nothing_is_compared(self):
        report = make_report(fitted(ISRClassifier(), gaussian()), None, gaussian(1))
        assert report.evidence.kind == "table"
        assert report.evidence.best is None
        page = report.html()
        assert "alternative" not in re.search(r"<main.*?</section>", page, re.S).group()
        assert 'id="models"' not in page
        assert '<input type="range"' not in page

    def test_a_removal_that_does_not_help_is_reported(self, digits_report, regression_report):
        assert digits_report.headline.startswith("Use balanced weights instead")
        assert regression_report.headline.startswith("Do not use it:")
        data, small = gaussian(), tuple(part[:24] for part in gaussian(1))
        report = make_report(fitted(ISRClassifier(), data), data, small)
        worst = report.evidence.comparison.change.worst
        assert worst.low < 0 < worst.high
        assert report.headline.startswith("No clear difference:")

    def test_what_is_left_unchanged_is_not_called_removed(self):
        X, y, environments = gaussian()
        frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcde"))
        data = (frame, y, environments)
        report = make_report(fitted(ISRClassifier(scale=1.0), data), data)
        page = words(report.html())
        assert "None of the 5 directions was removed." in page
        assert "Samples along the strongest direction" in page
        assert "0 directions removed, of 3 that a test at level 0.01 finds" in page
        assert "Nothing is removed. Predictions follow" in page
        assert 'class="removed" x=' not in report.html()
        assert "2 directions that shift between environments are kept." in report.card()

    def test_a_group_that_was_not_collected_is_a_reason_for_removal(self):
        X, y, environments = gaussian()
        seen = (y == 0) | (environments != environments[0])
        rows = X[seen], y[seen], environments[seen]
        clf, sentence = fitted(ISRClassifier(), rows), "ISR is expected to help in these cells"
        assert sentence in words(make_report(clf, rows).html())
        assert sentence not in words(make_report(clf, rows, gaussian(1)).html())

    @pytest.mark.filterwarnings("ignore:all 3 dimensions shift")
    def test_more_environments_show_no_more_than_all_dimensions(self):
        rng, n = np.random.default_rng(0), 600
        y, e = rng.integers(2, size=n), rng.integers(8, size=n)
        X = rng.standard_normal((n, 3)) + 2 * rng.standard_normal((8, 3))[e]
        page = words(make_report(fitted(ISRClassifier(head="lda"), (X, y, e)), (X, y, e)).html())
        assert "2 directions removed, of 3 that a test at level 0.01 finds" in page
        assert "more environments may show more" not in page

    def test_what_is_not_shown_is_stated(self):
        rng = np.random.default_rng(0)
        y, e = rng.integers(2, size=3000), rng.integers(20, size=3000)
        X = rng.standard_normal((3000, 4))
        X[:, 0] += e
        page = words(make_report(fitted(ISRClassifier(head="lda"), (X, y, e)), (X, y, e)).html())
        assert "Not shown: 16 more groups" in page
        assert re.search(r"1,1\d\d of 3,000 rows", page)
        assert "13 others" in page


class TestPage:
    @pytest.mark.parametrize("name", ["digits_report", "regression_report", "hostile_report"])
    def test_it_is_small_and_requests_nothing(self, request, name):
        page = request.getfixturevalue(name).html()
        assert len(page.encode()) < 300_000
        style = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
        assert "@import" not in style
        assert "url(" not in style.replace("url(#hatch)", "")
        assert all(link.startswith("#") for link in re.findall(r'<[^>]*\shref="([^"]*)"', page))
        assert not re.search(r"<[^>]*\s(src|srcset|action|data|ping)=", page)
        assert "://" not in page
        assert "default-src 'none'" in html.unescape(page)

    def test_names_are_no_markup_in_a_card(self, hostile_report):
        card = hostile_report.card()
        assert r"\<script\>" in card
        text = re.sub(r"^    .*$", "", card, flags=re.M)  # the command is a block of code
        assert not re.search(r"(?<!\\)[<`]", text)
        rows = [line for line in card.splitlines() if line.startswith("| class")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in rows}) <= 1

    def test_it_stays_small_whatever_the_data(self):
        rng, n = np.random.default_rng(0), 3000
        y, e = np.arange(n) % 12, np.arange(n) // 12 % 15
        X = rng.standard_normal((n, 5))
        X[:, 0] += e
        labels = np.array([f"class {'x' * 400} {i}" for i in range(12)])[y]
        places = np.array([f"place {'é' * 400} {i}" for i in range(15)])[e]
        data = X, labels, places
        sources = {"command": "isr " + "f" * 10**6}
        report = make_report(fitted(ISRClassifier(head="lda"), data), data, sources=sources)
        assert len(report.html().encode()) < 500_000

    def test_names_are_text(self, hostile_report, hostile_names):
        page = hostile_report.html()
        for name in hostile_names:
            assert name not in page
            assert name in words(page)
        data = settings(page)
        assert any(name in point["group"] for point in data["points"] for name in hostile_names)
        # One block of data and one of code, and no way out of either.
        assert page.count("<script") == page.count("</script>") == 2
        assert "<img" not in page

    def test_figures_have_words(self, digits_report):
        page = digits_report.html()
        figures = re.findall(r'<svg[^>]*viewBox="0 0 440[^>]*>', page)
        assert len(figures) == 4
        assert all('role="img"' in figure and "aria-label=" in figure for figure in figures)
        for part in ("<header", "<nav", "<main", "<footer", 'lang="en"'):
            assert part in page

    def test_the_python_it_shows_gives_the_model(self, digits_report, tmp_path, monkeypatch):
        code = html.unescape(
            re.search(r'aria-label="Python">(.*?)</pre>', digits_report.html(), re.S).group(1)
        )
        from isrlearn.cli.app import run

        monkeypatch.chdir(tmp_path)
        assert run(["datasets", "write", "digits-on-paper", "--out", "digits"]) == 0
        names: dict = {}
        exec(code, names)
        np.testing.assert_allclose(
            names["model"].coef_, digits_report.estimator.coef_, rtol=1e-6, atol=1e-8
        )

    def test_errors_in_thousands_are_written_out(self):
        X, y, environments = gaussian(task="regression")
        noise = np.random.default_rng(0).normal(size=len(y))
        data = (X, 5e4 * (y + noise), environments)
        found = make_report(fitted(ISRRegressor(), data), data, data)
        assert "e+0" not in words(found.html()) + found.card()
        assert f"{found.evidence.best.worst:,.0f}" in found.headline

    def test_missing_jinja_names_the_extra(self, digits_report, monkeypatch):
        monkeypatch.setitem(sys.modules, "jinja2", None)
        with pytest.raises(ImportError, match=r'needs jinja2: pip install "isrlearn\[report\]"'):
            digits_report.html()


class TestInput:
    def test_what_cannot_be_reported_on(self):
        data = gaussian()
        clf = fitted(ISRClassifier(), data)
        with pytest.raises(ValueError, match="needs rows"):
            make_report(clf)
        with pytest.raises(ValueError, match="the rows have 4 features; the model was fitted on 5"):
            make_report(clf, (data[0][:, :4], *data[1:]))
        with pytest.raises(ValueError, match=r"rows must be \(X, y, environments\)"):
            make_report(clf, data[0])
        with pytest.raises(ValueError, match=r"\[600, 599, 600\]"):
            make_report(clf, (data[0], data[1][:-1], data[2]))
        with pytest.raises(ValueError, match="a report is about a fitted"):
            make_report(ISRClassifier(), data)
        with pytest.raises(ValueError, match="a report is about a fitted"):
            make_report(fitted(ISRTransformer(), data), data)

    @pytest.mark.parametrize(
        "estimator",
        [
            ISRClassifier("cov", n_spurious=1),
            ISRClassifier("joint", head="lda", scale=0.5),
            ISRClassifier(variant="paper", n_spurious=1, weights="class"),
            ISRClassifier(head=(np.ones((1, 5)), np.zeros(1))),
            ISRClassifier(n_spurious=0),
            ISRClassifier(n_spurious=4, method="cov"),
        ],
        ids=lambda e: f"{e.method} {e.n_spurious} {e.variant}",
    )
    @pytest.mark.filterwarnings("ignore:covariances do not differ")
    def test_every_kind_of_model_has_one(self, estimator):
        data = gaussian()
        page = make_report(fitted(estimator, data), data).html()
        assert 'id="spectrum"' in page
        assert 'id="samples"' in page

    def test_rows_without_environments(self):
        X, y, environments = gaussian()
        environments = environments.astype(object)
        environments[::3] = None
        data = X, y, environments
        report = make_report(fitted(ISRClassifier(), data), data)
        assert report.evidence.report.n_without_environment == 200
        assert "unknown" in words(report.html())

    def test_data_frames(self):
        pd = pytest.importorskip("pandas")
        X, y, environments = gaussian()
        frame = pd.DataFrame(X, columns=list("abcde"))
        clf = ISRClassifier().fit(frame, y, environments=environments)
        assert (
            make_report(clf, (frame, pd.Series(y), pd.Series(environments))).evidence.report.n
            == 600
        )
