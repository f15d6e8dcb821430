-- 1: an item's words and the scopes of its namespace
CREATE TABLE IF NOT EXISTS pregel_store_words (
    item  bigint   PRIMARY KEY REFERENCES pregel_store ON DELETE CASCADE,
    gen   bigint   NOT NULL,
    words tsvector NOT NULL
);
CREATE INDEX IF NOT EXISTS pregel_store_words_words ON pregel_store_words USING gin (words)
