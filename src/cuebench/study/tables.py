"""The tables of a study: participants, what they answered, how they began, whom the experimenter excluded."""

from __future__ import annotations

from cuebench.errors import MissingExtra

try:
    import sqlalchemy as sa
except ModuleNotFoundError as error:
    raise MissingExtra("a study", "study", error.name or "") from None

VERSION = 1
"""Of the tables."""
METADATA = sa.MetaData()
STUDY = sa.Table(
    "study",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("identity", sa.Text, nullable=False),
    sa.Column("design_sha256", sa.Text, nullable=False),
    sa.Column("rules_sha256", sa.Text, nullable=False),
    sa.Column("made_at", sa.Text, nullable=False),
)
"""One row: whose database this is. Its lock orders the starts of participants."""
PARTICIPANTS = sa.Table(
    "participants",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("slot", sa.Integer, nullable=False, index=True),
    sa.Column("entry_hash", sa.Text, unique=True),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("group", sa.Text, nullable=False),
    sa.Column("language", sa.Text, nullable=False),
    sa.Column("started_at", sa.Text, nullable=False),
    sa.Column("last_at", sa.Text, nullable=False),
    sa.Column("finished_at", sa.Text),
    sa.Column("excluded", sa.Text, nullable=False, server_default=""),
    sa.Column("length", sa.Integer),
    sa.Column("trials", sa.Text),
)
"""One row for each person. ``slot``: which of the design's assignments; that of a drop-out is given out again."""
ANSWERS = sa.Table(
    "answers",
    METADATA,
    sa.Column("participant", sa.Integer, sa.ForeignKey(PARTICIPANTS.c.number), primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("correct", sa.Boolean),
    sa.Column("response", sa.Text, nullable=False),
    sa.Column("rt_ms", sa.Double),
    sa.Column("planned_ms", sa.Integer),
    sa.Column("shown_ms", sa.Double),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("client", sa.Text, nullable=False),
    sa.Column("answered_at", sa.Text, nullable=False),
)
STARTS = sa.Table(
    "starts",
    METADATA,
    sa.Column("participant", sa.Integer, sa.ForeignKey(PARTICIPANTS.c.number), primary_key=True, autoincrement=False),
    sa.Column("key_hash", sa.Text, nullable=False, index=True),
)
"""The key that a browser drew before it asked to start: a request that is repeated finds the participant it made."""
EXCLUSIONS = sa.Table(
    "exclusions",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("participant", sa.Integer, sa.ForeignKey(PARTICIPANTS.c.number), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("decided_at", sa.Text, nullable=False),
)
"""Every decision of an experimenter to exclude somebody (or, without a reason, to include them again)."""
