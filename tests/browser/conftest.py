"""Debian's Chromium, driven by Playwright, which needs no download then."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def chromium():
    """The browser, started by the first test that asks for it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright isn't installed: make browser")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no chromium is on the PATH")
    with playwright.sync_playwright() as found:
        # The sandbox asks for rights that containers don't give; the pages are our own.
        browser = found.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page in the browser, with everything that it complained about or asked the network for."""

    def __init__(self, tab):
        self.tab = tab
        self.complaints, self.requests = [], []
        tab.on("console", lambda message: self.complaints.append(message.text))
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("dialog", lambda dialog: (self.complaints.append("a dialog"), dialog.dismiss()))

    def choose(self, name, value, chart="files"):
        """Choose an option above a chart."""
        self.tab.select_option(f"figure[data-chart={chart}] select[data-choice={name}]", value)

    def said(self, chart="files"):
        """What is said below the fields of a chart."""
        return self.tab.locator(f"figure[data-chart={chart}] .said").all_inner_texts()

    def drawn(self, chart="files", field=0):
        """What plotly was given to draw: its traces and its layout."""
        return self.tab.evaluate(
            "([chart, field]) => { const plot = document.querySelectorAll(`figure[data-chart=${chart}] .plot`)[field];"
            " return {traces: plot.data, layout: plot.layout}; }",
            [chart, field],
        )


@pytest.fixture
def open_page(chromium, tmp_path):
    """Open a page's text at a width, from a file, without a network."""
    contexts = []

    def opened(text, width=1280, scheme="light", **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        contexts.append(context)
        found = Opened(context.new_page())

        def judge(route):
            if route.request.url.startswith("file:") and route.request.url.endswith("/page.html"):
                route.continue_()
            else:
                found.requests.append(route.request.url)
                route.abort()

        context.route("**/*", judge)
        path = Path(tmp_path) / "page.html"
        path.write_text(text, encoding="utf-8")
        found.tab.goto(path.as_uri())
        found.tab.wait_for_function("() => !document.querySelector('.plot:not(.drawn)')")
        return found

    yield opened
    for context in contexts:
        context.close()
