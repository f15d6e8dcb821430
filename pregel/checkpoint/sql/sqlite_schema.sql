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
) WITHOUT ROWID

-- 2: views for people, with ids, names and times as text; a later step that changes a column makes them anew
CREATE VIEW IF NOT EXISTS pregel_view_threads AS
SELECT t.thread, t.status, t.reason,
       t.run IS NOT NULL AS held, t.owner, CASE WHEN t.run IS NOT NULL THEN strftime('%Y-%m-%dT%H:%M:%fZ', t.expires, 'unixepoch') END AS expires,
       CASE WHEN length(t.last_id) = 16
           THEN lower(substr(hex(t.last_id), 1, 8) || '-' || substr(hex(t.last_id), 9, 4) || '-' || substr(hex(t.last_id), 13, 4)
                      || '-' || substr(hex(t.last_id), 17, 4) || '-' || substr(hex(t.last_id), 21))
           ELSE CAST(substr(t.last_id, CASE WHEN hex(substr(t.last_id, 1, 1)) = '01' THEN 2 ELSE 3 END) AS TEXT) END AS last_checkpoint,
       t.epoch, t.seq, t.crashes, t.graph, strftime('%Y-%m-%dT%H:%M:%fZ', t.updated_at, 'unixepoch') AS updated_at
FROM pregel_threads t;
CREATE VIEW IF NOT EXISTS pregel_view_checkpoints AS
SELECT t.thread, n.text AS ns,
       CASE WHEN length(c.id) = 16
           THEN lower(substr(hex(c.id), 1, 8) || '-' || substr(hex(c.id), 9, 4) || '-' || substr(hex(c.id), 13, 4)
                      || '-' || substr(hex(c.id), 17, 4) || '-' || substr(hex(c.id), 21))
           ELSE CAST(substr(c.id, CASE WHEN hex(substr(c.id, 1, 1)) = '01' THEN 2 ELSE 3 END) AS TEXT) END AS checkpoint,
       CASE WHEN length(c.parent) = 16
           THEN lower(substr(hex(c.parent), 1, 8) || '-' || substr(hex(c.parent), 9, 4) || '-' || substr(hex(c.parent), 13, 4)
                      || '-' || substr(hex(c.parent), 17, 4) || '-' || substr(hex(c.parent), 21))
           ELSE CAST(substr(c.parent, CASE WHEN hex(substr(c.parent, 1, 1)) = '01' THEN 2 ELSE 3 END) AS TEXT) END AS parent,
       c.step, c.source, c.run_id, strftime('%Y-%m-%dT%H:%M:%fZ', c.created_at, 'unixepoch') AS created_at,
       c.metadata, length(c.manifest) AS bytes
FROM pregel_checkpoints c
JOIN pregel_threads t ON t.tno = c.tno
JOIN pregel_namespaces n ON n.tno = c.tno AND n.ns = c.ns;
CREATE VIEW IF NOT EXISTS pregel_view_values AS
SELECT t.thread, n.text AS ns, c.text AS channel, v.at, v.kind, v.type, length(v.blob) AS bytes
FROM pregel_channel_values v
JOIN pregel_threads t ON t.tno = v.tno
JOIN pregel_namespaces n ON n.tno = v.tno AND n.ns = v.ns
LEFT JOIN pregel_names c ON c.id = v.channel;
CREATE VIEW IF NOT EXISTS pregel_view_writes AS
SELECT t.thread, n.text AS ns,
       CASE WHEN length(w.checkpoint) = 16
           THEN lower(substr(hex(w.checkpoint), 1, 8) || '-' || substr(hex(w.checkpoint), 9, 4) || '-' || substr(hex(w.checkpoint), 13, 4)
                      || '-' || substr(hex(w.checkpoint), 17, 4) || '-' || substr(hex(w.checkpoint), 21))
           ELSE CAST(substr(w.checkpoint, CASE WHEN hex(substr(w.checkpoint, 1, 1)) = '01' THEN 2 ELSE 3 END) AS TEXT) END AS checkpoint,
       CASE WHEN length(w.task) = 16
           THEN lower(substr(hex(w.task), 1, 8) || '-' || substr(hex(w.task), 9, 4) || '-' || substr(hex(w.task), 13, 4)
                      || '-' || substr(hex(w.task), 17, 4) || '-' || substr(hex(w.task), 21))
           ELSE CAST(substr(w.task, CASE WHEN hex(substr(w.task, 1, 1)) = '01' THEN 2 ELSE 3 END) AS TEXT) END AS task,
       w.idx, k.text AS node, c.text AS channel, w.type, length(w.blob) AS bytes, w.path,
       CASE WHEN length(w.child) = 16
           THEN lower(substr(hex(w.child), 1, 8) || '-' || substr(hex(w.child), 9, 4) || '-' || substr(hex(w.child), 13, 4)
                      || '-' || substr(hex(w.child), 17, 4) || '-' || substr(hex(w.child), 21))
           ELSE CAST(substr(w.child, CASE WHEN hex(substr(w.child, 1, 1)) = '01' THEN 2 ELSE 3 END) AS TEXT) END AS child
FROM pregel_writes w
JOIN pregel_threads t ON t.tno = w.tno
JOIN pregel_namespaces n ON n.tno = w.tno AND n.ns = w.ns
LEFT JOIN pregel_names k ON k.id = w.name
LEFT JOIN pregel_names c ON c.id = w.channel

