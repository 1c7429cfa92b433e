"""Tokens of requests, and how many requests are answered. Addresses are counted in memory and never stored."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from cuebench.study.folder import Study
from cuebench.study.limits import Limiter, Rate, address_key
from cuebench.study.sessions import Refused

Token = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
"""The token of a request: ``Authorization: Bearer …``."""


class Access:
    """Who may do what, how often: participants by their token, starts and wrong tokens by address."""

    def __init__(self, study: Study) -> None:
        settings = study.settings
        self._participants = Limiter(Rate(settings.requests_per_second, 4 * settings.requests_per_second))
        self._starts = Limiter(Rate(settings.starts_per_minute / 60, settings.starts_per_minute))
        self._wrong = Limiter(Rate(0.5, 20))
        self._study = study

    def start(self, request: Request) -> None:
        """Count the start of a session."""
        _within(self._starts, _address(request))

    def participant(self, request: Request, token: Token) -> int:
        """Return whose token came with a request."""
        number = self._study.secrets.number_of(token.credentials) if token else None
        if number is None:
            self._refuse(request)
        _within(self._participants, number or 0)
        return number or 0

    def admin(self, request: Request, token: Token) -> None:
        """Let nobody pass who does not have the admin token."""
        if token is None or not self._study.secrets.is_admin(token.credentials):
            self._refuse(request)

    def _refuse(self, request: Request) -> None:
        _within(self._wrong, _address(request))
        raise Refused(401, "token", "the token is missing or wrong")


def _address(request: Request) -> str:
    return address_key(request.client.host if request.client else "")


def _within(limiter: Limiter, key: str | int) -> None:
    wait = limiter.wait(key)
    if wait:
        raise TooFast(wait)


class TooFast(Exception):
    """Too many requests."""

    def __init__(self, wait: float) -> None:
        self.wait = wait
        super().__init__(f"too many requests: try again in {wait:.1f} s")
