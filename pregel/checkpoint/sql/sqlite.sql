-- thread: a thread's row; ?2 boot id, ?3 seconds since boot, ?4 unix seconds tell whether its lease has lapsed
SELECT tno, thread, epoch, run, seq, gen, last_id, status, reason, owner, expires,
       run IS NOT NULL AND CASE WHEN boot = ?2 THEN expires_boot < ?3 ELSE expires < ?4 END,
       asked, inbox, graph, updated_at,
       (SELECT coalesce(max(ns) + 1, 0) FROM pregel_namespaces n WHERE n.tno = t.tno), pin, crashes
FROM pregel_threads t WHERE thread = ?1

-- threads: the rows of threads with this status (NULL: any), the last written first
SELECT tno, thread, epoch, run, seq, gen, last_id, status, reason, owner, expires,
       run IS NOT NULL AND CASE WHEN boot = ?3 THEN expires_boot < ?4 ELSE expires < ?5 END,
       asked, inbox, graph, updated_at,
       (SELECT coalesce(max(ns) + 1, 0) FROM pregel_namespaces n WHERE n.tno = t.tno), pin, crashes
FROM pregel_threads t WHERE ?1 IS NULL OR status = ?1
ORDER BY updated_at DESC, tno DESC LIMIT coalesce(?2, -1)

-- pending: threads that were started and that nobody has run, the longest untouched first, from behind (?1, ?2)
SELECT tno, thread, epoch, run, seq, gen, last_id, status, reason, owner, expires, 0, asked, inbox, graph, updated_at,
       (SELECT coalesce(max(ns) + 1, 0) FROM pregel_namespaces n WHERE n.tno = t.tno), pin, crashes
FROM pregel_threads t WHERE status = 'pending' AND (updated_at, tno) > (?1, ?2)
ORDER BY updated_at, tno LIMIT ?3

-- standing: whether the last append of a thread has this seq and mark
SELECT 1 FROM pregel_threads WHERE thread = ? AND seq = ? AND mark = ?

-- namespace: the number of a namespace
SELECT ns FROM pregel_namespaces WHERE tno = ? AND text = ?

-- newest: the newest checkpoint of a namespace
SELECT ns, id, parent, base, lineage, step, source, run_id, created_at, metadata, manifest
FROM pregel_checkpoints WHERE tno = ?1
  AND ns = (SELECT ns FROM pregel_namespaces WHERE tno = ?1 AND text = ?2) ORDER BY id DESC LIMIT 1

-- newest_id: its id alone
SELECT id FROM pregel_checkpoints WHERE tno = ?1
  AND ns = (SELECT ns FROM pregel_namespaces WHERE tno = ?1 AND text = ?2) ORDER BY id DESC LIMIT 1

-- newest_before: the newest checkpoint of a namespace that is older than an id
SELECT ns, id, parent, base, lineage, step, source, run_id, created_at, metadata, manifest
FROM pregel_checkpoints WHERE tno = ?1
  AND ns = (SELECT ns FROM pregel_namespaces WHERE tno = ?1 AND text = ?2) AND id < ?3 ORDER BY id DESC LIMIT 1

-- checkpoint: one checkpoint
SELECT ns, id, parent, base, lineage, step, source, run_id, created_at, metadata, manifest
FROM pregel_checkpoints WHERE tno = ?1
  AND ns = (SELECT ns FROM pregel_namespaces WHERE tno = ?1 AND text = ?2) AND id = ?3

-- look: the newest checkpoint of a thread's namespace that is older than an id, the manifest of its base, and whether it has writes
SELECT t.tno, c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest,
       (SELECT b.manifest FROM pregel_checkpoints b WHERE b.tno = t.tno AND b.ns = c.ns AND b.id = c.base),
       EXISTS (SELECT 1 FROM pregel_writes w WHERE w.tno = t.tno AND w.ns = c.ns AND w.checkpoint = c.id)
FROM pregel_threads t
CROSS JOIN pregel_namespaces n ON n.tno = t.tno AND n.text = ?2
CROSS JOIN pregel_checkpoints c ON c.tno = t.tno AND c.ns = n.ns AND c.id < ?3
WHERE t.thread = ?1 ORDER BY c.id DESC LIMIT 1

-- manifest: the manifest of a checkpoint
SELECT manifest FROM pregel_checkpoints WHERE tno = ? AND ns = ? AND id = ?

