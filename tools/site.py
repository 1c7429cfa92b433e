"""Build the documentation as a site: ``python tools/site.py [FOLDER]``, by default ``build/site``.

The pages of ``docs/`` and the files beside it are joined with a reference that is made here: a page for each protocol
and each kind of part from what ``cuebench explain`` says, a page of all verbs from their help, and pages of Python from
docstrings (mkdocstrings). The scripts of ``gallery`` are run, and shown with their pictures; these are kept in
``build/gallery`` until the source changes. Zensical then makes the site, and refuses links to nowhere.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SITE = "site"
"""Folder below ``build``."""
BESIDE = {"README.md": "index.md", "SECURITY.md": "security.md", "CONTRIBUTING.md": "contributing.md",
          "benchmarks/README.md": "benchmarks.md", "examples/plugin/README.md": "plugin.md",
          "CITATION.cff": "CITATION.cff"}  # fmt: skip
"""Files outside of ``docs`` that are pages too."""
PYTHON = {
    "Measure": ["runs.evaluate.evaluate", "runs.score.score", "runs.merge.merge", "runs.estimate.estimate_cost",
                "runs.scores.load", "runs.scores.Scores"],
    "Observers": ["observers.wrap.wrap", "observers.preprocess.Preprocess", "observers.base.Observer",
                  "observers.base.Batch", "labels.LabelSpace", "labels.LabelMap"],
    "Stimuli and results": ["types.Stimulus", "types.StimulusSet", "types.Score", "types.Estimate", "types.Interval"],
    "Reports": ["reports.html.report.report", "reports.board.site.board"],
    "Training": ["callbacks"],
    "Statistics": ["statistics.clustered", "statistics.paired", "statistics.agreement"],
    "Contracts of parts": ["protocols.base.Protocol", "metrics.base.Metric", "cues.base", "observers.base.Adapter"],
    "Checks for parts of your own": ["testing"],
}  # fmt: skip
NAV = {
    "Tutorials": ["tutorials/model.md", "tutorials/people.md", "tutorials/stimuli.md", "tutorials/protocol.md",
                  "first_hour.md", "from_model_vs_human.md", "peers.md"],
    "How to": ["own_models.md", "own_data.md", "training.md", "notebooks.md", "comparing.md", "intervals.md",
               "figures.md", "report.md", "board.md", "chat_models.md", "studies.md", "studies_design.md",
               "studies_analysis.md", "cluster.md", "cli.md", "extending.md", "plugin.md", "contributing.md"],
    "Protocols": ["metrics.md", "refined_bias.md", "cue_decomposition.md", "triplets.md", "texture_association.md",
                  "human_alignment.md", "cues.md", "stimuli.md"],
    "Findings": ["real_models.md", "field.md", "published.md", "calibration.md", "calibration_controls.md",
                 "one_thing.md", "coverage.md"],
    "How it works": ["design.md", "trust.md", "security.md", "files.md", "speed.md", "benchmarks.md"],
}  # fmt: skip


def main(out: Path) -> int:
    """Assemble the pages, make the reference, build the site."""
    work = ROOT / "build" / "docs"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(ROOT / "docs", work)
    for source, page in BESIDE.items():
        shutil.copy(ROOT / source, work / page)
    for page in work.rglob("*.md"):
        page.write_text(links(page.read_text(), page.relative_to(work)))
    listed = {"index.md", *(page for pages in NAV.values() for page in pages)}
    unlisted = {p.relative_to(work).as_posix() for p in work.rglob("*.md")} - listed
    if unlisted:
        print(f"not in the navigation: {', '.join(sorted(unlisted))}", file=sys.stderr)
        return 1
    pictures = run_gallery()
    if pictures is None:
        return 1
    made = write_gallery(work / "gallery", pictures) | write_reference(work / "reference")
    config = work.parent / "zensical.toml"
    config.write_text(configuration(made, work))
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(config)]
    done = subprocess.run(command, cwd=work.parent, check=False)
    built = work.parent / SITE
    if done.returncode == 0 and out.resolve() != built:  # Zensical writes below its own settings only
        shutil.copytree(built, out, dirs_exist_ok=True)
    return done.returncode


def links(text: str, page: Path) -> str:
    """Return a page whose links lead to where its neighbours lie in the site."""
    up = "../" * (len(page.parts) - 1)
    if page.as_posix() in BESIDE.values():
        text = re.sub(r"\]\((?:\.\./)*docs/", "](", text)
    for source, target in BESIDE.items():
        text = re.sub(rf"\]\((?:\.\./)*{re.escape(source)}(#[^)]*)?\)", rf"]({up}{target}\1)", text)
    return text


# ----------------------------------------------------------------------------------------------------- the gallery


def run_gallery() -> Path | None:
    """Run the scripts of the gallery unless nothing has changed since; return the folder of their pictures."""
    out = ROOT / "build" / "gallery"
    files = sorted(path for folder in ("src", "gallery", "examples") for path in (ROOT / folder).rglob("*.py"))
    key = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    stamp = out / "source.sha256"
    if stamp.is_file() and stamp.read_text() == key:
        return out
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "gallery"]
    environment = {**os.environ, "CUEBENCH_GALLERY": str(out)}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        return None
    stamp.write_text(key)
    return out


def write_gallery(folder: Path, pictures: Path) -> dict[str, list[str]]:
    """Write a page for each kind of part: what each script shows, its picture and its code."""
    about = "Everything is drawn or simulated: the pictures show what a part does, and are no results."
    folder.mkdir()
    for kind in ("cues", "protocols", "figures"):
        sections = []
        for script in sorted((ROOT / "gallery" / kind).glob("*.py")):
            code = script.read_text("utf-8")
            text = ast.get_docstring(ast.parse(code)) or ""
            (picture,) = (p for p in (pictures / kind).glob(f"{script.stem}.*") if p.suffix in (".png", ".svg"))
            stimuli = pictures / kind / f"{script.stem}_stimuli.png"
            shown = [p for p in (stimuli, picture) if p.is_file()]
            for file in shown:
                shutil.copy(file, folder / f"{kind}_{file.name}")
            images = "\n\n".join(f"![{script.stem}]({kind}_{file.name}){{ loading=lazy }}" for file in shown)
            body = code.split('"""', 2)[2].strip()
            said = text.partition(": ")[2]
            sections.append(
                f"## {script.stem}\n\n{said[:1].upper()}{said[1:]}\n\n"
                f"{images}\n\n"
                f"```python\n# python -m gallery {script.stem}\n{body}\n```"
            )
        write(folder / f"{kind}.md", f"# Gallery: {kind}\n\n{about}\n\n" + "\n\n".join(sections))
    return {"Gallery": [f"gallery/{kind}.md" for kind in ("cues", "protocols", "figures")]}


