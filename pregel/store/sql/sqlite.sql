-- gets: items by address; ?1 a JSON array of [ns, key], ?2 the horizon
SELECT s.id, s.ns, s.key, s.text, s.type, s.exact, s.created, s.updated, s.ttl
FROM json_each(?1) w CROSS JOIN pregel_store s
WHERE s.ns = json_extract(w.value, '$[0]') AND s.key = json_extract(w.value, '$[1]')
  AND (s.expires IS NULL OR s.expires > ?2)

-- search: items in a range of namespaces, the last updated first
SELECT id, ns, key, text, type, exact, created, updated, ttl FROM pregel_store
WHERE ns >= ?1 AND ns < ?2 AND (expires IS NULL OR expires > ?3)
ORDER BY +updated DESC, id DESC LIMIT ?4 OFFSET ?5

-- search_filtered: the same that match a filter; ?6 a text and ?7 a path to a number from ?8 to ?9, in all of them; ?10 it
SELECT id, ns, key, text, type, exact, created, updated, ttl FROM pregel_store
WHERE ns >= ?1 AND ns < ?2 AND (expires IS NULL OR expires > ?3)
  AND CASE WHEN instr(text, ?6) AND (?7 IS NULL OR json_extract(text, ?7) BETWEEN ?8 AND ?9)
      THEN pregel_matches(text, ?10) ELSE 0 END
ORDER BY +updated DESC, id DESC LIMIT ?4 OFFSET ?5

-- wide: whether a range has more than ?3 items
SELECT 1 FROM pregel_store WHERE ns >= ?1 AND ns < ?2 LIMIT 1 OFFSET ?3

-- recent: what search finds among the ?6 items that were updated last
SELECT * FROM (
    SELECT id, ns, key, text, type, exact, created, updated, ttl, expires FROM pregel_store INDEXED BY pregel_store_updated
    ORDER BY updated DESC, id DESC LIMIT ?6
) WHERE ns >= ?1 AND ns < ?2 AND (expires IS NULL OR expires > ?3)
LIMIT ?4 OFFSET ?5

-- recent_filtered: the same that match a filter; ?7 to ?11 as ?6 to ?10 above
SELECT * FROM (
    SELECT id, ns, key, text, type, exact, created, updated, ttl, expires FROM pregel_store INDEXED BY pregel_store_updated
    ORDER BY updated DESC, id DESC LIMIT ?6
) WHERE ns >= ?1 AND ns < ?2 AND (expires IS NULL OR expires > ?3)
  AND CASE WHEN instr(text, ?7) AND (?8 IS NULL OR json_extract(text, ?8) BETWEEN ?9 AND ?10)
      THEN pregel_matches(text, ?11) ELSE 0 END
LIMIT ?4 OFFSET ?5

-- bare: items of a range without a vector of their present value; {dims} the length of this index's vectors
SELECT id, ns, key, text, type, exact, created, updated, ttl FROM pregel_store s
WHERE ns >= ?1 AND ns < ?2 AND (expires IS NULL OR expires > ?3)
  AND NOT EXISTS (SELECT 1 FROM pregel_store_vectors v WHERE v.item = s.id AND v.gen = s.gen AND length(v.vector) = 4 * {dims})
ORDER BY +updated DESC, id DESC LIMIT ?4 OFFSET ?5

-- bare_filtered: the same that match a filter
SELECT id, ns, key, text, type, exact, created, updated, ttl FROM pregel_store s
WHERE ns >= ?1 AND ns < ?2 AND (expires IS NULL OR expires > ?3)
  AND CASE WHEN instr(text, ?6) AND (?7 IS NULL OR json_extract(text, ?7) BETWEEN ?8 AND ?9)
      THEN pregel_matches(text, ?10) ELSE 0 END
  AND NOT EXISTS (SELECT 1 FROM pregel_store_vectors v WHERE v.item = s.id AND v.gen = s.gen AND length(v.vector) = 4 * {dims})
ORDER BY +updated DESC, id DESC LIMIT ?4 OFFSET ?5