-- values: rows of channels; ?3 JSON of [channel, first at, last at, 1 deltas or 0 whole ones]; ?4 NULL or a checkpoint without which none
SELECT v.channel, v.at, v.kind, v.type, v.blob, v.prev, v.base, v.fold, v.n
FROM json_each(?3) w CROSS JOIN pregel_channel_values v
WHERE v.tno = ?1 AND v.ns = ?2 AND v.channel = json_extract(w.value, '$[0]')
  AND v.at BETWEEN json_extract(w.value, '$[1]') AND json_extract(w.value, '$[2]')
  AND (v.kind = 'delta') = json_extract(w.value, '$[3]')
  AND (?4 IS NULL OR EXISTS (SELECT 1 FROM pregel_checkpoints WHERE tno = ?1 AND ns = ?2 AND id = ?4))

-- writes: the writes of a range of checkpoints
SELECT ns, checkpoint, task, idx, channel, type, blob, path, name, child
FROM pregel_writes WHERE tno = ? AND ns = ? AND checkpoint BETWEEN ? AND ?

-- page_namespace: checkpoints of one namespace older than an id, newest first
SELECT t.thread, t.tno, n.text,
       c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest
FROM pregel_threads t
CROSS JOIN pregel_namespaces n ON n.tno = t.tno AND n.text = ?2
CROSS JOIN pregel_checkpoints c ON c.tno = t.tno AND c.ns = n.ns AND c.id < ?3
WHERE t.thread = ?1 ORDER BY c.id DESC LIMIT ?4

-- page_thread: checkpoints of all namespaces of one thread older than an id, newest first
SELECT t.thread, t.tno, n.text,
       c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest
FROM pregel_threads t
CROSS JOIN pregel_namespaces n ON n.tno = t.tno
CROSS JOIN pregel_checkpoints c ON c.tno = t.tno AND c.ns = n.ns AND c.id < ?2
WHERE t.thread = ?1 ORDER BY c.id DESC LIMIT ?3

-- page_all: checkpoints of all threads older than an id, newest first; ?1 a namespace or NULL
SELECT t.thread, t.tno, n.text,
       c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest
FROM pregel_checkpoints c
JOIN pregel_threads t ON t.tno = c.tno
JOIN pregel_namespaces n ON n.tno = c.tno AND n.ns = c.ns
WHERE c.id < ?2 AND (?1 IS NULL OR n.text = ?1) ORDER BY c.id DESC, c.tno, c.ns LIMIT ?3

-- names: names that were interned after ?1, and the one numbered ?2
SELECT id, text FROM pregel_names WHERE id > ?1 OR id = ?2

-- name: the number of a name
SELECT id, text FROM pregel_names WHERE text = ?

-- intern: give a name a number unless it has one
INSERT INTO pregel_names (text) VALUES (?) ON CONFLICT DO NOTHING

-- append: the guard of an append by the run that holds the thread; renews its lease; 0 stands for NULL
UPDATE pregel_threads
SET seq = seq + ?1, mark = ?2, last_id = coalesce(nullif(?3, 0), last_id),
    expires = ?4 + ttl, expires_boot = ?5 + ttl, updated_at = ?4
WHERE tno = ?6 AND epoch = ?7 AND run = ?8 AND seq = ?9

-- release: the guard of a run's last append; gives the thread back; 0 stands for NULL
UPDATE pregel_threads
SET seq = seq + ?1, mark = ?2, last_id = coalesce(nullif(?3, 0), last_id), updated_at = ?4,
    run = NULL, owner = NULL, boot = NULL, status = ?10, reason = ?11, crashes = 0, graph = coalesce(nullif(?12, ''), graph)
WHERE tno = ?6 AND epoch = ?7 AND run = ?8 AND seq = ?9

-- claim: take a thread that is as it was loaded, if it is free, or its lease lapsed, or its owner dead (?14)
UPDATE pregel_threads
SET seq = seq + ?1, mark = ?2, last_id = coalesce(?3, last_id), updated_at = ?4,
    epoch = max(epoch + 1, CAST(?4 * 1000 AS INTEGER)), run = ?10, owner = ?11, boot = ?12, ttl = ?13,
    expires = ?4 + ?13, expires_boot = ?5 + ?13, status = ?15, reason = ?16,
    asked = CASE WHEN asked LIKE '~%' AND asked <> ?20 THEN asked ELSE '' END,
    graph = coalesce(nullif(?17, ''), graph), crashes = CASE WHEN run IS NULL THEN crashes ELSE crashes + 1 END,
    pin = ?19
