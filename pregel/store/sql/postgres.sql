-- gets: items by address; $1 namespaces, $2 keys, $3 the horizon
SELECT s.id, s.ns, s.key, s.value::text, s.type, s.exact, s.created, s.updated, s.ttl
FROM unnest($1::text[], $2::text[]) w (ns, key) JOIN pregel_store s ON s.ns = w.ns AND s.key = w.key
WHERE s.expires IS NULL OR s.expires > $3::float8

-- search: items in a range of namespaces, the last updated first
SELECT id, ns, key, value::text, type, exact, created, updated, ttl FROM pregel_store s
WHERE ns >= $1::text AND ns < $2::text AND (expires IS NULL OR expires > $3::float8)
ORDER BY updated DESC, id DESC LIMIT $4::bigint OFFSET $5::bigint

-- search_filtered: the same that match a filter; {filter} lets all of them through, and maybe others
SELECT id, ns, key, value::text, type, exact, created, updated, ttl FROM pregel_store s
WHERE ns >= $1::text AND ns < $2::text AND (expires IS NULL OR expires > $3::float8)
  AND {filter}
ORDER BY updated DESC, id DESC LIMIT $4::bigint OFFSET $5::bigint

-- bare: items of a range without a vector of their present value; {dims} the length of this index's vectors
SELECT id, ns, key, value::text, type, exact, created, updated, ttl FROM pregel_store s
WHERE ns >= $1::text AND ns < $2::text AND (expires IS NULL OR expires > $3::float8)
  AND NOT EXISTS (SELECT 1 FROM pregel_store_vectors v WHERE v.item = s.id AND v.gen = s.gen AND vector_dims(v.vector) = {dims})
ORDER BY updated DESC, id DESC LIMIT $4::bigint OFFSET $5::bigint

-- bare_filtered: the same that match a filter
SELECT id, ns, key, value::text, type, exact, created, updated, ttl FROM pregel_store s
WHERE ns >= $1::text AND ns < $2::text AND (expires IS NULL OR expires > $3::float8)
  AND {filter}
  AND NOT EXISTS (SELECT 1 FROM pregel_store_vectors v WHERE v.item = s.id AND v.gen = s.gen AND vector_dims(v.vector) = {dims})
ORDER BY updated DESC, id DESC LIMIT $4::bigint OFFSET $5::bigint

-- near: items of a range by the nearest of their vectors; {score} is a fixed expression over v.vector and $6
WITH found AS (
    SELECT s.id, s.updated, max({score}) AS score
    FROM pregel_store s JOIN pregel_store_vectors v ON v.item = s.id AND v.gen = s.gen AND vector_dims(v.vector) = {dims}
    WHERE s.ns >= $1::text AND s.ns < $2::text AND (s.expires IS NULL OR s.expires > $3::float8)
    GROUP BY s.id ORDER BY score DESC, s.updated DESC, s.id DESC LIMIT $4::bigint OFFSET $5::bigint
)
SELECT s.id, s.ns, s.key, s.value::text, s.type, s.exact, s.created, s.updated, s.ttl, found.score
FROM found JOIN pregel_store s ON s.id = found.id
ORDER BY found.score DESC, s.updated DESC, s.id DESC

-- near_filtered: the same that match a filter; {filter} as above
WITH found AS (
    SELECT s.id, s.updated, max({score}) AS score
    FROM pregel_store s JOIN pregel_store_vectors v ON v.item = s.id AND v.gen = s.gen AND vector_dims(v.vector) = {dims}
    WHERE s.ns >= $1::text AND s.ns < $2::text AND (s.expires IS NULL OR s.expires > $3::float8)
      AND {filter}
    GROUP BY s.id ORDER BY score DESC, s.updated DESC, s.id DESC LIMIT $4::bigint OFFSET $5::bigint
)
SELECT s.id, s.ns, s.key, s.value::text, s.type, s.exact, s.created, s.updated, s.ttl, found.score
FROM found JOIN pregel_store s ON s.id = found.id
ORDER BY found.score DESC, s.updated DESC, s.id DESC