-- near: items of a range by the nearest of their vectors; {score} is a fixed expression over v.vector and ?6
WITH found AS (
    SELECT s.id, s.updated, max({score}) AS score
    FROM pregel_store s CROSS JOIN pregel_store_vectors v ON v.item = s.id AND v.gen = s.gen AND length(v.vector) = 4 * {dims}
    WHERE s.ns >= ?1 AND s.ns < ?2 AND (s.expires IS NULL OR s.expires > ?3)
    GROUP BY s.id ORDER BY score DESC, s.updated DESC, s.id DESC LIMIT ?4 OFFSET ?5
)
SELECT s.id, s.ns, s.key, s.text, s.type, s.exact, s.created, s.updated, s.ttl, found.score
FROM found CROSS JOIN pregel_store s ON s.id = found.id
ORDER BY found.score DESC, s.updated DESC, s.id DESC

-- near_filtered: the same that match a filter; ?7 to ?11 as ?6 to ?10 above
WITH found AS (
    SELECT s.id, s.updated, max({score}) AS score
    FROM pregel_store s CROSS JOIN pregel_store_vectors v ON v.item = s.id AND v.gen = s.gen AND length(v.vector) = 4 * {dims}
    WHERE s.ns >= ?1 AND s.ns < ?2 AND (s.expires IS NULL OR s.expires > ?3)
      AND CASE WHEN instr(s.text, ?7) AND (?8 IS NULL OR json_extract(s.text, ?8) BETWEEN ?9 AND ?10)
          THEN pregel_matches(s.text, ?11) ELSE 0 END
    GROUP BY s.id ORDER BY score DESC, s.updated DESC, s.id DESC LIMIT ?4 OFFSET ?5
)
SELECT s.id, s.ns, s.key, s.text, s.type, s.exact, s.created, s.updated, s.ttl, found.score
FROM found CROSS JOIN pregel_store s ON s.id = found.id
ORDER BY found.score DESC, s.updated DESC, s.id DESC

-- indexed: how many items of a range have a vector of their present value
SELECT count(*) FROM pregel_store s WHERE ns >= ?1 AND ns < ?2 AND (expires IS NULL OR expires > ?3)
  AND EXISTS (SELECT 1 FROM pregel_store_vectors v WHERE v.item = s.id AND v.gen = s.gen AND length(v.vector) = 4 * {dims})

-- word_counts: how many items of a range have each word; ?4 a JSON array of what each of them matches, counted from 0
SELECT w.key, count(*) FROM json_each(?4) w CROSS JOIN pregel_store_words f CROSS JOIN pregel_store s ON s.id = f.rowid
WHERE f.pregel_store_words MATCH w.value AND s.ns >= ?1 AND s.ns < ?2 AND (s.expires IS NULL OR s.expires > ?3)
GROUP BY w.key

-- hybrid: items of a range by ?7 times the score of near and the words of ?8, a JSON array of [what it matches, weight]
WITH hits AS MATERIALIZED (
    SELECT f.rowid AS item, sum(json_extract(w.value, '$[1]')) AS share
    FROM json_each(?8) w CROSS JOIN pregel_store_words f
    WHERE f.pregel_store_words MATCH json_extract(w.value, '$[0]') GROUP BY f.rowid
), found AS (
    SELECT s.id, s.updated, ?7 * max({score}) + coalesce(max(h.share), 0.0) AS score
    FROM pregel_store s CROSS JOIN pregel_store_vectors v ON v.item = s.id AND v.gen = s.gen AND length(v.vector) = 4 * {dims}
    LEFT JOIN hits h ON h.item = s.id
    WHERE s.ns >= ?1 AND s.ns < ?2 AND (s.expires IS NULL OR s.expires > ?3)
    GROUP BY s.id ORDER BY score DESC, s.updated DESC, s.id DESC LIMIT ?4 OFFSET ?5
)
SELECT s.id, s.ns, s.key, s.text, s.type, s.exact, s.created, s.updated, s.ttl, found.score
FROM found CROSS JOIN pregel_store s ON s.id = found.id
ORDER BY found.score DESC, s.updated DESC, s.id DESC