WHERE tno = ?6 AND epoch = ?7 AND gen = ?8 AND seq = ?9
  AND (run IS NULL OR ?14 OR CASE WHEN boot = ?18 THEN expires_boot < ?5 ELSE expires < ?4 END)

-- create: claim a thread that does not exist, above the epoch of its tombstone
INSERT INTO pregel_threads
    (thread, epoch, run, seq, mark, last_id, owner, boot, ttl, expires, expires_boot, status, reason, graph, updated_at)
VALUES (?1, max(1 + coalesce((SELECT epoch FROM pregel_tombstones WHERE digest = ?2), 0), CAST(?3 * 1000 AS INTEGER)),
        ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?3 + ?10, ?11 + ?10, ?12, ?13, ?14, ?3)
ON CONFLICT DO NOTHING

-- renew: how long the run that holds a thread goes on holding it: its lease (?4 = 1), or no more (-1); ?6, ?7 the clock
UPDATE pregel_threads SET expires = ?7 + ttl * ?4, expires_boot = ?6 + ttl * ?4
WHERE tno = ?1 AND epoch = ?2 AND run = ?3

-- held: what is asked of the run that holds a thread; no row when another one does
SELECT asked FROM pregel_threads WHERE tno = ? AND epoch = ? AND run = ?

-- ask: leave word for the run that holds a thread, or with a ~ for the next one; of several rollback stands, else the first in order
UPDATE pregel_threads
SET asked = CASE WHEN asked = '' THEN ?1 WHEN 'rollback' IN (asked, ?1) THEN 'rollback' ELSE min(asked, ?1) END
WHERE tno = ?2 AND (?1 LIKE '~%' OR epoch = ?3 AND run = ?4)

-- standing_row: a thread's row after an append that hit it (RETURNING costs three times as much)
SELECT tno, thread, epoch, run, seq, gen, NULL, status, reason, NULL, expires, 0, asked, inbox, graph, updated_at, 0,
       pin, crashes
FROM pregel_threads WHERE thread = ?

-- make_thread: a thread row for a put without authority
INSERT INTO pregel_threads (thread, epoch, updated_at)
VALUES (?1, max(1 + coalesce((SELECT epoch FROM pregel_tombstones WHERE digest = ?2), 0), CAST(?3 * 1000 AS INTEGER)), ?3)

-- touch: count a put without authority
UPDATE pregel_threads SET seq = seq + 1, last_id = max(?1, coalesce(last_id, ?1)), updated_at = ?2 WHERE tno = ?3

-- add_namespaces: number a namespace
INSERT INTO pregel_namespaces (tno, ns, text) VALUES (?, ?, ?)

-- add_checkpoints: a checkpoint; a second one with its id is an error; 0 stands for NULL
INSERT INTO pregel_checkpoints
    (tno, ns, id, parent, base, lineage, epoch, step, source, run_id, created_at, metadata, manifest)
VALUES (?1, ?2, ?3, nullif(?4, 0), nullif(?5, 0), ?6, (SELECT epoch FROM pregel_threads WHERE tno = ?1), ?7, ?8,
        nullif(?9, 0), ?10, CAST(?11 AS TEXT), ?12)

-- add_values: a channel's value
INSERT INTO pregel_channel_values (tno, ns, channel, at, kind, type, blob, prev, base, fold, n)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- add_writes: a task's write; control rows (idx < 0) replace, others stay as first written; 0 stands for NULL
INSERT INTO pregel_writes (tno, ns, checkpoint, task, idx, channel, type, blob, path, name, child)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0))
ON CONFLICT (tno, ns, checkpoint, task, idx)
DO UPDATE SET type = excluded.type, blob = excluded.blob WHERE excluded.idx < 0

-- add_chunks: chunks that a run showed
INSERT INTO pregel_chunks (tno, last, n, epoch, attempt, state, node, run_id, at, blob)
VALUES (?1, ?2, ?3, (SELECT epoch FROM pregel_threads WHERE tno = ?1), ?4, ?5, ?6, ?7, ?8, ?9)

-- add_marks: what became of earlier chunks
UPDATE pregel_chunks SET state = ?3 WHERE tno = ?1 AND last = ?2

-- add_roused: the waits of a thread that is taken up
DELETE FROM pregel_waits WHERE tno = ?1 AND ?2

