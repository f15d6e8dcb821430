-- 1: vectors of any length; pgvector must be installed on the server
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE IF NOT EXISTS pregel_store_vectors (
    item   bigint  NOT NULL REFERENCES pregel_store ON DELETE CASCADE,
    n      integer NOT NULL,
    gen    bigint  NOT NULL,
    vector vector  NOT NULL,
    PRIMARY KEY (item, n)
)