# --------------------------------------------------------------------------------------------------- the reference


def write_reference(folder: Path) -> dict[str, list[str]]:
    """Write the generated pages; return their names by section of the navigation."""
    from cuebench import registry
    from cuebench.catalogue.explain import explain

    folder.mkdir()
    pages: dict[str, list[str]] = {"Reference of protocols": [], "Reference": []}
    for name in registry.protocols:
        write(folder / f"protocol_{name}.md", f"# {name}\n\n{facts(explain(name))}")
        pages["Reference of protocols"].append(f"reference/protocol_{name}.md")
    titles = {"metrics": "Metrics", "cues": "Cues", "figures": "Figures", "makers": "Makers of stimuli",
              "readers": "Readers of stimuli", "observers": "Sources of observers"}  # fmt: skip
    for kind, title in titles.items():
        sections = [f"## {name}\n\n{facts(explain(name), kind)}" for name in registry.KINDS[kind]]
        write(folder / f"{kind}.md", f"# {title}\n\n" + "\n\n".join(sections))
        pages["Reference"].append(f"reference/{kind}.md")
    write(folder / "verbs.md", "# Verbs of the command line\n\n" + verbs())
    pages["Reference"].append("reference/verbs.md")
    for title, names in PYTHON.items():
        page = f"python_{title.split()[0].lower()}.md"
        write(folder / page, f"# Python: {title}\n\n" + "\n\n".join(f"::: cuebench.{name}" for name in names))
        pages["Reference"].append(f"reference/{page}")
    return pages


def write(path: Path, text: str) -> None:
    """Write a page."""
    path.write_text(text.rstrip() + "\n", "utf-8")


def facts(known: dict[str, Any], kind: str = "") -> str:
    """Return what ``explain`` says as Markdown."""
    lines = []
    for key, value in known.items():
        if key in ("name", "kind") or (kind and ": " in key):
            continue
        title = f"**{key}**"
        if key == "bibtex" or (isinstance(value, str) and "\n" in value):
            lines.append(f"{title}\n\n```text\n{value}\n```")
        elif isinstance(value, list | tuple):
            lines.append(f"{title}\n\n" + "\n".join(f"- {plain(str(item))}" for item in value))
        else:
            lines.append(f"{title}: {plain(str(value))}")
    return "\n\n".join(lines)


def plain(text: str) -> str:
    """Return a text in which nothing is read as Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", text)


def verbs() -> str:
    """Return the help of every verb and of what stands below it."""
    import os
    from contextlib import redirect_stdout
    from io import StringIO

    from cuebench import cli

    os.environ |= {"COLUMNS": "110", "TERMINAL_WIDTH": "110", "TERM": "dumb", "NO_COLOR": "1"}

    def help_of(words: list[str]) -> str:
        text = StringIO()
        with redirect_stdout(text):
            cli.invoke([*words, "--help"])
        return f"{'#' * (1 + len(words))} {' '.join(words)}\n\n```text\n{text.getvalue().strip()}\n```"

    sections = []
    for verb in cli.verbs():
        below = getattr(cli.module_of(verb), "COMMANDS", ())
        sections += [help_of([verb]), *(help_of([verb, word]) for word in below)]
    return "\n\n".join(sections)


def configuration(reference: dict[str, list[str]], work: Path) -> str:
    """Return the settings of the site."""
    sections = [*NAV.items(), *reference.items()]
    entries = [f'  {{ "{title}" = [{", ".join(f"{page!r}" for page in pages)}] }},' for title, pages in sections]
    return "\n".join(
        [
            "[project]",
            'site_name = "cuebench"',
            'site_description = "Measures what a vision model sees with: shape or texture."',
            f"docs_dir = '{work.name}'",
            f"site_dir = '{SITE}'",
            "use_directory_urls = false",
            'nav = [\n  { "Start" = "index.md" },',
            *entries,
            "]",
            "[project.theme]",
            'features = ["navigation.tabs", "navigation.top", "content.code.copy", "search.highlight"]',
            "font = false  # nothing is loaded from other hosts",
            "[[project.theme.palette]]",
            'media = "(prefers-color-scheme: light)"\nscheme = "default"',
            "[[project.theme.palette]]",
            'media = "(prefers-color-scheme: dark)"\nscheme = "slate"',
            "[project.plugins.mkdocstrings.handlers.python]",
            f"paths = ['{ROOT / 'src'}']",
            "[project.plugins.mkdocstrings.handlers.python.options]",
            'docstring_style = "numpy"',
            "show_root_heading = true",
            "show_source = false",
            'members_order = "source"',
            "separate_signature = true",
            "show_root_full_path = false",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"))
