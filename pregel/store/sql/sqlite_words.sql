-- present: whether the table of words is there
SELECT 1 FROM sqlite_master WHERE name = 'pregel_store_words'

-- table: an item's words and the scopes of its namespace, as the row of its id
CREATE VIRTUAL TABLE pregel_store_words USING fts5 (words, tokenize = "ascii tokenchars '_'", detail = none)

-- gone: words go with their item, whichever store removes it
CREATE TRIGGER pregel_store_words_gone AFTER DELETE ON pregel_store
BEGIN DELETE FROM pregel_store_words WHERE rowid = old.id; END

-- stale: and with its value
CREATE TRIGGER pregel_store_words_stale AFTER UPDATE OF gen ON pregel_store
BEGIN DELETE FROM pregel_store_words WHERE rowid = old.id; END
