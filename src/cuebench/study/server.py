"""The server of a study: hands trials to the page, stores every answer before the next trial appears.

No cookie, no address, no account: a participant is a number and a token. ``docs/studies.md`` has the routes.
"""

from __future__ import annotations

import asyncio
import json
import mimetypes
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cuebench._version import __version__
from cuebench.errors import MissingExtra
from cuebench.study import database as db
from cuebench.study.access import Access, Token, TooFast
from cuebench.study.admin import add_admin_routes
from cuebench.study.folder import Study
from cuebench.study.guards import Guard, security_headers
from cuebench.study.markdown import to_html
from cuebench.study.sessions import Refused, Session, Sessions, entry_from
from cuebench.study.types import LONGEST_TEXT, Answer
from cuebench.study.writer import Stopping

try:
    import sqlalchemy as sa
    from fastapi import FastAPI, Request
    from fastapi.concurrency import run_in_threadpool
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import FileResponse, JSONResponse, Response
    from fastapi.staticfiles import StaticFiles
    from pydantic import BaseModel, ConfigDict, Field
except ModuleNotFoundError as error:
    raise MissingExtra("a study", "study", error.name or "") from None

T = TypeVar("T")
WEB = Path(__file__).parent / "web"
FOR_EVER = "public, max-age=31536000, immutable"
_MOST_CLIENT = 2_000
"""Most characters of the facts of a browser."""

Identifier = Annotated[str, Field(max_length=200, pattern=r"^[\x21-\x7e]*$")]
Option = Annotated[str, Field(max_length=200)]
Key = Annotated[str, Field(pattern=r"^([A-Za-z0-9_-]{16,100})?$")]
Milliseconds = Annotated[float, Field(ge=0, le=1e10, allow_inf_nan=False)]
Fact = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str | None


class NewParticipant(BaseModel):
    """Somebody who read the consent form and agrees; a request with the same ``key`` is the same request again."""

    model_config = ConfigDict(extra="forbid")
    consent: bool
    language: Annotated[str, Field(max_length=20)] = ""
    entry: Annotated[dict[Annotated[str, Field(max_length=50)], Identifier], Field(max_length=20)] = {}
    key: Key = ""


class NewAnswer(BaseModel):
    """One answer, as ``cuebench.study.types.Answer``."""

    model_config = ConfigDict(extra="forbid")
    position: Annotated[int, Field(ge=0, le=100_000, strict=True)]
    response: Annotated[list[Option], Field(max_length=100)] = []
    rt_ms: Milliseconds | None = None
    planned_ms: Annotated[int, Field(ge=0, le=10**9)] | None = None
    shown_ms: Milliseconds | None = None
    text: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""
    client: Annotated[dict[Annotated[str, Field(max_length=50)], Fact], Field(max_length=40)] = {}


class Problem(BaseModel):
    """Why a request was refused: a sentence, a code for programs, and where it is malformed."""

    detail: str
    code: str = ""
    problems: list[dict[str, Any]] = []


