"""The book's pages, opened one by one in a headless browser without a network."""

from collections import Counter

import pytest

from minigpt.course.publish import book, door, shared

PATHS = shared.every_path()
NAMES = [shared.web_name(p.stem)[: -len(".html")] for p in PATHS]
PAGE = "03_self_attention"  # on which the search is tried
pytestmark = pytest.mark.weekly  # thirty pages
READY = "document.documentElement.dataset.ready === 'yes'"

LOOK = """(() => {
  const main = document.querySelector("main");
  const texts = [...main.querySelectorAll("*")].filter((e) => !e.closest("pre, code")
    && [...e.childNodes].some((n) => n.nodeType === 3 && /\\$|\\\\[a-z]/.test(n.data)));
  const sections = [...document.querySelectorAll("#contents ol ol a")];
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  const turn = (rel) => document.querySelector(`[rel=${rel}]`)?.getAttribute("href");
  return {
    ticks: [...document.querySelectorAll("h1, .cards, .about")].filter(
      (e) => e.textContent.includes("`")).length,
    small: [...document.querySelectorAll("figure img")].filter(
      (i) => i.getBoundingClientRect().width < 0.63 * i.naturalWidth).length,
    wide: document.documentElement.scrollWidth - innerWidth,
    raw_math: texts.map((e) => e.textContent.slice(0, 60)),
    bad_math: document.querySelectorAll("mjx-merror").length,
    math: document.querySelectorAll("mjx-container svg").length,
    bare: [...document.images].filter((image) => image.alt.length < 30
      || /^No description/.test(image.alt) || !image.naturalWidth).length,
    sections: sections.length,
    dangling: sections.filter(
      (a) => !document.getElementById(decodeURIComponent(a.hash.slice(1)))).length,
    twice: ids.filter((id, i) => ids.indexOf(id) !== i),
    links: [...document.querySelectorAll("a")].map((a) => a.getAttribute("href"))
      .filter((href) => !/^(#|https?:)/.test(href)),
    previous: turn("prev") ?? null, next: turn("next") ?? null,
    titles: document.querySelectorAll("#contents > ol > li").length,
  };
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Folder with the book, built as `make book` builds it."""
    try:
        folder = tmp_path_factory.mktemp("book")
        book.build_book(folder)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return folder


@pytest.fixture(scope="module")
def pages(site, browser):
    """What the browser saw on each page."""
    seen = {}
    for name in ["index", *NAMES]:
        browser.open((site / f"{name}.html").as_uri(), READY)
        seen[name] = browser.evaluate(LOOK)
        seen[name]["requests"] = list(browser.requests)
        seen[name]["errors"] = list(browser.errors)
    return seen


def test_the_book_asks_the_network_for_nothing(pages, site):
    for seen in pages.values():
        files = [r for r in seen["requests"] if not r.startswith("data:")]
        assert files
        assert all(request.startswith(site.as_uri()) for request in files)


def test_the_console_shows_no_error(pages):
    assert [seen["errors"] for seen in pages.values() if seen["errors"]] == []


def test_math_is_typeset_and_pictures_have_alternative_text(pages):
    for name, seen in pages.items():
        assert seen["raw_math"] == [] and seen["bad_math"] == 0, name
        assert seen["bare"] == 0, name
    assert sum(seen["math"] for seen in pages.values()) > 20


def test_no_backtick_is_shown_and_no_picture_shrinks_beyond_reading(pages):
    assert {name: seen["ticks"] for name, seen in pages.items() if seen["ticks"]} == {}
    assert {name: seen["small"] for name, seen in pages.items() if seen["small"]} == {}


def test_the_contents_lead_to_every_section(pages):
    for name, seen in pages.items():
        assert seen["titles"] == len(NAMES)
        assert seen["dangling"] == 0, name
        assert seen["twice"] == [], name
        assert name == "index" or seen["sections"] >= 3, name


def test_next_and_previous_go_through_all_pages(pages):
    order = ["index", *NAMES]
    files = [None, *(f"{name}.html" for name in order), None]
    for number, name in enumerate(order):
        assert pages[name]["previous"] == files[number]
        assert pages[name]["next"] == files[number + 2]