-- indexed: how many items of a range have a vector of their present value
SELECT count(*) FROM pregel_store s WHERE ns >= $1::text AND ns < $2::text AND (expires IS NULL OR expires > $3::float8)
  AND EXISTS (SELECT 1 FROM pregel_store_vectors v WHERE v.item = s.id AND v.gen = s.gen AND vector_dims(v.vector) = {dims})

-- word_counts: how many items of a range have each word; $4 what each of them matches, counted from 0
SELECT w.place - 1, count(*)
FROM unnest($4::text[]) WITH ORDINALITY w (query, place)
JOIN pregel_store_words f ON f.words @@ w.query::tsquery JOIN pregel_store s ON s.id = f.item AND s.gen = f.gen
WHERE s.ns >= $1::text AND s.ns < $2::text AND (s.expires IS NULL OR s.expires > $3::float8)
GROUP BY w.place

-- hybrid: items of a range by $7 times the score of near and the words that match $8, with weights $9
WITH hits AS MATERIALIZED (
    SELECT f.item, f.gen, sum(w.weight) AS share
    FROM unnest($8::text[], $9::float8[]) w (query, weight) JOIN pregel_store_words f ON f.words @@ w.query::tsquery
    GROUP BY f.item, f.gen
), found AS (
    SELECT s.id, s.updated, $7::float8 * max({score}) + coalesce(max(h.share), 0.0) AS score
    FROM pregel_store s JOIN pregel_store_vectors v ON v.item = s.id AND v.gen = s.gen AND vector_dims(v.vector) = {dims}
    LEFT JOIN hits h ON h.item = s.id AND h.gen = s.gen
    WHERE s.ns >= $1::text AND s.ns < $2::text AND (s.expires IS NULL OR s.expires > $3::float8)
    GROUP BY s.id ORDER BY score DESC, s.updated DESC, s.id DESC LIMIT $4::bigint OFFSET $5::bigint
)
SELECT s.id, s.ns, s.key, s.value::text, s.type, s.exact, s.created, s.updated, s.ttl, found.score
FROM found JOIN pregel_store s ON s.id = found.id
ORDER BY found.score DESC, s.updated DESC, s.id DESC

-- hybrid_filtered: the same that match a filter; {filter} as above
WITH hits AS MATERIALIZED (
    SELECT f.item, f.gen, sum(w.weight) AS share
    FROM unnest($8::text[], $9::float8[]) w (query, weight) JOIN pregel_store_words f ON f.words @@ w.query::tsquery
    GROUP BY f.item, f.gen
), found AS (
    SELECT s.id, s.updated, $7::float8 * max({score}) + coalesce(max(h.share), 0.0) AS score
    FROM pregel_store s JOIN pregel_store_vectors v ON v.item = s.id AND v.gen = s.gen AND vector_dims(v.vector) = {dims}
    LEFT JOIN hits h ON h.item = s.id AND h.gen = s.gen
    WHERE s.ns >= $1::text AND s.ns < $2::text AND (s.expires IS NULL OR s.expires > $3::float8)
      AND {filter}
    GROUP BY s.id ORDER BY score DESC, s.updated DESC, s.id DESC LIMIT $4::bigint OFFSET $5::bigint
)
SELECT s.id, s.ns, s.key, s.value::text, s.type, s.exact, s.created, s.updated, s.ttl, found.score
FROM found JOIN pregel_store s ON s.id = found.id
ORDER BY found.score DESC, s.updated DESC, s.id DESC

-- wide: whether a range has more than $3 items
SELECT 1 FROM pregel_store WHERE ns >= $1::text AND ns < $2::text LIMIT 1 OFFSET $3::bigint

-- scan: two settings of this transaction, by which the scan of an approximate index goes on
SELECT set_config($1::text, $2::text, true), set_config($3::text, $4::text, true)

-- nearest: vectors of a range, one row each, in about the order of {order}, which an approximate index knows
SELECT s.id, s.ns, s.key, s.value::text, s.type, s.exact, s.created, s.updated, s.ttl, {score} AS score
FROM pregel_store_vectors v JOIN pregel_store s ON s.id = v.item AND s.gen = v.gen
WHERE vector_dims(v.vector) = $7::integer
  AND s.ns >= $1::text AND s.ns < $2::text AND (s.expires IS NULL OR s.expires > $3::float8)
ORDER BY {order} LIMIT $4::bigint