def create_app(study: Study, database: db.Database) -> FastAPI:
    """Return the application of a study.

    Parameters
    ----------
    study : Study
        An opened study folder.
    database : Database
        Where answers are stored; it is prepared here and closed when the server stops.
    """
    database.prepare(study.facts)
    sessions = Sessions(study, database)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        sys.setswitchinterval(0.001)  # the thread that answers waits less for one that computes
        yield
        await run_in_threadpool(sessions.close)  # answers on their way are stored

    # The pages with the documentation of the routes load scripts of other hosts.
    app = FastAPI(
        title="cuebench study",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=_errors(400, 422),
    )
    app.state.sessions = sessions
    app.add_middleware(Guard, headers=security_headers(study.settings.frame_ancestors))
    _add_errors(app)
    access = Access(study)
    _add_study_routes(app, sessions)
    _add_session_routes(app, sessions, access)
    _add_files(app, study)
    add_admin_routes(app, sessions, access)
    return app


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Response:
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
        return JSONResponse({"detail": error.detail, "code": error.code}, error.status, headers)

    @app.exception_handler(TooFast)
    async def too_fast(_: Request, error: TooFast) -> Response:
        headers = {"Retry-After": str(int(error.wait) + 1)}
        return JSONResponse({"detail": str(error), "code": "too_fast"}, 429, headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        # What was sent is not repeated: it can hold anything, also numbers that JSON does not have.
        problems = [{"where": [str(part) for part in e["loc"]], "what": e["msg"]} for e in error.errors()]
        return JSONResponse({"detail": "the request is malformed", "code": "malformed", "problems": problems}, 422)

    @app.exception_handler(sa.exc.SQLAlchemyError)
    async def no_database(_: Request, error: Exception) -> Response:
        return _unavailable("the answer could not be stored; try again")

    @app.exception_handler(Stopping)
    async def stopping(_: Request, error: Stopping) -> Response:
        return _unavailable("the server is stopping; try again")


def _unavailable(detail: str) -> Response:
    return JSONResponse({"detail": detail, "code": "unavailable"}, 503, {"Retry-After": "2"})


def _add_study_routes(app: FastAPI, sessions: Sessions) -> None:
    study = sessions.study

    @app.get("/health")
    def health() -> dict[str, str]:
        """Tell whether the server runs and its database answers."""
        with sessions.database.reading() as connection:
            connection.execute(sa.text("SELECT 1"))
        return {"status": "ok", "version": __version__}

    @cache
    def described(language: str) -> bytes:
        return json.dumps(study_description(study, language), ensure_ascii=False).encode()

    @app.get("/api/study", response_model=dict[str, Any])
    async def show_study(lang: str = "") -> Response:
        """Return title, texts and timeline in one language."""
        return Response(described(study.language(lang)), media_type="application/json")


def _add_session_routes(app: FastAPI, sessions: Sessions, access: Access) -> None:
    study = sessions.study

    async def in_thread(do: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(sessions.threads, do)

    @app.post(
        "/api/participants",
        response_model=dict[str, Any],
        responses=_errors(403, 409, 413, 429),
        openapi_extra={"security": [{}]},  # the token may be absent
    )
    async def start(new: NewParticipant, request: Request, token: Token) -> Response:
        """Start a session, or find the one of the same identifier again: for the browser that has its token or key."""
        if not new.consent:
            raise Refused(403, "consent", "nobody takes part without having agreed")
        entry, language = entry_from(new.entry), study.language(new.language)
        access.start(request)
        held = token.credentials if token else ""
        started = await asyncio.wrap_future(sessions.start(language, entry, held, new.key))
        return await in_thread(lambda: session_response(sessions, sessions.opened(started)))

    @app.get("/api/session", response_model=dict[str, Any], responses=_errors(401, 429))
    async def go_on(request: Request, token: Token) -> Response:
        """Return the session of a token again, with the position to go on at."""
        number = access.participant(request, token)
        return await in_thread(lambda: session_response(sessions, sessions.find(number)))

    @app.post("/api/answers", status_code=201, response_model=dict[str, int], responses=_STORE)
    async def store(new: NewAnswer, request: Request, token: Token) -> Response:
        """Store an answer; the response comes when it is durable."""
        number = access.participant(request, token)
        session = sessions.kept(number)
        if session is None:
            session = await in_thread(lambda: sessions.find(number))
        stored = await asyncio.wrap_future(sessions.store(session, _answer(new)))
        if stored is db.Stored.NOT_NEXT:
            raise Refused(409, "not_next", "this is not the next position of the session")
        return JSONResponse({"next": new.position + 1}, 201 if stored is db.Stored.NEW else 200)

    @app.post("/api/finish", response_model=dict[str, str], responses=_errors(401, 409, 429))
    async def end(request: Request, token: Token) -> Response:
        """End a session whose trials all have an answer."""
        number = access.participant(request, token)

        def finish() -> Response:
            code, url = sessions.finish(sessions.find(number))
            return JSONResponse({"code": code, "url": url})

        return await in_thread(finish)


def session_response(sessions: Sessions, session: Session) -> Response:
    """Return everything that the page needs of a session: trials, images, where to go on."""
    study = sessions.study
    used = dict.fromkeys(i for trial in session.trials for i in trial.stimuli)
    used |= dict.fromkeys(image.id for image in study.images.values() if image.role == "mask")
    images = [study.images[i] for i in used]
    content = {
        "token": study.secrets.token(session.number),
        "participant": db.participant_name(session.number),
        "group": session.group,
        "language": session.language,
        "trials": [trial.shown() for trial in session.trials],
        "images": [
            {"id": i.id, "url": f"images/{i.file}", "sha256": i.sha256, "bytes": i.size, "role": i.role} for i in images
        ],
        "next": sessions.next_position(session.number),
    }
    return JSONResponse(content)


def study_description(study: Study, language: str) -> dict[str, Any]:
    """Return what the page shows before there is a participant."""
    design = study.design
    spoken = study.language(language)
    page = design.page(spoken)
    texts = {name: to_html(design.text(spoken, name)) for name in ("consent", "instructions", "debriefing")}
    return {
        "study": study.settings.name,
        "title": study.settings.title or design.title(spoken),
        "contact": study.settings.contact,
        "draft": study.draft,
        **texts,
        **page,
        "languages": {code: name for code, name in page["languages"].items() if code in study.languages},
    }


def _answer(new: NewAnswer) -> Answer:
    values = new.model_dump()
    if len(str(values["client"])) > _MOST_CLIENT:
        raise Refused(422, "client", f"the facts of the browser are longer than {_MOST_CLIENT} characters")
    return Answer(**{**values, "response": tuple(values["response"])})


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    meaning = {
        400: "the body cannot be read",
        401: "the token is missing or wrong",
        403: "not allowed: no consent, a preview, or the study is full",
        409: "begun in another browser, not the next position, or not finished",
        413: "the request is too large",
        422: "malformed, or it does not fit the trial",
        429: "too many requests",
        503: "not stored; try again",
    }
    return {status: {"description": meaning[status], "model": Problem} for status in statuses}


_STORE: dict[int | str, dict[str, Any]] = {
    200: {"description": "it is already stored; the first answer counts", "model": dict[str, int]},
    **_errors(401, 409, 413, 429, 503),
}


def _add_files(app: FastAPI, study: Study) -> None:
    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return FileResponse(WEB / "page.html", headers={"Cache-Control": "no-cache"})

    @app.get("/images/{name}", response_class=Response, responses={404: {"description": "there is no such image"}})
    def image(name: str) -> Response:
        """Return an image of the study; the name is looked up, it is never a path."""
        study_image = study.images.get(name.partition(".")[0])
        if study_image is None or study_image.file != name:
            raise Refused(404, "image", "there is no such image")
        kind = mimetypes.guess_type(study_image.file)[0] or "application/octet-stream"
        return FileResponse(
            study.folder / "images" / study_image.file, media_type=kind, headers={"Cache-Control": FOR_EVER}
        )

    app.mount("/web", _Files(directory=WEB), name="web")


class _Files(StaticFiles):
    """Our files and jsPsych's: asked for again each time, sent again when they changed."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        """Return a file that browsers ask for again."""
        response = super().file_response(*arguments, **options)
        response.headers["Cache-Control"] = "no-cache"
        return response
