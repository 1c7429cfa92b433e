"""Show the stimuli to people in a browser, and analyse it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuebench.cli._json import print_json
from cuebench.cli._study_analysis import analyse, power
from cuebench.cli._study_rehearse import rehearse

Folder = Annotated[Path, typer.Argument(help="A study folder.")]
Url = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="CUEBENCH_STUDY_DATABASE",
        help="postgresql://USER:PASSWORD@HOST/NAME; default: study.sqlite in the folder.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


def new(
    folder: Annotated[Path, typer.Argument(help="Folder to make.")],
    design: Annotated[str, typer.Option(help="A built-in design, or a folder with a design.toml.")],
    data_root: Annotated[Path | None, typer.Option(help="Folder with the stimuli, as for `cuebench run`.")] = None,
    run: Annotated[
        Path | None, typer.Option(help="texture_words: a run of texture_association whose textures are checked.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of images, orders and groups.")] = 0,
    participants: Annotated[int, typer.Option(help="How many people are wanted; 0: any number.")] = 0,
    language: Annotated[
        list[str] | None, typer.Option(help="Language that is offered, again for more; default: all of the design.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title that participants see; default: that of the design.")] = "",
    contact: Annotated[str, typer.Option(help="Whom participants can write to.")] = "",
    completion_code: Annotated[str, typer.Option(help="Code of Prolific; default: a code for each person.")] = "",
    return_url: Annotated[str, typer.Option(help="Where people return to; {code} is replaced.")] = "",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")] = False,
    as_json: Json = False,
) -> None:
    """Make a study folder: images, design, exclusion rules, secrets."""
    from cuebench.cli._progress import progress_bar
    from cuebench.reading import user_path
    from cuebench.study.folder import NewStudy, new_study

    settings = NewStudy(
        design=design,
        data_root=data_root,
        run=run,
        title=title,
        contact=contact,
        seed=seed,
        participants=participants,
        languages=tuple(language or ()),
        completion_code=completion_code,
        return_url=return_url,
    )
    with progress_bar(f"study {design}", quiet=quiet or as_json) as progress:
        study = new_study(user_path(folder), settings, progress)
    trials = len(study.assign(0)[1])
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "design": study.settings.design,
                "images": len(study.images),
                "trials": trials,
                "rules_sha256": study.rules.sha256,
                "notes": study.settings.notes,
                "fill_in": study.gaps,
            }
        )
    elif not quiet:
        print(f"{folder}: {len(study.images):,} images, {trials:,} trials for each participant")
        for note in study.settings.notes:
            print(f"note: {note}")
        print("before anybody takes part:")
        for gap in study.gaps:
            print(f"  fill in {folder / gap}")
        print(f"  read and fix the exclusion rules: {folder / 'exclusions.toml'}")
        print(f"try it:  cuebench study serve {folder}{' --draft' if study.gaps else ''}")


def serve(
    folder: Folder,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0: all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0: one that is free.")] = 8000,
    database: Url = "",
    workers: Annotated[int, typer.Option(help="Processes; one is enough for hundreds of people.")] = 1,
    root_path: Annotated[str, typer.Option(help="Path below which a reverse proxy shows the study: /study.")] = "",
    proxy: Annotated[
        str, typer.Option("--trusted-proxy", help="Addresses of reverse proxies whose headers are believed.")
    ] = "127.0.0.1",
    draft: Annotated[
        bool,
        typer.Option("--draft", help="To look at it: with a banner, a database of its own, answers that never count."),
    ] = False,
) -> int:
    """Run the server of a study until Ctrl-C or SIGTERM; answers on their way are stored before it ends."""
    from cuebench.reading import user_path
    from cuebench.study.serve import Options, serve_study

    options = Options(host=host, port=port, workers=workers, root_path=root_path, trusted_proxy=proxy, draft=draft)
    return serve_study(user_path(folder), database, options)


def export(
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", help="answers.parquet or answers.csv.")],
    database: Url = "",
    draft: Annotated[bool, typer.Option("--draft", help="Of `study serve --draft`: all rows are excluded.")] = False,
    as_json: Json = False,
) -> None:
    """Write all answers as a table that `recorded:` reads; the server may run meanwhile."""
    from cuebench.reading import user_path
    from cuebench.study.database import Database
    from cuebench.study.exclusions import counted
    from cuebench.study.export import write_export
    from cuebench.study.folder import open_study

    study = open_study(user_path(folder), draft=draft)
    source = Database(database or study.database_url)
    source.prepare(study.facts)
    rows = write_export(study, source, user_path(out))
    source.close()
    people = len({row["participant"] for row in rows})
    excluded = counted([row["excluded"] for row in rows if row["kind"] == "trial"])
    if as_json:
        print_json({"file": str(out), "participants": people, "answers": len(rows), "excluded": excluded})
        return
    print(f"{out}: {len(rows):,} answers of {people:,} people")
    for reason, count in excluded.items():
        print(f"excluded: {count:,} trials, {reason}")
    if study.rules_note:
        print(f"note: {study.rules_note}")


def bundle(
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", help="Folder to make.")],
    domain: Annotated[str, typer.Option(help="Name of the server: study.example.org.")],
    postgresql: Annotated[bool, typer.Option("--postgresql", help="Keep the answers in PostgreSQL.")] = False,
    wheel: Annotated[
        Path | None, typer.Option(help="A wheel of cuebench; default: this version from the package index.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write what a laboratory server needs: the study, Docker or systemd, a reverse proxy, a backup."""
    from cuebench.reading import user_path
    from cuebench.study.bundle import write_bundle
    from cuebench.study.folder import open_study

    study, place = open_study(user_path(folder)), user_path(out)
    files = write_bundle(study, place, domain=domain, postgresql=postgresql, wheel=user_path(wheel) if wheel else None)
    if as_json:
        print_json({"folder": str(out), "files": files, "fill_in": study.gaps})
        return
    print(f"{out}: the study, and {', '.join(files)}")
    for gap in study.gaps:
        print(f"before it starts, fill in {out / 'study' / gap}")
    print(f"go on with {out / 'README.md'}; the bundle holds the study's secrets")


COMMANDS = {
    "new": new,
    "serve": serve,
    "export": export,
    "bundle": bundle,
    "analyse": analyse,
    "power": power,
    "rehearse": rehearse,
}
