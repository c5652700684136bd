#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the screenshot of the README: the start of the page for tests/golden/report/example.json.

Usage: tests/report/screenshot.py    after a change of the page that is visible there
"""
from pathlib import Path

from browser import Browser

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/images/report.png"
WIDTH, HEIGHT = 1080, 1210


def main():
    browser = Browser()
    page = browser.open(ROOT / "tests/golden/report/example.html", WIDTH, "light")
    page.screenshot(PICTURE, HEIGHT)
    browser.close()


if __name__ == "__main__":
    main()
