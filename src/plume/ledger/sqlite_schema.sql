-- Entries are only ever added. What must never happen is refused here as well, whatever the code above does.
CREATE TABLE entries (
  number     INTEGER PRIMARY KEY,
  kind       TEXT NOT NULL,
  dataset    TEXT NOT NULL,
  release_id TEXT,
  at         TEXT NOT NULL,
  content    TEXT NOT NULL CHECK (json_valid(content)),
  previous   TEXT NOT NULL UNIQUE,
  hash       TEXT NOT NULL UNIQUE,
  CHECK ((release_id IS NULL) = (kind = 'dataset'))
) STRICT;

CREATE UNIQUE INDEX one_limit_per_dataset ON entries (dataset) WHERE kind = 'dataset';
CREATE UNIQUE INDEX each_kind_once_per_release ON entries (release_id, kind) WHERE release_id IS NOT NULL;
CREATE INDEX by_dataset ON entries (dataset, kind);

CREATE TRIGGER entries_never_go BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'an entry of a ledger is never removed'); END;

CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'an entry of a ledger is never changed'); END;

CREATE TRIGGER entries_follow_each_other BEFORE INSERT ON entries
WHEN (NEW.number, NEW.previous) IS NOT
  (SELECT count(*) + 1, coalesce((SELECT hash FROM entries ORDER BY number DESC LIMIT 1), NEW.previous) FROM entries)
BEGIN SELECT RAISE(ABORT, 'an entry must follow the last one'); END;

CREATE TRIGGER releases_move_forward BEFORE INSERT ON entries
WHEN NEW.release_id IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM (VALUES ('reserved', NULL), ('drawing', 'reserved'), ('staged', 'drawing'), ('released', 'staged'),
                        ('lost', 'drawing'), ('abandoned', 'reserved')) AS moves
  WHERE moves.column1 = NEW.kind AND moves.column2 IS
    (SELECT kind FROM entries WHERE release_id = NEW.release_id ORDER BY number DESC LIMIT 1))
BEGIN SELECT RAISE(ABORT, 'a release moves forward only'); END;

CREATE TRIGGER limits_hold BEFORE INSERT ON entries
WHEN NEW.kind = 'reserved' AND NOT EXISTS (
  SELECT 1 FROM entries AS allowed
  WHERE allowed.kind = 'dataset' AND allowed.dataset = NEW.dataset
    AND json_extract(NEW.content, '$.total_epsilon') <= json_extract(allowed.content, '$.epsilon')
    AND json_extract(NEW.content, '$.total_delta') <= json_extract(allowed.content, '$.delta')
    AND json_extract(NEW.content, '$.charges_before') =
      (SELECT count(*) FROM entries WHERE kind = 'reserved' AND dataset = NEW.dataset))
BEGIN SELECT RAISE(ABORT, 'the limit of the dataset does not allow this charge'); END;