-- add_taken: an event that is taken; its id stays
UPDATE pregel_events SET taken = 1, type = '', blob = x'' WHERE tno = ?1 AND id = ?2

-- add_dropped: the events of a thread that nobody has taken; their ids stay
UPDATE pregel_events SET taken = 1, type = '', blob = x'' WHERE tno = ?1 AND taken = 0 AND ?2

-- add_waits: what a thread rests for
INSERT INTO pregel_waits (tno, id, name, key, due) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tno, id) DO UPDATE SET due = excluded.due

-- add_kept: take back the items of a thread but those whose ids are in a JSON list
DELETE FROM pregel_items WHERE tno = ?1 AND id NOT IN (SELECT w.value FROM json_each(?2) w)

-- add_items: work that a thread rests for; what is there stays as it is
INSERT INTO pregel_items (tno, id, name, version, at, type, blob) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- backlog: of each name and version how many items wait and are worked on, and since when the first has waited
SELECT name, version, sum(state = 0 OR expires < ?1), sum(state = 1 AND expires >= ?1),
       min(CASE WHEN state = 0 OR expires < ?1 THEN at END)
FROM pregel_items WHERE state < 2 GROUP BY name, version ORDER BY name, version

-- open_items: items of a name and version that may be taken at ?3, the oldest first
SELECT t.thread, t.graph, i.tno, i.id, i.name, i.version, i.at, i.token, i.owner, i.expires, i.attempt, i.failures,
       i.rejected, '', x''
FROM pregel_items i CROSS JOIN pregel_threads t ON t.tno = i.tno
WHERE i.name = ?1 AND i.version = ?2 AND i.state < 2 AND i.expires < ?3 ORDER BY i.at LIMIT ?4

-- held_items: items of a name and version that somebody holds at ?3
SELECT t.thread, t.graph, i.tno, i.id, i.name, i.version, i.at, i.token, i.owner, i.expires, i.attempt, i.failures,
       i.rejected, '', x''
FROM pregel_items i CROSS JOIN pregel_threads t ON t.tno = i.tno
WHERE i.name = ?1 AND i.version = ?2 AND i.state = 1 AND i.state < 2 AND i.expires >= ?3

-- take_item: take an item that is as it was seen (?3 its token)
UPDATE pregel_items SET state = 1, token = ?4, owner = ?5, expires = ?6, attempt = attempt + 1
WHERE tno = ?1 AND id = ?2 AND state < 2 AND token IS ?3

-- item: the item that is held with a token
SELECT t.thread, t.graph, i.tno, i.id, i.name, i.version, i.at, i.token, i.owner, i.expires, i.attempt, i.failures,
       i.rejected, i.type, i.blob
FROM pregel_items i CROSS JOIN pregel_threads t ON t.tno = i.tno
WHERE i.tno = ?1 AND i.id = ?2 AND i.token = ?3 AND i.state = 1

-- renew_item: hold an item until ?4
UPDATE pregel_items SET expires = ?4 WHERE tno = ?1 AND id = ?2 AND token = ?3

-- hand_back_item: give an item back, for whoever looks from ?4 on; ?5 attempts, ?6 failures and ?7 rejections more
UPDATE pregel_items SET state = 0, token = NULL, owner = '', expires = ?4, attempt = attempt + ?5,
    failures = failures + ?6, rejected = rejected + ?7
WHERE tno = ?1 AND id = ?2 AND token = ?3

-- end_item: an item is done; its id stays until the thread goes on
UPDATE pregel_items SET state = 2, token = NULL, type = '', blob = x'' WHERE tno = ?1 AND id = ?2 AND token = ?3

-- delete_items: the items of a thread
DELETE FROM pregel_items WHERE tno = ?

-- event: whether an event of this id was sent to a thread
SELECT 1 FROM pregel_events WHERE tno = ? AND id = ?

-- awaited: the keys of the waits of a thread for events of a name
SELECT key FROM pregel_waits WHERE tno = ? AND name = ?

-- send_event: an event for a thread
INSERT INTO pregel_events (tno, id, name, key, at, type, blob) VALUES (?, ?, ?, ?, ?, ?, ?)

-- count_event: that something was sent to a thread
UPDATE pregel_threads SET inbox = inbox + 1 WHERE tno = ?

-- events: what was sent to a thread and nobody has taken, in the order in which it came
SELECT id, name, key, at, type, blob FROM pregel_events WHERE tno = ?1 AND taken = 0
ORDER BY at, id LIMIT coalesce(?2, -1)

