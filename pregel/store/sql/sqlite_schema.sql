-- 1: the first format
CREATE TABLE IF NOT EXISTS pregel_store (
    id      INTEGER PRIMARY KEY,
    ns      TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    gen     INTEGER NOT NULL DEFAULT 0,
    text    TEXT    NOT NULL,
    type    TEXT,
    exact   BLOB,
    created REAL    NOT NULL,
    updated REAL    NOT NULL,
    ttl     REAL,
    expires REAL,
    UNIQUE (ns, key)
);
CREATE INDEX IF NOT EXISTS pregel_store_expires ON pregel_store (expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS pregel_store_vectors (
    item   INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    gen    INTEGER NOT NULL,
    vector BLOB    NOT NULL,
    PRIMARY KEY (item, n)
) WITHOUT ROWID

-- 2: what was updated last, first
CREATE INDEX IF NOT EXISTS pregel_store_updated ON pregel_store (updated)
