-- thread: a thread's row; whether its lease has lapsed is told by the server's clock
SELECT tno, thread, epoch, run, seq, gen, last_id, status, reason, owner, expires,
       run IS NOT NULL AND expires < extract(epoch FROM clock_timestamp()),
       asked, inbox, graph, updated_at,
       (SELECT coalesce(max(ns) + 1, 0) FROM pregel_namespaces n WHERE n.tno = t.tno), pin, crashes
FROM pregel_threads t WHERE thread = $1

-- opening: a thread's row, a namespace's number, its newest checkpoint, the manifest of its base, and whether it has writes
SELECT t.tno, t.thread, t.epoch, t.run, t.seq, t.gen, t.last_id, t.status, t.reason, t.owner, t.expires,
       t.run IS NOT NULL AND t.expires < extract(epoch FROM clock_timestamp()),
       t.asked, t.inbox, t.graph, t.updated_at,
       (SELECT coalesce(max(ns) + 1, 0) FROM pregel_namespaces n WHERE n.tno = t.tno), t.pin, t.crashes,
       n.ns, c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest,
       (SELECT b.manifest FROM pregel_checkpoints b WHERE b.tno = t.tno AND b.ns = c.ns AND b.id = c.base),
       EXISTS (SELECT FROM pregel_writes w WHERE w.tno = t.tno AND w.ns = c.ns AND w.checkpoint = c.id)
FROM pregel_threads t
LEFT JOIN pregel_namespaces n ON n.tno = t.tno AND n.text = $2
LEFT JOIN LATERAL
    (SELECT * FROM pregel_checkpoints c WHERE c.tno = t.tno AND c.ns = n.ns ORDER BY c.id DESC LIMIT 1) c ON true
WHERE t.thread = $1

-- threads: the rows of threads with this status (NULL: any), the last written first
SELECT tno, thread, epoch, run, seq, gen, last_id, status, reason, owner, expires,
       run IS NOT NULL AND expires < extract(epoch FROM clock_timestamp()),
       asked, inbox, graph, updated_at,
       (SELECT coalesce(max(ns) + 1, 0) FROM pregel_namespaces n WHERE n.tno = t.tno), pin, crashes
FROM pregel_threads t WHERE $1::text IS NULL OR status = $1::text
ORDER BY updated_at DESC, tno DESC LIMIT $2::bigint

-- pending: threads that were started and that nobody has run, the longest untouched first, from behind ($1, $2)
SELECT tno, thread, epoch, run, seq, gen, last_id, status, reason, owner, expires, false, asked, inbox, graph, updated_at,
       (SELECT coalesce(max(ns) + 1, 0) FROM pregel_namespaces n WHERE n.tno = t.tno), pin, crashes
FROM pregel_threads t WHERE status = 'pending' AND (updated_at, tno) > ($1::float8, $2::bigint)
ORDER BY updated_at, tno LIMIT $3::bigint

-- standing: whether the last append of a thread has this seq and mark
SELECT 1 FROM pregel_threads WHERE thread = $1 AND seq = $2 AND mark = $3

-- namespace: the number of a namespace
SELECT ns FROM pregel_namespaces WHERE tno = $1 AND text = $2

-- newest: the newest checkpoint of a namespace
SELECT ns, id, parent, base, lineage, step, source, run_id, created_at, metadata, manifest
FROM pregel_checkpoints WHERE tno = $1
  AND ns = (SELECT ns FROM pregel_namespaces WHERE tno = $1 AND text = $2) ORDER BY id DESC LIMIT 1

-- newest_id: its id alone
SELECT id FROM pregel_checkpoints WHERE tno = $1
  AND ns = (SELECT ns FROM pregel_namespaces WHERE tno = $1 AND text = $2) ORDER BY id DESC LIMIT 1