-- due: threads that rest for a time that has come by ?1, or for an event that is there
SELECT t.thread, t.graph FROM pregel_threads t WHERE t.run IS NULL AND t.tno IN (
    SELECT w.tno FROM pregel_waits w WHERE w.due <= ?1
    UNION
    SELECT w.tno FROM pregel_events e CROSS JOIN pregel_waits w ON w.tno = e.tno AND w.name = e.name
    WHERE e.taken = 0 AND (w.key IS NULL OR w.key = e.key)
) ORDER BY t.tno LIMIT coalesce(?2, -1)

-- unread: threads whose last run came to its end, and to which an event of name ?1 was sent that nobody has taken
SELECT t.thread, t.graph FROM pregel_threads t WHERE t.run IS NULL AND t.status = 'idle' AND t.reason = '' AND t.tno IN (
    SELECT e.tno FROM pregel_events e WHERE e.taken = 0 AND e.name = ?1
) ORDER BY t.tno LIMIT coalesce(?2, -1)

-- delete_waits: the waits of a thread
DELETE FROM pregel_waits WHERE tno = ?

-- delete_events: the events of a thread
DELETE FROM pregel_events WHERE tno = ?

-- chunks: the chunks of a thread from an offset on
SELECT last, n, epoch, attempt, state, node, run_id, at, blob FROM pregel_chunks
WHERE tno = ?1 AND last >= ?2 ORDER BY last LIMIT ?3

-- chunk_end: the offset of a thread's last chunk, and its attempt
SELECT last, attempt FROM pregel_chunks WHERE tno = ? ORDER BY last DESC LIMIT 1

-- pending_chunks: rows whose work is not known to be stored
SELECT last, n FROM pregel_chunks WHERE tno = ? AND state = 0 ORDER BY last

-- empty_chunks: take out what a run showed (NULL: whatever was shown), and leave the offsets
UPDATE pregel_chunks SET n = 0, state = 1, node = '', blob = x'' WHERE tno = ?1 AND (?2 IS NULL OR run_id = ?2)

-- drop_chunks: remove the empty rows that are not the last one
DELETE FROM pregel_chunks WHERE tno = ?1 AND n = 0 AND last < (SELECT max(last) FROM pregel_chunks WHERE tno = ?1)

-- delete_chunks: the chunks of a thread
DELETE FROM pregel_chunks WHERE tno = ?

-- delete_checkpoint: one checkpoint, before it is put again
DELETE FROM pregel_checkpoints WHERE tno = ? AND ns = ? AND id = ?

-- lock_thread: a thread's number and epoch, under the write lock
SELECT tno, epoch FROM pregel_threads WHERE thread = ?

-- tombstone: whether a thread was erased
SELECT epoch FROM pregel_tombstones WHERE digest = ?

-- add_tombstone: remember that a thread was erased, without its name
INSERT INTO pregel_tombstones (digest, epoch, deleted_at) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET epoch = excluded.epoch, deleted_at = excluded.deleted_at

-- delete_writes: the writes of a thread
DELETE FROM pregel_writes WHERE tno = ?

-- delete_values: the values of a thread
DELETE FROM pregel_channel_values WHERE tno = ?

-- delete_checkpoints: the checkpoints of a thread
DELETE FROM pregel_checkpoints WHERE tno = ?

-- delete_namespaces: the namespaces of a thread
DELETE FROM pregel_namespaces WHERE tno = ?

-- delete_thread: the row of a thread
DELETE FROM pregel_threads WHERE tno = ?

-- heads: the newest checkpoint of each namespace of a thread, after the namespace's text
SELECT n.text, c.ns, c.id, c.parent, c.base, c.lineage, c.step, c.source, c.run_id, c.created_at, c.metadata, c.manifest
FROM pregel_namespaces n
JOIN pregel_checkpoints c ON c.tno = n.tno AND c.ns = n.ns
  AND c.id = (SELECT max(id) FROM pregel_checkpoints WHERE tno = n.tno AND ns = n.ns)
WHERE n.tno = ?

-- namespaces: number and text of a thread's namespaces
SELECT ns, text FROM pregel_namespaces WHERE tno = ?

-- value_keys: what identifies a namespace's values, and what each hangs on
SELECT channel, at, kind, prev FROM pregel_channel_values WHERE tno = ? AND ns = ?

