#!/bin/sh
# A copy of the answers that is whole at any time: backup.sh STUDY_FOLDER BACKUP_FOLDER
# (PostgreSQL: pg_dump "$CUEBENCH_STUDY_DATABASE" > FILE)
set -eu
umask 077
if [ ! -f "$1/study.sqlite" ]; then
    echo "$1/study.sqlite is not there: nobody has taken part yet, it is another folder, or answers are in PostgreSQL" >&2
    exit 1
fi
mkdir -p "$2"
python3 - "$1/study.sqlite" "$2/study-$(date -u +%Y%m%dT%H%M%SZ).sqlite" <<'END'
import sqlite3, sys
source, copy = (sqlite3.connect(path) for path in sys.argv[1:])
source.backup(copy)
copy.close()
END
cp "$1/secret" "$1/study.toml" "$1/exclusions.toml" "$2/"
chmod 600 "$2/secret"