-- newest_before: the newest checkpoint of a namespace that is older than an id
SELECT ns, id, parent, base, lineage, step, source, run_id, created_at, metadata, manifest
FROM pregel_checkpoints WHERE tno = $1
  AND ns = (SELECT ns FROM pregel_namespaces WHERE tno = $1 AND text = $2) AND id < $3 ORDER BY id DESC LIMIT 1

-- checkpoint: one checkpoint
SELECT ns, id, parent, base, lineage, step, source, run_id, created_at, metadata, manifest
FROM pregel_checkpoints WHERE tno = $1
  AND ns = (SELECT ns FROM pregel_namespaces WHERE tno = $1 AND text = $2) AND id = $3

-- look: the newest checkpoint of a thread's namespace that is older than an id, the manifest of its base, and whether it has writes
SELECT t.tno, c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest,
       (SELECT b.manifest FROM pregel_checkpoints b WHERE b.tno = t.tno AND b.ns = c.ns AND b.id = c.base),
       EXISTS (SELECT FROM pregel_writes w WHERE w.tno = t.tno AND w.ns = c.ns AND w.checkpoint = c.id)
FROM pregel_threads t
JOIN pregel_namespaces n ON n.tno = t.tno AND n.text = $2
JOIN LATERAL
    (SELECT * FROM pregel_checkpoints c WHERE c.tno = t.tno AND c.ns = n.ns AND c.id < $3 ORDER BY c.id DESC LIMIT 1) c
    ON true
WHERE t.thread = $1

-- manifest: the manifest of a checkpoint
SELECT manifest FROM pregel_checkpoints WHERE tno = $1 AND ns = $2 AND id = $3

-- values: rows of channels; $3 channels, $4 $5 first and last at, $6 1 deltas or 0 whole ones; $7 NULL or a checkpoint without which none
SELECT v.channel, v.at, v.kind, v.type, v.blob, v.prev, v.base, v.fold, v.n
FROM unnest($3::integer[], $4::bigint[], $5::bigint[], $6::integer[]) w (channel, first_at, last_at, deltas)
JOIN pregel_channel_values v
  ON v.tno = $1 AND v.ns = $2 AND v.channel = w.channel AND v.at BETWEEN w.first_at AND w.last_at
 AND (v.kind = 'delta') = (w.deltas = 1)
WHERE $7::bytea IS NULL OR EXISTS (SELECT FROM pregel_checkpoints WHERE tno = $1 AND ns = $2 AND id = $7::bytea)

-- writes: the writes of a range of checkpoints
SELECT ns, checkpoint, task, idx, channel, type, blob, path, name, child
FROM pregel_writes WHERE tno = $1 AND ns = $2 AND checkpoint BETWEEN $3 AND $4

-- page_namespace: checkpoints of one namespace older than an id, newest first
SELECT t.thread, t.tno, n.text,
       c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest
FROM pregel_threads t
JOIN pregel_namespaces n ON n.tno = t.tno AND n.text = $2
JOIN pregel_checkpoints c ON c.tno = t.tno AND c.ns = n.ns AND c.id < $3
WHERE t.thread = $1 ORDER BY c.id DESC LIMIT nullif($4::bigint, -1)

-- page_thread: checkpoints of all namespaces of one thread older than an id, newest first
SELECT t.thread, t.tno, n.text,
       c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest
FROM pregel_threads t
JOIN pregel_namespaces n ON n.tno = t.tno
JOIN pregel_checkpoints c ON c.tno = t.tno AND c.ns = n.ns AND c.id < $2
WHERE t.thread = $1 ORDER BY c.id DESC LIMIT nullif($3::bigint, -1)

-- page_all: checkpoints of all threads older than an id, newest first; $1 a namespace or NULL
SELECT t.thread, t.tno, n.text,
       c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest
FROM pregel_checkpoints c
JOIN pregel_threads t ON t.tno = c.tno
JOIN pregel_namespaces n ON n.tno = c.tno AND n.ns = c.ns
WHERE c.id < $2 AND ($1::text IS NULL OR n.text = $1::text)
ORDER BY c.id DESC, c.tno, c.ns LIMIT nullif($3::bigint, -1)