-- named_places: channel and place of the deltas, or whole values, that writes of a namespace name; ?3 their type
SELECT channel, blob FROM pregel_writes WHERE tno = ? AND ns = ? AND type = ?

-- threads_of_run: the threads in which a run made checkpoints
SELECT t.thread FROM pregel_checkpoints c JOIN pregel_threads t ON t.tno = c.tno WHERE c.run_id = ?

-- stale: the threads last written before a time, oldest first
SELECT thread FROM pregel_threads WHERE updated_at < ? ORDER BY updated_at, tno

-- set_parent: hang a checkpoint on another one, or on none
UPDATE pregel_checkpoints SET parent = ? WHERE tno = ? AND ns = ? AND id = ?

-- rewrite_checkpoint: store a manifest that leans on no other
UPDATE pregel_checkpoints SET base = NULL, manifest = ? WHERE tno = ? AND ns = ? AND id = ?

-- bump_gen: tell runs that loaded a thread to load it again
UPDATE pregel_threads SET gen = gen + 1 WHERE tno = ?

-- prune_checkpoints: a namespace's checkpoints older than an id
DELETE FROM pregel_checkpoints WHERE tno = ? AND ns = ? AND id < ?

-- prune_writes: the writes under a namespace's checkpoints older than an id
DELETE FROM pregel_writes WHERE tno = ? AND ns = ? AND checkpoint < ?

-- delete_writes_of: the writes under one checkpoint
DELETE FROM pregel_writes WHERE tno = ? AND ns = ? AND checkpoint = ?

-- delete_value: one row of a channel
DELETE FROM pregel_channel_values WHERE tno = ? AND ns = ? AND channel = ? AND at = ? AND kind = ?

-- promote_cache: make a cache the value that it is a cache of
UPDATE pregel_channel_values SET kind = 'value', n = NULL
WHERE tno = ? AND ns = ? AND channel = ? AND at = ? AND kind = 'cache'

-- drop_namespace: a namespace's number, once nothing is stored in it
DELETE FROM pregel_namespaces WHERE tno = ? AND ns = ?

-- copy_thread: a thread's row under a new name, held by nobody, above the epoch of its tombstone
INSERT INTO pregel_threads (thread, epoch, seq, last_id, status, reason, graph, meta, updated_at)
SELECT ?1, max(1 + coalesce((SELECT epoch FROM pregel_tombstones WHERE digest = ?2), 0), CAST(?3 * 1000 AS INTEGER)),
       seq, last_id, CASE WHEN status IN ('running', 'pending') THEN 'idle' ELSE status END,
       CASE status WHEN 'running' THEN 'copied during a run' WHEN 'pending' THEN 'copied before a worker took it up' ELSE reason END, graph, meta, ?3
FROM pregel_threads WHERE tno = ?4

-- copy_namespaces: the namespaces of one thread (?2) for another (?1)
INSERT INTO pregel_namespaces (tno, ns, text) SELECT ?1, ns, text FROM pregel_namespaces WHERE tno = ?2

-- copy_checkpoints: the same for checkpoints
INSERT INTO pregel_checkpoints
    (tno, ns, id, parent, base, lineage, epoch, step, source, run_id, created_at, metadata, manifest)
SELECT ?1, ns, id, parent, base, lineage, epoch, step, source, run_id, created_at, metadata, manifest
FROM pregel_checkpoints WHERE tno = ?2

-- copy_values: the same for channel values
INSERT INTO pregel_channel_values (tno, ns, channel, at, kind, type, blob, prev, base, fold, n)
SELECT ?1, ns, channel, at, kind, type, blob, prev, base, fold, n FROM pregel_channel_values WHERE tno = ?2

-- copy_writes: the same for writes
INSERT INTO pregel_writes (tno, ns, checkpoint, task, idx, channel, type, blob, path, name, child)
SELECT ?1, ns, checkpoint, task, idx, channel, type, blob, path, name, child FROM pregel_writes WHERE tno = ?2

-- copy_chunks: the same for chunks
INSERT INTO pregel_chunks (tno, last, n, epoch, attempt, state, node, run_id, at, blob)
SELECT ?1, last, n, epoch, attempt, state, node, run_id, at, blob FROM pregel_chunks WHERE tno = ?2

-- sweep_tombstones: forget the threads that were erased before a time
DELETE FROM pregel_tombstones WHERE deleted_at < ?
