"""The report in a browser: self-contained, interactive and accessible."""

from __future__ import annotations

import shutil

import pytest

from isrlearn import diagnose, scan

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = [
    "--no-sandbox",  # root cannot use the sandbox
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
REPORTS = ["digits_report", "regression_report", "hostile_report"]

# Contrast of every piece of text with its background, by WCAG's formula.
CONTRASTS = """() => {
  const numbers = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => {
      v /= 255;
      return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const rgb = numbers(getComputedStyle(node).backgroundColor);
      if (rgb.length === 3 || rgb[3] > 0) return rgb.slice(0, 3);
    }
    return null;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || !node.checkVisibility()) continue;
    if (node.closest("script, style, title")) continue;
    const style = getComputedStyle(node);
    const ink = numbers(node.closest("svg") ? style.fill : style.color).slice(0, 3);
    const [a, b] = [light(ink), light(behind(node))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), text.data.trim().slice(0, 40)]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, request, tmp_path):
    """Opens a report from the disk; messages and requests of the page are in `page.noise`."""
    contexts = []

    def open_report(name, *, width=1180, **settings):
        path = tmp_path / f"{name}.html"
        if not path.exists():
            request.getfixturevalue(name).save(path)
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.noise = []
        page.on("console", lambda message: page.noise.append(message.text))
        page.on("pageerror", lambda error: page.noise.append(str(error)))
        page.on("dialog", lambda dialog: (page.noise.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda asked: page.noise.append(asked.url))
        page.goto(path.as_uri())
        assert page.noise.pop(0) == path.as_uri()
        return page

    yield open_report
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", REPORTS)
def test_it_opens_from_the_disk_alone(opened, name):
    page = opened(name)
    page.locator("#count").press("Home")
    page.locator("#by-environment").check()
    page.locator("summary").first.click()
    page.wait_for_timeout(200)
    assert page.noise == []


def test_the_policy_blocks_foreign_content(opened):
    page = opened("digits_report")
    page.evaluate(
        """() => {
          window.ran = false;
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.body.append(script);
          document.body.append(Object.assign(new Image(), {src: "file:///x.png"}));
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is False
    assert any("Content Security Policy" in line for line in page.noise)


@pytest.mark.parametrize("name", REPORTS)
def test_the_sliders_change_the_numbers(opened, request, name):
    found = request.getfixturevalue(name).evidence
    metric = found.report.metric
    page = opened(name)

    def shown():
        ids = ("worst-now", "average-now", "count-now", "scale-now")
        return [page.locator(f"#{i}").inner_text() for i in ids]

    def expected(r, s):
        report = found.reports[r, s]
        scores = (report.worst, report.average)
        texts = [f"{100 * v:.1f}%" if metric == "accuracy" else f"{v:.3g}" for v in scores]
        return [*texts, f"{r} direction{'' if r == 1 else 's'}", f"{100 * s:g}%"]

    assert shown() == expected(*found.chosen)
    first = page.locator("#now-mark").get_attribute("transform")
    page.locator("#count").press("Home")
    assert shown() == expected(0, found.chosen[1])
    assert page.locator("#nothing-now").is_visible()
    assert page.locator("#now-mark").get_attribute("transform") != first
    page.locator("#count").press("ArrowRight")
    page.locator("#scale").press("ArrowRight")
    assert shown() == expected(found.counts[1], found.scales[1])
    assert page.locator("#count").get_attribute("aria-valuetext") == "1 direction"
    page.locator("#reset").click()
    assert shown() == expected(*found.chosen)
    page.locator(".setting").first.dispatch_event("click")
    assert shown() == expected(found.counts[1], found.scales[0])


def test_the_table_follows_the_sliders(opened, digits_report):
    found = digits_report.evidence
    page = opened("digits_report")
    page.locator("#count").press("Home")
    cells = page.locator("[data-group]").all_inner_texts()
    assert cells == [f"{100 * group.value:.1f}%" for group in found.reports[0, 1.0].groups]


def test_the_keyboard_reaches_everything(opened):
    page = opened("digits_report")
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.id || document.activeElement.className")
        )
    for control in ("skip", "count", "scale", "reset", "by-class"):
        assert control in reached
    assert reached.index("count") < reached.index("scale") < reached.index("by-class")
    page.locator("#count").focus()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [320, 400, 768, 1180])
def test_no_width_needs_horizontal_scrolling(opened, name, width):
    page = opened(name, width=width)
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_names_show_as_text(opened, hostile_names):
    page = opened("hostile_report")
    text = page.locator("body").inner_text()
    for name in hostile_names:
        assert name in text
    assert page.locator("main script, main img, main b").count() == 0
    page.locator("#count").press("Home")
    assert any(name in page.locator("#group-now").inner_text() for name in hostile_names)
    assert page.noise == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["digits_report", "regression_report"])
def test_text_has_enough_contrast(opened, name, scheme):
    page = opened(name, color_scheme=scheme)
    for summary in page.locator("summary").all():
        summary.click()
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 100
    assert [entry for entry in contrasts if entry[0] < 4.5] == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(16, 19, 23)") == (scheme == "dark")


def test_colours_and_shapes_go_by_class_or_environment(opened):
    page = opened("digits_report")
    layers = [page.locator(f"#samples .layer-{name}") for name in ("class", "environment")]
    assert [layer.is_visible() for layer in layers] == [True, False]
    page.locator("#by-environment").check()
    assert [layer.is_visible() for layer in layers] == [False, True]
    assert "blue paper" in page.locator("#samples .legend-environment").inner_text()
    used = (
        layers[1]
        .locator("polyline")
        .evaluate_all("lines => lines.map(line => line.getAttribute('marker-mid'))")
    )
    assert len(set(used)) == 2


def test_print_is_light_and_complete(opened):
    page = opened("digits_report", color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert all(entry[0] >= 4.5 for entry in page.evaluate(CONTRASTS))
    for hidden in ("nav", "#count", "#reset"):
        assert not page.locator(hidden).is_visible()
    for part in ("groups", "trade-off", "samples", "spectrum", "stability", "diagnosis"):
        assert page.locator(f"#{part}").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.fixture(scope="module")
def notebook(digits, digits_report):
    """What a notebook shows of every result, as the outputs of its cells."""
    train = digits.train
    rows = train.X, train.y, train.environments
    found = diagnose(*rows, compare=False)
    columns = dict(zip(map(str, range(20)), train.X.T[:20], strict=True))
    results = [
        found,
        found.recommendation,
        digits_report.evidence.report,
        digits_report.evidence.comparison,
        digits_report,
        scan({**columns, "<b>paper</b>": train.environments}, train.y),
    ]
    return "".join(f"<section>{result._repr_html_()}</section>" for result in results)


@pytest.mark.parametrize(("ink", "paper"), [("#212121", "#ffffff"), ("#e0e0e0", "#111111")])
def test_results_can_be_read_in_a_notebook(browser, notebook, ink, paper):
    assert len(notebook) < 57_037
    assert "<script" not in notebook
    assert "<b>" not in notebook
    page = browser.new_page(viewport={"width": 900, "height": 900})
    page.set_content(f'<body style="color:{ink};background:{paper}">{notebook}</body>')
    page.locator("details").evaluate_all("nodes => nodes.forEach((node) => node.open = true)")
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 100
    assert min(contrasts)[0] > 7, min(contrasts)
    assert page.evaluate("document.documentElement.scrollWidth") <= 900
    page.close()
