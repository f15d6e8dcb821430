-- 1: the first format
CREATE TABLE IF NOT EXISTS pregel_threads (
    tno          INTEGER PRIMARY KEY,
    thread       TEXT    NOT NULL UNIQUE,
    epoch        INTEGER NOT NULL,
    run          BLOB,
    seq          INTEGER NOT NULL DEFAULT 0,
    mark         BLOB,
    last_id      BLOB,
    gen          INTEGER NOT NULL DEFAULT 0,
    inbox        INTEGER NOT NULL DEFAULT 0,
    owner        TEXT,
    boot         TEXT,
    ttl          REAL    NOT NULL DEFAULT 0,
    expires      REAL    NOT NULL DEFAULT 0,
    expires_boot REAL    NOT NULL DEFAULT 0,
    status       TEXT    NOT NULL DEFAULT 'idle',
    reason       TEXT    NOT NULL DEFAULT '',
    asked        TEXT    NOT NULL DEFAULT '',
    pin          BLOB,
    crashes      INTEGER NOT NULL DEFAULT 0,
    wake_at      REAL,
    graph        TEXT    NOT NULL DEFAULT '',
    meta         TEXT,
    updated_at   REAL    NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS pregel_namespaces (
    tno  INTEGER NOT NULL,
    ns   INTEGER NOT NULL,
    text TEXT    NOT NULL,
    PRIMARY KEY (tno, ns),
    UNIQUE (tno, text)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pregel_names (
    id   INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS pregel_checkpoints (
    tno        INTEGER NOT NULL,
    ns         INTEGER NOT NULL,
    id         BLOB    NOT NULL,
    parent     BLOB,
    base       BLOB,
    lineage    BLOB    NOT NULL,
    epoch      INTEGER NOT NULL,
    step       INTEGER NOT NULL,
    source     TEXT    NOT NULL,
    run_id     TEXT,
    created_at REAL    NOT NULL,
    metadata   TEXT    NOT NULL,
    manifest   BLOB    NOT NULL,
    PRIMARY KEY (tno, ns, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pregel_checkpoints_run ON pregel_checkpoints (run_id) WHERE run_id IS NOT NULL;
CREATE TABLE IF NOT EXISTS pregel_channel_values (
    tno     INTEGER NOT NULL,
    ns      INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    type    TEXT    NOT NULL,
    blob    BLOB    NOT NULL,
    prev    INTEGER,
    base    INTEGER,
    fold    INTEGER,
    n       INTEGER,
    PRIMARY KEY (tno, ns, channel, at, kind)
);
CREATE TABLE IF NOT EXISTS pregel_writes (
    tno        INTEGER NOT NULL,
    ns         INTEGER NOT NULL,
    checkpoint BLOB    NOT NULL,
    task       BLOB    NOT NULL,
    idx        INTEGER NOT NULL,
    channel    INTEGER NOT NULL,
    type       TEXT    NOT NULL,
    blob       BLOB    NOT NULL,
    path       TEXT    NOT NULL,
    name       INTEGER NOT NULL,
    child      BLOB,
    PRIMARY KEY (tno, ns, checkpoint, task, idx)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pregel_tombstones (
    digest     BLOB PRIMARY KEY,
    epoch      INTEGER NOT NULL,
    deleted_at REAL    NOT NULL
) WITHOUT ROWID;
