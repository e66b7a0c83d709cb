#!/usr/bin/env python3
"""Draw the pictures that stand for the book elsewhere: beside a link to it, and on the home screen of a phone.

    CHROMIUM=… preview.py      writes book/_static/preview.png and book/_static/touch-icon.png

They are committed; run this after a change to the title, order.svg or mark.svg.
"""

import io
import os

from notebook_files import ROOT
from PIL import Image
from playwright.sync_api import sync_playwright

STATIC = ROOT / "book/_static"
PREVIEW = """<body style="margin:0;width:1200px;height:630px;background:#fff;color:#1f262e;display:flex;
flex-direction:column;align-items:center;justify-content:center;font-family:'Liberation Sans',Arial,sans-serif">
<style>svg{{width:820px;height:auto;margin-top:14px}}</style>
<div style="font-size:60px;font-weight:700;letter-spacing:-1px">Where Order Comes From</div>
<div style="font-size:29px;margin-top:10px;color:#55606c">Positional encodings for attention, proved, built and measured</div>
{picture}</body>"""
ICON = """<body style="margin:0;width:180px;height:180px;background:#fff;display:flex;align-items:center;
justify-content:center"><style>svg{{width:128px}}</style>{picture}</body>"""


def main() -> None:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=os.environ.get("CHROMIUM"), args=["--no-sandbox"])
        for name, form, drawn, width, height in (
            ("preview.png", PREVIEW, "order.svg", 1200, 630),
            ("touch-icon.png", ICON, "mark.svg", 180, 180),
        ):
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_content(form.format(picture=(STATIC / drawn).read_text(encoding="utf-8")))
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(128, dither=Image.Dither.NONE)
            picture.save(STATIC / name, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