def test_every_link_inside_the_book_leads_to_a_page(pages, site):
    for name, seen in pages.items():
        for link in seen["links"]:
            assert (site / link.split("#")[0]).is_file(), f"{name}: {link}"


def test_no_page_is_wider_than_a_screen_or_a_telephone(pages, site, browser):
    assert {
        name: seen["wide"] for name, seen in pages.items() if seen["wide"] > 0
    } == {}
    size = {"height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", width=390, **size)
    for name in ["index", *NAMES[1:4]]:
        browser.open((site / f"{name}.html").as_uri(), READY)
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390, name
    assert browser.evaluate("getComputedStyle(contents).display") == "none"
    browser.evaluate("menu.click()")
    assert browser.evaluate("getComputedStyle(contents).display") == "block"
    browser.evaluate("menu.click(), input.value = 'softmax', search('softmax')")
    edges = browser.evaluate(
        """searchElsewhere('softmax').then(() => [...document.querySelectorAll(
          "#elsewhere, .bar button, .bar input")].map((e) => e.getBoundingClientRect())
          .map((box) => [box.left, box.right]))"""
    )
    assert all(0 <= left < right <= 390 for left, right in edges), edges
    browser.call("Emulation.setDeviceMetricsOverride", width=1280, **size)


def test_its_first_page_counts_the_lessons_alone(site):
    spent = [shared.minutes(shared.read(p)) for p in shared.notebook_paths()[:8]]
    main = [
        n for path, n in zip(shared.notebook_paths(), spent) if path.stem[:3] != "00b"
    ]
    told = (site / "index.html").read_text(encoding="utf-8")
    assert f"00 to 06 take about {door.hours(sum(main))} to read" in told


def test_the_search_finds_words_on_every_page(site, browser):
    browser.open((site / f"{PAGE}.html").as_uri(), READY)
    browser.evaluate("input.value = 'variance'")
    found = browser.evaluate(
        """searchElsewhere('variance').then(() =>
          [...elsewhere.querySelectorAll("a")].map((a) => a.getAttribute("href")))"""
    )
    per_page = Counter(link.split("?")[0] for link in found)
    assert len(per_page) > 5 and f"{PAGE}.html" not in per_page
    assert max(per_page.values()) <= 3  # no page fills the list alone
    assert all((site / link.split("?")[0]).is_file() for link in found)
    browser.open((site / found[0].split("?")[0]).as_uri() + "?find=variance", READY)
    assert browser.evaluate("hits.length") >= 1


def test_the_search_finds_words_across_colours_and_opens_folds(site, browser):
    browser.open((site / f"{PAGE}.html").as_uri(), READY)
    browser.evaluate("search('F.softmax(scores')")  # several colours in one match
    assert browser.evaluate("hits.length") >= 1
    assert browser.evaluate(
        "hits.every((h) => h.map((m) => m.textContent).join('') === 'F.softmax(scores')"
    )
    before = browser.evaluate("main.textContent")
    browser.evaluate("search('divides the variance by')")  # in the folded answers
    assert browser.evaluate("hits.length") == 1
    assert not browser.evaluate("hits[0][0].closest('details').open")
    browser.evaluate("go(1)")
    assert browser.evaluate("hits[0][0].closest('details').open")
    assert browser.evaluate("count.value") == "1 of 1"
    browser.evaluate("search('')")
    assert browser.evaluate("document.querySelectorAll('mark').length") == 0
    assert browser.evaluate("main.textContent") == before


def test_pages_lead_to_colab_only_where_the_course_is_published():
    notebook = shared.read(shared.NOTEBOOKS / "02_averaging.ipynb")
    entry = {"file": "x.html", "title": "X", "shelf": "", "minutes": 7, "colab": ""}
    without, found = book.chapter(notebook, [entry], 0)
    assert "About 7 minutes" in without and "Colab</a>" not in without
    told = book.chapter(notebook, [entry | {"colab": "https://there"}], 0)[0]
    assert '<a href="https://there">Edit in Colab</a>' in told
    assert [heading for _, heading, _ in found][-1] == "Recap"
    assert "lower triangle" in found[-1][2]
