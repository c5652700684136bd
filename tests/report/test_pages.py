# SPDX-License-Identifier: Apache-2.0
"""Opens the golden pages of "cachewarm report" in a real browser, on a phone and on a desktop,
light and dark. Screenshots are in build/screenshots."""
import re
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest
from browser import PROGRAM, Browser

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "tests/golden/report").glob("*.html"))
SCREENSHOTS = ROOT / "build/screenshots"
MEASURE = (Path(__file__).parent / "measure.js").read_text()
OPEN_DETAILS = "document.querySelectorAll('details').forEach(each => each.open = true)"
WIDTHS = (320, 1280)
SCHEMES = ("light", "dark")
by_name = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def browser():
    if not Path(PROGRAM).is_file():
        pytest.fail(f"no browser at {PROGRAM}: run tools/setup/all, or name one by "
                    "CACHEWARM_CHROMIUM")
    started = Browser()
    yield started
    started.close()


def test_there_are_pages_of_every_kind_of_cluster():
    assert {path.stem for path in PAGES} >= {"empty", "example", "hostile", "namespace"}


@by_name
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_reader_can_read_all_of_the_page(browser, page, width, scheme):
    opened = browser.open(page, width, scheme)
    opened.screenshot(SCREENSHOTS / f"{page.stem}-{width}-{scheme}.png")
    for tables in ("closed", "open"):
        if tables == "open":
            opened.evaluate(OPEN_DETAILS)
        seen = opened.evaluate(MEASURE)
        assert seen["width"] == width
        assert seen["scroll_width"] == width, f"with tables {tables}, the page scrolls sideways"
        assert seen["too_wide"] == []
        assert seen["overlaps"] == []
        assert seen["small"] == []
        assert seen["texts"] > 20
        assert seen["faint"] == []
        assert seen["faint_marks"] == []
    assert opened.complaints() == []
    assert opened.requests() == [page.resolve().as_uri()]
    opened.close()


def test_the_colours_follow_the_scheme_of_the_reader(browser):
    backgrounds = set()
    for scheme in SCHEMES:
        opened = browser.open(PAGES[0], WIDTHS[0], scheme)
        backgrounds.add(opened.evaluate(MEASURE)["background"])
        opened.close()
    assert len(backgrounds) == 2


def test_the_policy_of_the_page_forbids_requests_scripts_and_styles(browser, tmp_path):
    """The page as if somebody had put their own elements into it."""
    text = (ROOT / "tests/golden/report/empty.html").read_text()
    (tmp_path / "x.css").write_text("body { display: none }")
    (tmp_path / "x.js").write_text("document.title = 'changed'")
    bad = ("<img src='x.png'/><script>document.title = 'changed'</script>"
           "<script src='x.js'></script>"
           "<link rel='stylesheet' href='x.css'/><style>body { display: none }</style>"
           "<iframe src='x.html'></iframe>")
    planted = tmp_path / "planted.html"
    planted.write_text(text.replace("<main>", "<main>" + bad))
    opened = browser.open(planted, 320, "light")
    assert opened.evaluate("document.title") == "Model start-up report"
    assert opened.evaluate("getComputedStyle(document.body).display") == "block"
    assert opened.evaluate(MEASURE)["background"] == "rgb(255, 255, 255)"
    refused = [event["params"]["entry"]["text"] for event in opened.complaints()
               if event["method"] == "Log.entryAdded"]
    assert len([text for text in refused if "Content Security Policy" in text]) >= 6, refused
    opened.close()


def test_the_browser_would_notice_a_page_that_is_too_wide_or_too_faint(browser, tmp_path):
    text = (ROOT / "tests/golden/report/example.html").read_text()
    policy = re.search(r"<meta http-equiv[^>]*>", text).group()
    planted = tmp_path / "planted.html"
    planted.write_text(text.replace(policy, "").replace(
        "</style>", "h1 { width: 400px; color: #bbb } .tick { font-size: 30px !important }"
        "</style><script>console.error('planted')</script>"))
    opened = browser.open(planted, 320, "light")
    seen = opened.evaluate(MEASURE)
    assert seen["scroll_width"] > 320 and seen["too_wide"] and seen["overlaps"]
    assert [each["text"] for each in seen["faint"]] == ["Model start-up report"]
    assert len(opened.complaints()) == 1
    opened.close()


@by_name
def test_a_page_is_well_formed_and_refers_to_nothing_outside(page):
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>\n")
    root = xml.fromstring(text.partition("\n")[2])
    tags = {element.tag for element in root.iter()}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "a", "base",
                       "image", "use", "foreignObject", "audio", "video", "source"}
    for element in root.iter():
        for name, value in element.attrib.items():
            assert name not in ("src", "href", "style", "srcset", "action"), (element.tag, name)
            assert not name.startswith("on"), (element.tag, name)
    style = root.find("head/style").text
    assert "url(" not in style and "@import" not in style
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


@by_name
def test_every_chart_has_a_title_a_description_and_a_table(page):
    root = xml.fromstring(page.read_text().partition("\n")[2])
    for parent in root.iter():
        children = list(parent)
        for number, child in enumerate(children):
            if child.tag != "svg" or child.get("class") != "chart":
                continue
            assert child.get("role") == "img"
            names = child.get("aria-labelledby").split()
            assert [part.get("id") for part in child[:2]] == names
            assert [part.tag for part in child[:2]] == ["title", "desc"]
            assert all(part.text.strip() for part in child[:2])
            after = children[number + 1]
            assert after.tag == "details" and after.find(".//table") is not None