-- names: names that were interned after $1, and the one numbered $2
SELECT id, text FROM pregel_names WHERE id > $1 OR id = $2

-- name: the number of a name
SELECT id, text FROM pregel_names WHERE text = $1

-- numbers: the numbers of those of these names that have one
SELECT id, text FROM pregel_names WHERE text = ANY ($1::text[])

-- intern: give names a number unless they have one
INSERT INTO pregel_names (text)
SELECT u.text FROM unnest($1::text[]) u (text)
WHERE NOT EXISTS (SELECT FROM pregel_names n WHERE n.text = u.text) ON CONFLICT DO NOTHING

-- append: the guard of an append by the run that holds the thread; renews its lease
UPDATE pregel_threads
SET seq = seq + $1::bigint, mark = $2::bytea, last_id = coalesce($3::bytea, last_id),
    expires = extract(epoch FROM clock_timestamp()) + ttl, updated_at = extract(epoch FROM clock_timestamp())
WHERE tno = $6::bigint AND epoch = $7::bigint AND run = $8::bytea AND seq = $9::bigint

-- release: the guard of a run's last append; gives the thread back
UPDATE pregel_threads
SET seq = seq + $1::bigint, mark = $2::bytea, last_id = coalesce($3::bytea, last_id),
    updated_at = extract(epoch FROM clock_timestamp()),
    run = NULL, owner = NULL, status = $10::text, reason = $11::text, crashes = 0,
    graph = coalesce(nullif($12::text, ''), graph)
WHERE tno = $6::bigint AND epoch = $7::bigint AND run = $8::bytea AND seq = $9::bigint