-- 3: what runs showed, for those who follow them; a version that does not know the table deletes its rows by the trigger
CREATE TABLE IF NOT EXISTS pregel_chunks (
    tno     INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    epoch   INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    state   INTEGER NOT NULL,
    node    TEXT    NOT NULL,
    run_id  TEXT,
    at      REAL    NOT NULL,
    blob    BLOB    NOT NULL,
    PRIMARY KEY (tno, last)
);
CREATE INDEX IF NOT EXISTS pregel_chunks_pending ON pregel_chunks (tno, last) WHERE state = 0;
CREATE TRIGGER IF NOT EXISTS pregel_chunks_of_deleted AFTER DELETE ON pregel_threads
BEGIN DELETE FROM pregel_chunks WHERE tno = OLD.tno; END;
CREATE VIEW IF NOT EXISTS pregel_view_chunks AS
SELECT t.thread, c.last - c.n + 1 AS first, c.last, c.attempt,
       CASE WHEN c.state = 1 THEN 'landed' WHEN c.state = 2 OR c.epoch < t.epoch THEN 'superseded' ELSE 'pending' END AS state,
       c.node, c.run_id, strftime('%Y-%m-%dT%H:%M:%fZ', c.at, 'unixepoch') AS at, length(c.blob) AS bytes
FROM pregel_chunks c
JOIN pregel_threads t ON t.tno = c.tno

-- 4: what threads rest for, and what was sent to them; a version that does not know the tables deletes their rows by the trigger
CREATE TABLE IF NOT EXISTS pregel_waits (
    tno  INTEGER NOT NULL,
    id   TEXT    NOT NULL,
    name TEXT    NOT NULL,
    key  TEXT,
    due  REAL,
    PRIMARY KEY (tno, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pregel_waits_due ON pregel_waits (due) WHERE due IS NOT NULL;
CREATE TABLE IF NOT EXISTS pregel_events (
    tno   INTEGER NOT NULL,
    id    TEXT    NOT NULL,
    name  TEXT    NOT NULL,
    key   TEXT,
    at    REAL    NOT NULL,
    taken INTEGER NOT NULL DEFAULT 0,
    type  TEXT    NOT NULL,
    blob  BLOB    NOT NULL,
    PRIMARY KEY (tno, id)
);
CREATE INDEX IF NOT EXISTS pregel_events_open ON pregel_events (tno, at, id) WHERE taken = 0;
CREATE TRIGGER IF NOT EXISTS pregel_waits_of_deleted AFTER DELETE ON pregel_threads
BEGIN DELETE FROM pregel_waits WHERE tno = OLD.tno; END;
CREATE TRIGGER IF NOT EXISTS pregel_events_of_deleted AFTER DELETE ON pregel_threads
BEGIN DELETE FROM pregel_events WHERE tno = OLD.tno; END;
CREATE VIEW IF NOT EXISTS pregel_view_waits AS
SELECT t.thread, w.id AS interrupt, w.name AS event, w.key, strftime('%Y-%m-%dT%H:%M:%fZ', w.due, 'unixepoch') AS due
FROM pregel_waits w
JOIN pregel_threads t ON t.tno = w.tno;
CREATE VIEW IF NOT EXISTS pregel_view_events AS
SELECT t.thread, e.id, e.name, e.key, strftime('%Y-%m-%dT%H:%M:%fZ', e.at, 'unixepoch') AS at, e.taken, e.type,
       length(e.blob) AS bytes
FROM pregel_events e
JOIN pregel_threads t ON t.tno = e.tno

-- 5: what workers look for; no row of it changes while a thread runs or rests
CREATE INDEX IF NOT EXISTS pregel_threads_pending ON pregel_threads (updated_at, tno) WHERE status = 'pending'

-- 6: the work that threads rest for; a version that does not know the table deletes its rows by the trigger
CREATE TABLE IF NOT EXISTS pregel_items (
    tno      INTEGER NOT NULL,
    id       TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    version  TEXT    NOT NULL,
    at       REAL    NOT NULL,
    state    INTEGER NOT NULL DEFAULT 0,
    token    BLOB,
    owner    TEXT    NOT NULL DEFAULT '',
    expires  REAL    NOT NULL DEFAULT 0,
    attempt  INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0,
    type     TEXT    NOT NULL,
    blob     BLOB    NOT NULL,
    PRIMARY KEY (tno, id)
);
CREATE INDEX IF NOT EXISTS pregel_items_open ON pregel_items (name, version, at) WHERE state < 2;
CREATE TRIGGER IF NOT EXISTS pregel_items_of_deleted AFTER DELETE ON pregel_threads
BEGIN DELETE FROM pregel_items WHERE tno = OLD.tno; END;
CREATE VIEW IF NOT EXISTS pregel_view_items AS
SELECT t.thread, i.id, i.name, i.version, strftime('%Y-%m-%dT%H:%M:%fZ', i.at, 'unixepoch') AS at,
       CASE i.state WHEN 0 THEN 'pending' WHEN 1 THEN 'running' ELSE 'done' END AS state, i.attempt, i.failures,
       i.rejected, i.owner, i.type, length(i.blob) AS bytes
FROM pregel_items i
JOIN pregel_threads t ON t.tno = i.tno
