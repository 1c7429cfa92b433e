"""Tables of texts as Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from cuebench.errors import printable

_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "−": "$-$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}
"""Characters that LaTeX takes for commands, or may not have."""


def markdown_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = (), note: str = ""
) -> list[str]:
    """Return the lines of a Markdown table.

    Parameters
    ----------
    title : str
        Printed above in bold; empty: none.
    columns : sequence of str
        Headings.
    rows : sequence of sequences of str
        Cells.
    right : collection of str
        Columns that are aligned to the right.
    note : str
        Printed below: what must be read with the numbers (`protocols.captions.caption`).
    """
    lines = [f"**{title}**", ""] if title else []
    lines.append(f"| {' | '.join(columns)} |")
    lines.append("|" + "|".join("---:" if c in right else "---" for c in columns) + "|")
    lines += ["| " + " | ".join(map(_markdown, row)) + " |" for row in rows]
    return [*lines, "", _markdown(note)] if note else lines


def latex_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = (), note: str = ""
) -> list[str]:
    """Return the lines of a LaTeX table (package booktabs), the note in its caption; see `markdown_table`."""
    texts = ". ".join(filter(None, (title, note)))
    alignment = "".join("r" if c in right else "l" for c in columns)
    lines = [r"\begin{table}", r"  \centering"]
    lines += [rf"  \caption{{{latex(texts)}}}"] if texts else []
    lines += [rf"  \begin{{tabular}}{{{alignment}}}", r"    \toprule"]
    lines.append(f"    {' & '.join(map(latex, columns))} \\\\")
    lines.append(r"    \midrule")
    lines += [f"    {' & '.join(map(latex, row))} \\\\" for row in rows]
    return [*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table}"]


def html_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = (), note: str = ""
) -> str:
    """Return an HTML table for a notebook, which styles it; parameters as in `markdown_table`."""

    def line(tag: str, cells: Sequence[str]) -> str:
        sides = ["right" if c in right else "left" for c in columns]
        texts = [f'<{tag} style="text-align:{side}">{html(text)}</{tag}>' for side, text in zip(sides, cells)]
        return f"<tr>{''.join(texts)}</tr>"

    caption = f'<caption style="text-align:left;font-weight:bold">{html(title)}</caption>' if title else ""
    body = "".join(line("td", row) for row in rows)
    foot = f'<tfoot><tr><td colspan="{len(columns)}" style="text-align:left">{html(note)}</td></tr></tfoot>'
    return f"<table>{caption}<thead>{line('th', columns)}</thead><tbody>{body}</tbody>{foot if note else ''}</table>"


def html(text: str) -> str:
    """Return a text that means itself in HTML; what nobody can see is spelled out."""
    return escape(printable(text))


def latex(text: str) -> str:
    """Return a text as LaTeX prints it."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _markdown(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