-- hybrid_filtered: the same that match a filter; ?9 to ?13 as ?6 to ?10 above
WITH hits AS MATERIALIZED (
    SELECT f.rowid AS item, sum(json_extract(w.value, '$[1]')) AS share
    FROM json_each(?8) w CROSS JOIN pregel_store_words f
    WHERE f.pregel_store_words MATCH json_extract(w.value, '$[0]') GROUP BY f.rowid
), found AS (
    SELECT s.id, s.updated, ?7 * max({score}) + coalesce(max(h.share), 0.0) AS score
    FROM pregel_store s CROSS JOIN pregel_store_vectors v ON v.item = s.id AND v.gen = s.gen AND length(v.vector) = 4 * {dims}
    LEFT JOIN hits h ON h.item = s.id
    WHERE s.ns >= ?1 AND s.ns < ?2 AND (s.expires IS NULL OR s.expires > ?3)
      AND CASE WHEN instr(s.text, ?9) AND (?10 IS NULL OR json_extract(s.text, ?10) BETWEEN ?11 AND ?12)
          THEN pregel_matches(s.text, ?13) ELSE 0 END
    GROUP BY s.id ORDER BY score DESC, s.updated DESC, s.id DESC LIMIT ?4 OFFSET ?5
)
SELECT s.id, s.ns, s.key, s.text, s.type, s.exact, s.created, s.updated, s.ttl, found.score
FROM found CROSS JOIN pregel_store s ON s.id = found.id
ORDER BY found.score DESC, s.updated DESC, s.id DESC

-- namespaces: those in a range that hold items, found by hopping over the index; ?3 the horizon
WITH RECURSIVE each (ns) AS (
    SELECT min(ns) FROM pregel_store WHERE ns >= ?1 AND ns < ?2
    UNION ALL
    SELECT (SELECT min(s.ns) FROM pregel_store s WHERE s.ns > each.ns AND s.ns < ?2) FROM each WHERE each.ns IS NOT NULL
)
SELECT each.ns FROM each WHERE EXISTS (
    SELECT 1 FROM pregel_store s WHERE s.ns = each.ns AND (s.expires IS NULL OR s.expires > ?3)
)

-- put: store a value; ?10 the horizon: what lapsed before it is created anew
INSERT INTO pregel_store (ns, key, text, type, exact, created, updated, ttl, expires)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (ns, key) DO UPDATE SET
    gen = gen + 1, text = excluded.text, type = excluded.type, exact = excluded.exact,
    created = CASE WHEN expires <= ?10 THEN excluded.created ELSE created END,
    updated = excluded.updated, ttl = excluded.ttl, expires = excluded.expires

-- delete_vectors: the vectors of an item
DELETE FROM pregel_store_vectors WHERE item = (SELECT id FROM pregel_store WHERE ns = ?1 AND key = ?2)

-- put_vector: add a vector of an item's present value
INSERT INTO pregel_store_vectors (item, n, gen, vector)
SELECT id, ?3, gen, ?4 FROM pregel_store WHERE ns = ?1 AND key = ?2

-- put_words: the words of an item's present value; triggers have removed those of the one before
INSERT INTO pregel_store_words (rowid, words) SELECT id, ?3 FROM pregel_store WHERE ns = ?1 AND key = ?2

-- delete: remove an item
DELETE FROM pregel_store WHERE ns = ?1 AND key = ?2

-- refresh: start an item's time anew
UPDATE pregel_store SET expires = ?2 + ttl WHERE id = ?1 AND ttl IS NOT NULL

-- lapsed: how many items have lapsed
SELECT count(*) FROM pregel_store WHERE expires <= ?1

-- sweep_vectors: remove the vectors of items that have lapsed
DELETE FROM pregel_store_vectors WHERE item IN (SELECT id FROM pregel_store WHERE expires <= ?1)

-- sweep: remove items that have lapsed
DELETE FROM pregel_store WHERE expires <= ?1