-- claim: take a thread that is as it was loaded, if it is free, or its lease lapsed, or its owner dead ($14)
UPDATE pregel_threads
SET seq = seq + $1::bigint, mark = $2::bytea, last_id = coalesce($3::bytea, last_id),
    updated_at = extract(epoch FROM clock_timestamp()),
    epoch = greatest(epoch + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
    run = $10::bytea, owner = $11::text, ttl = $13::float8,
    expires = extract(epoch FROM clock_timestamp()) + $13::float8, status = $15::text, reason = $16::text,
    asked = CASE WHEN asked LIKE '~%' AND asked <> $20::text THEN asked ELSE '' END,
    graph = coalesce(nullif($17::text, ''), graph), crashes = CASE WHEN run IS NULL THEN crashes ELSE crashes + 1 END,
    pin = $19::bytea
WHERE tno = $6::bigint AND epoch = $7::bigint AND gen = $8::bigint AND seq = $9::bigint
  AND (run IS NULL OR $14::boolean OR expires < extract(epoch FROM clock_timestamp()))

-- create: claim a thread that does not exist, above the epoch of its tombstone
INSERT INTO pregel_threads
    (thread, epoch, run, seq, mark, last_id, owner, ttl, expires, status, reason, graph, updated_at)
SELECT $1::text,
       greatest(1 + coalesce((SELECT epoch FROM pregel_tombstones WHERE digest = $2::bytea), 0),
                (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
       $4::bytea, $5::bigint, $6::bytea, $7::bytea, $8::text, $10::float8,
       extract(epoch FROM clock_timestamp()) + $10::float8, $12::text, $13::text, $14::text,
       extract(epoch FROM clock_timestamp())
ON CONFLICT DO NOTHING

-- renew: how long the runs that hold these threads go on holding them: their leases ($4 = 1), or no more (-1)
UPDATE pregel_threads t SET expires = extract(epoch FROM clock_timestamp()) + t.ttl * $4::float8
FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) u (tno, epoch, run)
WHERE t.tno = u.tno AND t.epoch = u.epoch AND t.run = u.run RETURNING t.run, t.asked

-- held: what is asked of the run that holds a thread; no row when another one does
SELECT asked FROM pregel_threads WHERE tno = $1 AND epoch = $2 AND run = $3

-- ask: leave word for the run that holds a thread, or with a ~ for the next one; of several rollback stands, else the first in order
UPDATE pregel_threads
SET asked = CASE WHEN asked = '' THEN $1::text WHEN 'rollback' IN (asked, $1::text) THEN 'rollback'
                 ELSE least(asked, $1::text) END
WHERE tno = $2 AND ($1::text LIKE '~%' OR epoch = $3 AND run = $4) RETURNING asked

-- landed: the row after an append that hit it; `t` is what its head gave back
SELECT tno, thread, epoch, run, seq, gen, NULL, status, reason, NULL, expires, false, asked, inbox, graph, updated_at, 0,
       pin, crashes
FROM t

-- looked_up: the `t` of rows that are added without a guard; $1 a thread's number
SELECT tno, epoch FROM pregel_threads WHERE tno = $1

-- make_thread: a thread row for a put without authority
INSERT INTO pregel_threads (thread, epoch, updated_at)
VALUES ($1::text,
        greatest(1 + coalesce((SELECT epoch FROM pregel_tombstones WHERE digest = $2), 0),
                 (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
        extract(epoch FROM clock_timestamp()))
ON CONFLICT DO NOTHING

-- touch: count a put without authority
UPDATE pregel_threads SET seq = seq + 1, last_id = greatest($1::bytea, last_id),
    updated_at = extract(epoch FROM clock_timestamp()) WHERE tno = $3

-- add_namespaces: number a namespace
INSERT INTO pregel_namespaces (tno, ns, text)
SELECT t.tno, u.ns, u.text FROM t JOIN unnest($1::integer[], $2::text[]) u (ns, text) ON true

-- add_checkpoints: a checkpoint; a second one with its id is an error
INSERT INTO pregel_checkpoints
    (tno, epoch, ns, id, parent, base, lineage, step, source, run_id, created_at, metadata, manifest)
SELECT t.tno, t.epoch, u.ns, u.id, u.parent, u.base, u.lineage, u.step, u.source, u.run_id, u.created_at,
       convert_from(u.metadata, 'UTF8'), u.manifest
FROM t JOIN unnest($1::integer[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[], $6::integer[], $7::text[],
                   $8::text[], $9::float8[], $10::bytea[], $11::bytea[])
            u (ns, id, parent, base, lineage, step, source, run_id, created_at, metadata, manifest) ON true

-- add_values: a channel's value
INSERT INTO pregel_channel_values (tno, ns, channel, at, kind, type, blob, prev, base, fold, n)
SELECT t.tno, u.ns, u.channel, u.at, u.kind, u.type, u.blob, u.prev, u.base, u.fold, u.n
FROM t JOIN unnest($1::integer[], $2::integer[], $3::bigint[], $4::text[], $5::text[], $6::bytea[],
                   $7::bigint[], $8::bigint[], $9::integer[], $10::bigint[])
            u (ns, channel, at, kind, type, blob, prev, base, fold, n) ON true

-- add_writes: a task's write; control rows (idx < 0) replace, others stay as first written
INSERT INTO pregel_writes (tno, ns, checkpoint, task, idx, channel, type, blob, path, name, child)
SELECT t.tno, u.ns, u.checkpoint, u.task, u.idx, u.channel, u.type, u.blob, u.path, u.name, u.child
FROM t JOIN unnest($1::integer[], $2::bytea[], $3::bytea[], $4::integer[], $5::integer[], $6::text[],
                   $7::bytea[], $8::text[], $9::integer[], $10::bytea[])
            u (ns, checkpoint, task, idx, channel, type, blob, path, name, child) ON true
ON CONFLICT (tno, ns, checkpoint, task, idx)
DO UPDATE SET type = excluded.type, blob = excluded.blob WHERE excluded.idx < 0

-- add_chunks: chunks that a run showed; whoever listens hears the thread's number when they are stored
INSERT INTO pregel_chunks (tno, epoch, last, n, attempt, state, node, run_id, at, blob)
SELECT t.tno, t.epoch, u.last, u.n, u.attempt, u.state, u.node, u.run_id, u.at, u.blob
FROM t JOIN unnest($1::bigint[], $2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::float8[],
                   $8::bytea[])
            u (last, n, attempt, state, node, run_id, at, blob) ON true
RETURNING pg_notify('pregel_chunks', tno::text)

-- add_marks: what became of earlier chunks
UPDATE pregel_chunks c SET state = u.state
FROM t JOIN unnest($1::bigint[], $2::integer[]) u (last, state) ON true WHERE c.tno = t.tno AND c.last = u.last

-- add_roused: the waits of a thread that is taken up
DELETE FROM pregel_waits w WHERE w.tno IN (SELECT t.tno FROM t JOIN unnest($1::integer[]) u (one) ON true)

-- add_taken: events that are taken; their ids stay
UPDATE pregel_events e SET taken = true, type = '', blob = ''
FROM t JOIN unnest($1::text[]) u (id) ON true WHERE e.tno = t.tno AND e.id = u.id

-- add_dropped: the events of a thread that nobody has taken; their ids stay
UPDATE pregel_events e SET taken = true, type = '', blob = ''
FROM t JOIN unnest($1::integer[]) u (one) ON true WHERE e.tno = t.tno AND NOT e.taken

-- add_waits: what a thread rests for
INSERT INTO pregel_waits (tno, id, name, key, due)
SELECT t.tno, u.id, u.name, u.key, u.due
FROM t JOIN unnest($1::text[], $2::text[], $3::text[], $4::float8[]) u (id, name, key, due) ON true
ON CONFLICT (tno, id) DO UPDATE SET due = excluded.due

-- add_kept: take back the items of a thread but those whose ids, which are no other thread's, are in a JSON list
WITH k AS (SELECT t.tno, u.kept FROM t JOIN unnest($1::text[]) u (kept) ON true)
DELETE FROM pregel_items i WHERE i.tno IN (SELECT k.tno FROM k)
AND i.id NOT IN (SELECT one FROM k CROSS JOIN LATERAL jsonb_array_elements_text(k.kept::jsonb) one)

-- add_items: work that a thread rests for; what is there stays as it is
INSERT INTO pregel_items (tno, id, name, version, at, type, blob)
SELECT t.tno, u.id, u.name, u.version, u.at, u.type, u.blob
FROM t JOIN unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::text[], $6::bytea[])
    u (id, name, version, at, type, blob) ON true
ON CONFLICT DO NOTHING

-- backlog: of each name and version how many items wait and are worked on, and since when the first has waited
SELECT name, version, count(*) FILTER (WHERE state = 0 OR expires < $1::float8),
       count(*) FILTER (WHERE state = 1 AND expires >= $1::float8),
       min(at) FILTER (WHERE state = 0 OR expires < $1::float8)
FROM pregel_items WHERE state < 2 GROUP BY name, version ORDER BY name, version

-- open_items: items of a name and version that may be taken at $3, the oldest first
SELECT t.thread, t.graph, i.tno, i.id, i.name, i.version, i.at, i.token, i.owner, i.expires, i.attempt, i.failures,
       i.rejected, '', ''::bytea
FROM pregel_items i JOIN pregel_threads t ON t.tno = i.tno
WHERE i.name = $1 AND i.version = $2 AND i.state < 2 AND i.expires < $3::float8 ORDER BY i.at LIMIT $4

-- held_items: items of a name and version that somebody holds at $3
SELECT t.thread, t.graph, i.tno, i.id, i.name, i.version, i.at, i.token, i.owner, i.expires, i.attempt, i.failures,
       i.rejected, '', ''::bytea
FROM pregel_items i JOIN pregel_threads t ON t.tno = i.tno
WHERE i.name = $1 AND i.version = $2 AND i.state = 1 AND i.state < 2 AND i.expires >= $3::float8

-- take_item: take an item that is as it was seen ($3 its token)
UPDATE pregel_items SET state = 1, token = $4, owner = $5, expires = $6, attempt = attempt + 1
WHERE tno = $1 AND id = $2 AND state < 2 AND token IS NOT DISTINCT FROM $3::bytea

-- item: the item that is held with a token
SELECT t.thread, t.graph, i.tno, i.id, i.name, i.version, i.at, i.token, i.owner, i.expires, i.attempt, i.failures,
       i.rejected, i.type, i.blob
FROM pregel_items i JOIN pregel_threads t ON t.tno = i.tno
WHERE i.tno = $1 AND i.id = $2 AND i.token = $3 AND i.state = 1

-- renew_item: hold an item until $4
UPDATE pregel_items SET expires = $4 WHERE tno = $1 AND id = $2 AND token = $3

-- hand_back_item: give an item back, for whoever looks from $4 on; $5 attempts, $6 failures and $7 rejections more
UPDATE pregel_items SET state = 0, token = NULL, owner = '', expires = $4, attempt = attempt + $5,
    failures = failures + $6, rejected = rejected + $7
WHERE tno = $1 AND id = $2 AND token = $3

-- end_item: an item is done; its id stays until the thread goes on
UPDATE pregel_items SET state = 2, token = NULL, type = '', blob = '' WHERE tno = $1 AND id = $2 AND token = $3

-- delete_items: the items of a thread
DELETE FROM pregel_items WHERE tno = $1

-- event: whether an event of this id was sent to a thread
SELECT 1 FROM pregel_events WHERE tno = $1 AND id = $2

-- awaited: the keys of the waits of a thread for events of a name
SELECT key FROM pregel_waits WHERE tno = $1 AND name = $2

-- send_event: an event for a thread
INSERT INTO pregel_events (tno, id, name, key, at, type, blob) VALUES ($1, $2, $3, $4, $5, $6, $7)

-- count_event: that something was sent to a thread
UPDATE pregel_threads SET inbox = inbox + 1 WHERE tno = $1

-- events: what was sent to a thread and nobody has taken, in the order in which it came
SELECT id, name, key, at, type, blob FROM pregel_events WHERE tno = $1 AND NOT taken ORDER BY at, id LIMIT $2::bigint

-- due: threads that rest for a time that has come by $1, or for an event that is there
SELECT t.thread, t.graph FROM pregel_threads t WHERE t.run IS NULL AND t.tno IN (
    SELECT w.tno FROM pregel_waits w WHERE w.due <= $1
    UNION
    SELECT w.tno FROM pregel_events e JOIN pregel_waits w ON w.tno = e.tno AND w.name = e.name
    WHERE NOT e.taken AND (w.key IS NULL OR w.key = e.key)
) ORDER BY t.tno LIMIT $2

-- unread: threads whose last run came to its end, and to which an event of name $1 was sent that nobody has taken
SELECT t.thread, t.graph FROM pregel_threads t WHERE t.run IS NULL AND t.status = 'idle' AND t.reason = '' AND t.tno IN (
    SELECT e.tno FROM pregel_events e WHERE NOT e.taken AND e.name = $1
) ORDER BY t.tno LIMIT $2

-- delete_waits: the waits of a thread
DELETE FROM pregel_waits WHERE tno = $1

-- delete_events: the events of a thread
DELETE FROM pregel_events WHERE tno = $1

-- chunks: the chunks of a thread from an offset on
SELECT last, n, epoch, attempt, state, node, run_id, at, blob FROM pregel_chunks
WHERE tno = $1 AND last >= $2 ORDER BY last LIMIT $3

-- chunk_end: the offset of a thread's last chunk, and its attempt
SELECT last, attempt FROM pregel_chunks WHERE tno = $1 ORDER BY last DESC LIMIT 1

-- pending_chunks: rows whose work is not known to be stored
SELECT last, n FROM pregel_chunks WHERE tno = $1 AND state = 0 ORDER BY last

-- empty_chunks: take out what a run showed (NULL: whatever was shown), and leave the offsets
UPDATE pregel_chunks SET n = 0, state = 1, node = '', blob = ''
WHERE tno = $1 AND ($2::text IS NULL OR run_id = $2)

-- drop_chunks: remove the empty rows that are not the last one
DELETE FROM pregel_chunks WHERE tno = $1 AND n = 0 AND last < (SELECT max(last) FROM pregel_chunks WHERE tno = $1)

-- delete_chunks: the chunks of a thread
DELETE FROM pregel_chunks WHERE tno = $1

-- delete_checkpoint: one checkpoint, before it is put again
DELETE FROM pregel_checkpoints WHERE tno = $1 AND ns = $2 AND id = $3

-- lock_thread: a thread's number and epoch; nobody changes it until the end of the transaction
SELECT tno, epoch FROM pregel_threads WHERE thread = $1 FOR UPDATE

-- tombstone: whether a thread was erased
SELECT epoch FROM pregel_tombstones WHERE digest = $1

-- add_tombstone: remember that a thread was erased, without its name
INSERT INTO pregel_tombstones (digest, epoch, deleted_at) VALUES ($1, $2, extract(epoch FROM clock_timestamp()))
ON CONFLICT (digest) DO UPDATE SET epoch = excluded.epoch, deleted_at = excluded.deleted_at

-- delete_writes: the writes of a thread
DELETE FROM pregel_writes WHERE tno = $1

-- delete_values: the values of a thread
DELETE FROM pregel_channel_values WHERE tno = $1

-- delete_checkpoints: the checkpoints of a thread
DELETE FROM pregel_checkpoints WHERE tno = $1

-- delete_namespaces: the namespaces of a thread
DELETE FROM pregel_namespaces WHERE tno = $1

-- delete_thread: the row of a thread
DELETE FROM pregel_threads WHERE tno = $1

-- settings: those of the server under which an acknowledged step is durable
SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit') ORDER BY name

-- heads: the newest checkpoint of each namespace of a thread, after the namespace's text
SELECT n.text, c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest
FROM pregel_namespaces n
JOIN LATERAL (SELECT * FROM pregel_checkpoints c WHERE c.tno = n.tno AND c.ns = n.ns ORDER BY c.id DESC LIMIT 1) c ON true
WHERE n.tno = $1

-- namespaces: number and text of a thread's namespaces
SELECT ns, text FROM pregel_namespaces WHERE tno = $1

-- value_keys: what identifies a namespace's values, and what each hangs on
SELECT channel, at, kind, prev FROM pregel_channel_values WHERE tno = $1 AND ns = $2

-- named_places: channel and place of the deltas, or whole values, that writes of a namespace name; $3 their type
SELECT channel, blob FROM pregel_writes WHERE tno = $1 AND ns = $2 AND type = $3

-- threads_of_run: the threads in which a run made checkpoints
SELECT DISTINCT t.thread FROM pregel_checkpoints c JOIN pregel_threads t ON t.tno = c.tno WHERE c.run_id = $1

-- stale: the threads last written before a time, oldest first
SELECT thread FROM pregel_threads WHERE updated_at < $1 ORDER BY updated_at, tno

-- set_parent_rows: hang checkpoints on others, or on none
UPDATE pregel_checkpoints c SET parent = u.parent
FROM unnest($1::bytea[], $2::bigint[], $3::integer[], $4::bytea[]) u (parent, tno, ns, id)
WHERE c.tno = u.tno AND c.ns = u.ns AND c.id = u.id

-- rewrite_checkpoint: store a manifest that leans on no other
UPDATE pregel_checkpoints SET base = NULL, manifest = $1 WHERE tno = $2 AND ns = $3 AND id = $4

-- bump_gen: tell runs that loaded a thread to load it again
UPDATE pregel_threads SET gen = gen + 1 WHERE tno = $1

-- prune_checkpoints: a namespace's checkpoints older than an id
DELETE FROM pregel_checkpoints WHERE tno = $1 AND ns = $2 AND id < $3

-- prune_writes: the writes under a namespace's checkpoints older than an id
DELETE FROM pregel_writes WHERE tno = $1 AND ns = $2 AND checkpoint < $3

-- delete_checkpoint_rows: checkpoints
DELETE FROM pregel_checkpoints c USING unnest($1::bigint[], $2::integer[], $3::bytea[]) u (tno, ns, id)
WHERE c.tno = u.tno AND c.ns = u.ns AND c.id = u.id

-- delete_writes_of_rows: the writes under checkpoints
DELETE FROM pregel_writes w USING unnest($1::bigint[], $2::integer[], $3::bytea[]) u (tno, ns, id)
WHERE w.tno = u.tno AND w.ns = u.ns AND w.checkpoint = u.id

-- delete_value_rows: rows of channels
DELETE FROM pregel_channel_values v
USING unnest($1::bigint[], $2::integer[], $3::integer[], $4::bigint[], $5::text[]) u (tno, ns, channel, at, kind)
WHERE v.tno = u.tno AND v.ns = u.ns AND v.channel = u.channel AND v.at = u.at AND v.kind = u.kind

-- promote_cache_rows: make caches the values that they are caches of
UPDATE pregel_channel_values v SET kind = 'value', n = NULL
FROM unnest($1::bigint[], $2::integer[], $3::integer[], $4::bigint[]) u (tno, ns, channel, at)
WHERE v.tno = u.tno AND v.ns = u.ns AND v.channel = u.channel AND v.at = u.at AND v.kind = 'cache'

-- drop_namespace: a namespace's number, once nothing is stored in it
DELETE FROM pregel_namespaces WHERE tno = $1 AND ns = $2

-- copy_thread: a thread's row under a new name, held by nobody, above the epoch of its tombstone
INSERT INTO pregel_threads (thread, epoch, seq, last_id, status, reason, graph, meta, updated_at)
SELECT $1::text,
       greatest(1 + coalesce((SELECT epoch FROM pregel_tombstones WHERE digest = $2), 0),
                (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
       seq, last_id, CASE WHEN status IN ('running', 'pending') THEN 'idle' ELSE status END,
       CASE status WHEN 'running' THEN 'copied during a run' WHEN 'pending' THEN 'copied before a worker took it up' ELSE reason END, graph, meta,
       extract(epoch FROM clock_timestamp())
FROM pregel_threads WHERE tno = $4

-- copy_namespaces: the namespaces of one thread ($2) for another ($1)
INSERT INTO pregel_namespaces (tno, ns, text) SELECT $1::bigint, ns, text FROM pregel_namespaces WHERE tno = $2

-- copy_checkpoints: the same for checkpoints
INSERT INTO pregel_checkpoints
    (tno, ns, id, parent, base, lineage, epoch, step, source, run_id, created_at, metadata, manifest)
SELECT $1::bigint, ns, id, parent, base, lineage, epoch, step, source, run_id, created_at, metadata, manifest
FROM pregel_checkpoints WHERE tno = $2

-- copy_values: the same for channel values
INSERT INTO pregel_channel_values (tno, ns, channel, at, kind, type, blob, prev, base, fold, n)
SELECT $1::bigint, ns, channel, at, kind, type, blob, prev, base, fold, n FROM pregel_channel_values WHERE tno = $2

-- copy_writes: the same for writes
INSERT INTO pregel_writes (tno, ns, checkpoint, task, idx, channel, type, blob, path, name, child)
SELECT $1::bigint, ns, checkpoint, task, idx, channel, type, blob, path, name, child FROM pregel_writes WHERE tno = $2

-- copy_chunks: the same for chunks
INSERT INTO pregel_chunks (tno, last, n, epoch, attempt, state, node, run_id, at, blob)
SELECT $1::bigint, last, n, epoch, attempt, state, node, run_id, at, blob FROM pregel_chunks WHERE tno = $2

-- sweep_tombstones: forget the threads that were erased before a time
DELETE FROM pregel_tombstones WHERE deleted_at < $1