-- nearest_filtered: the same of items that match a filter; {filter} as above
SELECT s.id, s.ns, s.key, s.value::text, s.type, s.exact, s.created, s.updated, s.ttl, {score} AS score
FROM pregel_store_vectors v JOIN pregel_store s ON s.id = v.item AND s.gen = v.gen
WHERE vector_dims(v.vector) = $7::integer
  AND s.ns >= $1::text AND s.ns < $2::text AND (s.expires IS NULL OR s.expires > $3::float8)
  AND {filter}
ORDER BY {order} LIMIT $4::bigint

-- namespaces: those in a range that hold items, found by hopping over the index; $3 the horizon
WITH RECURSIVE each (ns) AS (
    SELECT min(ns) FROM pregel_store WHERE ns >= $1::text AND ns < $2::text
    UNION ALL
    SELECT (SELECT min(s.ns) FROM pregel_store s WHERE s.ns > each.ns AND s.ns < $2::text) FROM each WHERE each.ns IS NOT NULL
)
SELECT each.ns FROM each WHERE EXISTS (
    SELECT 1 FROM pregel_store s WHERE s.ns = each.ns AND (s.expires IS NULL OR s.expires > $3::float8)
)

-- lock: keep other batches from items until this one ends, in the order of their addresses; $3 ids of further ones
WITH wanted AS MATERIALIZED (
    SELECT s.id FROM unnest($1::text[], $2::text[]) w (ns, key) JOIN pregel_store s ON s.ns = w.ns AND s.key = w.key
    UNION SELECT unnest($3::bigint[])
)
SELECT s.id FROM wanted w JOIN pregel_store s ON s.id = w.id ORDER BY s.ns, s.key FOR UPDATE OF s

-- put: store values, columns of rows; $10 the horizon: what lapsed before it is created anew
INSERT INTO pregel_store AS s (ns, key, value, type, exact, created, updated, ttl, expires)
SELECT w.ns, w.key, w.value::jsonb, w.type, w.exact, w.created, w.updated, w.ttl, w.expires
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::float8[], $7::float8[], $8::float8[],
            $9::float8[]) w (ns, key, value, type, exact, created, updated, ttl, expires)
ON CONFLICT (ns, key) DO UPDATE SET
    gen = s.gen + 1, value = excluded.value, type = excluded.type, exact = excluded.exact,
    created = CASE WHEN s.expires <= $10::float8 THEN excluded.created ELSE s.created END,
    updated = excluded.updated, ttl = excluded.ttl, expires = excluded.expires

-- delete_vectors: the vectors of items
DELETE FROM pregel_store_vectors v USING unnest($1::text[], $2::text[]) w (ns, key), pregel_store s
WHERE s.ns = w.ns AND s.key = w.key AND v.item = s.id

-- put_vector: add vectors of items' present values
INSERT INTO pregel_store_vectors (item, n, gen, vector)
SELECT s.id, w.n, s.gen, w.vector::vector
FROM unnest($1::text[], $2::text[], $3::integer[], $4::text[]) w (ns, key, n, vector)
JOIN pregel_store s ON s.ns = w.ns AND s.key = w.key

-- put_words: the words of items' present values
INSERT INTO pregel_store_words AS o (item, gen, words)
SELECT s.id, s.gen, array_to_tsvector(string_to_array(w.words, ' '))
FROM unnest($1::text[], $2::text[], $3::text[]) w (ns, key, words) JOIN pregel_store s ON s.ns = w.ns AND s.key = w.key
ON CONFLICT (item) DO UPDATE SET gen = excluded.gen, words = excluded.words

-- delete: remove items
DELETE FROM pregel_store s USING unnest($1::text[], $2::text[]) w (ns, key) WHERE s.ns = w.ns AND s.key = w.key

-- refresh: start the time of items anew
UPDATE pregel_store s SET expires = w.now + s.ttl
FROM unnest($1::bigint[], $2::float8[]) w (id, now) WHERE s.id = w.id AND s.ttl IS NOT NULL

-- lapsed: how many items have lapsed
SELECT count(*) FROM pregel_store WHERE expires <= $1::float8

-- sweep: remove items that have lapsed
DELETE FROM pregel_store WHERE expires <= ANY($1::float8[])
