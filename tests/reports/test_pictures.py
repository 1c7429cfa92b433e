"""Pictures: what is written, how wide, the same bytes each time, harmless names, and pages that need nothing."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from PIL import Image

from cuebench.errors import MissingExtra, UserError
from cuebench.reports import embed, theme, vega
from cuebench.reports.marks import table, tooltip
from cuebench.reports.observers import Observers, Series
from cuebench.reports.picture import ENDINGS, Picture
from cuebench.reports.text import distinct, short_name, shorten, width_of, wrapped
from cuebench.reports.vega import alt

HOSTILE = "</script><script>alert(1)</script>\x1b[31m\x00\u202e\ud800 & <img src=x onerror=alert(2)>"
LONG = "a_model_with_a_very_long_name_" * 20


def picture(names=("one", "two"), title="Shape bias"):
    rows = [{"name": name, "value": 0.2 + 0.5 * k, "low": float("nan")} for k, name in enumerate(names)]
    series = Series.of(distinct(names))

    def build(room):
        data = table({**r, "name": name} for r, name in zip(rows, series.names))
        return (
            alt.Chart(data)
            .mark_point()
            .encode(
                x="value:Q",
                y="name:N",
                tooltip=tooltip("name", value=".2f"),
                color=series.colour(),
                shape=series.mark(),
            )
            .properties(width=room, height=40)
        )

    return Picture(title, build, rows, "n = 2")


@pytest.fixture(scope="module")
def plain():
    return picture()


def test_every_ending_is_written_with_the_data_beside_it(plain, tmp_path):
    starts = {".pdf": b"%PDF", ".png": b"\x89PNG", ".svg": b"<svg", ".html": b"<!DOCTYPE html>", ".json": b"{",
              ".csv": b"name,value,low\n"}  # fmt: skip
    assert set(starts) == set(ENDINGS)
    for ending, start in starts.items():
        saved = plain.save(tmp_path / f"made/x{ending}", "column")
        assert saved.file.read_bytes().startswith(start)
        assert saved.data.read_text() == "name,value,low\none,0.2,\ntwo,0.7,\n"
    assert {p.name for p in (tmp_path / "made").iterdir()} == {*(f"x{e}" for e in ENDINGS), "x.data.csv"}
    with pytest.raises(UserError, match=r"cannot write a figure as 'x.gif'(.|\n)*\.pdf, \.png"):
        plain.save(tmp_path / "x.gif")
    with pytest.raises(UserError, match="unknown width 'poster'"):
        plain.spec("poster")


def test_widths_are_those_of_a_column_and_a_page(plain):
    for name, width in theme.WIDTHS.items():
        root = ET.fromstring(plain.svg(name))
        assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(width - 1.5, abs=3)
    image = Image.open(io.BytesIO(plain.png("column", dpi=150)))
    assert image.width == pytest.approx(theme.WIDTHS["column"] * 150 / 72, abs=9)
    sizes = {float(s) for s in re.findall(r'font-size="([\d.]+)', plain.svg("column"))}
    assert min(sizes) >= 6  # points: readable in print


def test_the_same_data_give_the_same_bytes(plain):
    again = picture()
    assert (again.svg(), again.json()) == (plain.svg(), plain.json())
    assert vega.as_spec(lambda: alt.layer(plain.build(99), plain.build(99)), {})["datasets"].keys() == {"table1"}


def test_a_notebook_shows_it(plain):
    bundle, metadata = plain._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v6+json"]["title"]["text"] == ["Shape bias"]
    drawn = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))
    assert drawn.width == pytest.approx(2 * metadata["image/png"]["width"], abs=12), "sharp on a fine screen"


def test_hostile_names_do_nothing():
    hostile = picture((HOSTILE, LONG, "=cmd()"), title=HOSTILE)
    svg = hostile.svg("column")
    root = ET.fromstring(svg)  # valid XML, so neither markup nor control characters
    assert not [e for e in root.iter() if e.tag.endswith(("script", "img"))]
    assert vega.width_of_svg(svg) <= theme.WIDTHS["column"] + 3
    page = hostile.html()
    assert page.count("<script") == page.count("</script>") == 3  # the data, Vega, and what draws
    assert "<img src=x" not in page
    assert next(csv.DictReader(io.StringIO(hostile.csv())))["name"].startswith("</script>")


def test_dark_is_the_same_with_other_colours(plain):
    light, dark = plain.spec(), plain.spec(theme_name="dark")
    assert light["config"]["background"] == theme.PAPER
    assert dark["config"]["background"] == theme.DARK[theme.PAPER]
    assert dark["datasets"] == light["datasets"]
    assert not any(f'"{colour}"' in json.dumps(dark) for colour in theme.DARK)


def test_a_page_has_one_copy_of_vega_and_asks_for_nothing(plain):
    page = embed.page([plain, picture(("three", "four"))], title="Two <charts>")
    assert page.count('class="cuebench-chart"') == 2
    assert page.count("<svg") >= 2  # there without scripts, too
    assert "Two &lt;charts&gt;" in page
    without_vega = page.replace(vega.bundle().replace("</script", "<\\/script").replace("<!--", "<\\!--"), "")
    assert len(without_vega) < len(page) - 500_000
    assert not re.findall(r'(?:src|href)="', re.sub(r"<svg.*?</svg>", "", without_vega, flags=re.DOTALL))
    small = embed.chart(plain, drawn=False)
    assert "<svg" not in small
    narrow = json.loads(re.search(r'<script type="application/json">(.*?)</script>', small, re.DOTALL)[1])
    assert {"wide", "narrow", "datasets"} == set(narrow)


def test_without_altair_everything_but_drawing_works(tmp_path):
    """In a process of its own, in which neither Altair nor vl-convert can be imported."""
    code = (
        "import sys; sys.modules['altair'] = sys.modules['vl_convert'] = None\n"
        "from cuebench.registry import figures\n"
        "from cuebench.errors import MissingExtra\n"
        "assert len(list(figures.usable())) > 15\n"
        "picture = figures.get('texture_sheet')(textures=['grid'])\n"
        "assert picture.save(sys.argv[1] + '/x.csv').file.read_text().startswith('texture')\n"
        "try:\n    picture.save(sys.argv[1] + '/x.svg')\n"
        "except MissingExtra as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert "drawing a figure needs the extra 'report'" in done.stdout
    assert "pip install 'cuebench[report]'" in done.stdout
    assert issubclass(MissingExtra, UserError)


# ------------------------------------------------------------------------------------------- names and observers


def test_names_are_short_different_and_fit():
    assert shorten("a very long name of a class", 11) == "a ver…class"
    assert short_name("onnx:/a/b/net1.1.onnx") == "net1.1"
    assert short_name("checkpoint:/a/m.safetensors?arch=torchvision:m") == "m"
    assert short_name("onnx:/b/net.onnx", ["onnx:/a/net.onnx", "onnx:/b/net.onnx"]) == "onnx:/b/net.onnx"
    assert len(set(distinct(["x" * 90 + str(k // 2) for k in range(6)]))) == 6
    assert all(width_of(line, 7) <= 100 for line in wrapped("some words that are broken " * 5 + LONG, 100, 7))


def test_observers_keep_their_colours_whoever_is_shown():
    kinds = {
        "people": "people",
        "p1": "person",
        "a": "model",
        "b": "model",
        "ideal:texture": "ideal",
        "a#random0": "random",
    }
    observers = Observers(kinds)
    alone, together = observers.series(["b"]), observers.series(kinds)
    assert alone.colours[0] == together.colours[together.names.index("b")]
    assert together.names[0] == "people"
    assert set(together.colours[:2]) == {theme.PEOPLE}
    looks = observers.looks()
    assert looks["ideal:texture"].colour == theme.TEXTURE
    assert looks["a#random0"].colour == theme.NEUTRAL


def test_forty_five_models_look_different():
    looks = Observers({f"net{k}": "model" for k in range(45)}).looks().values()
    assert len({(look.colour, look.mark) for look in looks}) == 45
    meanings = {theme.SHAPE, theme.TEXTURE, theme.NEUTRAL, theme.PEOPLE, *theme.CONDITIONS}
    assert not meanings & set(theme.OBSERVERS)
