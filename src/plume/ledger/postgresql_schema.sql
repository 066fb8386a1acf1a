-- The same rules as in sqlite_schema.sql, and one more: only the ledger's owner gives datasets a budget. Whoever may insert into `entries`
-- and `releases` can charge, and nothing else. Every function reads its tables by names that no other role can stand before.
CREATE SCHEMA plume_ledger;
COMMENT ON SCHEMA plume_ledger IS 'Plume ledger, version 1';

CREATE TABLE plume_ledger.entries (
  number     bigint PRIMARY KEY,
  kind       text COLLATE "C" NOT NULL,
  dataset    text COLLATE "C" NOT NULL,
  release_id text COLLATE "C",
  at         text COLLATE "C" NOT NULL,
  content    text COLLATE "C" NOT NULL,
  previous   text COLLATE "C" NOT NULL UNIQUE,
  hash       text COLLATE "C" NOT NULL UNIQUE
);
CREATE UNIQUE INDEX one_limit_per_dataset ON plume_ledger.entries (dataset) WHERE kind = 'dataset';
CREATE UNIQUE INDEX each_kind_once_per_release ON plume_ledger.entries (release_id, kind) WHERE release_id IS NOT NULL;
CREATE INDEX by_dataset ON plume_ledger.entries (dataset, kind);

CREATE TABLE plume_ledger.releases (
  release_id text COLLATE "C" PRIMARY KEY,
  content    bytea NOT NULL
);

CREATE FUNCTION plume_ledger.refuse() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE integrity_constraint_violation USING MESSAGE = TG_ARGV[0];
END $$;

CREATE FUNCTION plume_ledger.last_kind(of_release text) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  SELECT kind FROM plume_ledger.entries WHERE release_id = of_release ORDER BY number DESC LIMIT 1
$$;

CREATE FUNCTION plume_ledger.check_entry() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  last record;
BEGIN
  SELECT number, hash INTO last FROM plume_ledger.entries ORDER BY number DESC LIMIT 1;
  IF NEW.number IS DISTINCT FROM coalesce(last.number, 0) + 1
     OR NEW.previous IS DISTINCT FROM coalesce(last.hash, NEW.previous) THEN
    RAISE integrity_constraint_violation USING MESSAGE = 'an entry must follow the last one';
  END IF;
  IF (NEW.release_id IS NULL) <> (NEW.kind = 'dataset') OR NEW.release_id IS NOT NULL AND NOT EXISTS (
    SELECT FROM (VALUES ('reserved', NULL), ('drawing', 'reserved'), ('staged', 'drawing'), ('released', 'staged'),
                        ('lost', 'drawing'), ('abandoned', 'reserved')) AS moves (kind, follows)
    WHERE moves.kind = NEW.kind AND moves.follows IS NOT DISTINCT FROM plume_ledger.last_kind(NEW.release_id)) THEN
    RAISE integrity_constraint_violation USING MESSAGE = 'a release moves forward only';
  END IF;
  IF NEW.kind = 'dataset'
     AND NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'plume_ledger.entries'::regclass), 'USAGE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'only the owner of the ledger gives a dataset its budget';
  END IF;
  IF NEW.kind = 'reserved' AND NOT EXISTS (
    SELECT FROM plume_ledger.entries AS allowed
    WHERE allowed.kind = 'dataset' AND allowed.dataset = NEW.dataset
      AND (NEW.content::json ->> 'total_epsilon')::numeric <= (allowed.content::json ->> 'epsilon')::numeric
      AND (NEW.content::json ->> 'total_delta')::numeric <= (allowed.content::json ->> 'delta')::numeric
      AND (NEW.content::json ->> 'charges_before')::numeric =
        (SELECT count(*) FROM plume_ledger.entries WHERE kind = 'reserved' AND dataset = NEW.dataset)) THEN
    RAISE integrity_constraint_violation USING MESSAGE = 'the limit of the dataset does not allow this charge';
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION plume_ledger.check_release() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF coalesce(plume_ledger.last_kind(coalesce(NEW.release_id, OLD.release_id)), '') <> ALL (TG_ARGV) THEN
    RAISE integrity_constraint_violation USING MESSAGE = 'rows come when they were drawn, and go if they are lost';
  END IF;
  RETURN coalesce(NEW, OLD);
END $$;

-- Whoever may charge need not be allowed to delete anything.
CREATE FUNCTION plume_ledger.forget_lost() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM plume_ledger.releases WHERE release_id = NEW.release_id;
  RETURN NULL;
END $$;

CREATE TRIGGER entries_never_go BEFORE DELETE OR TRUNCATE ON plume_ledger.entries
  FOR EACH STATEMENT EXECUTE FUNCTION plume_ledger.refuse('an entry of a ledger is never removed');
CREATE TRIGGER entries_never_change BEFORE UPDATE ON plume_ledger.entries
  FOR EACH STATEMENT EXECUTE FUNCTION plume_ledger.refuse('an entry of a ledger is never changed');
CREATE TRIGGER entries_are_checked BEFORE INSERT ON plume_ledger.entries
  FOR EACH ROW EXECUTE FUNCTION plume_ledger.check_entry();
CREATE TRIGGER lost_rows_go AFTER INSERT ON plume_ledger.entries
  FOR EACH ROW WHEN (NEW.kind = 'lost') EXECUTE FUNCTION plume_ledger.forget_lost();
CREATE TRIGGER rows_never_change BEFORE UPDATE OR TRUNCATE ON plume_ledger.releases
  FOR EACH STATEMENT EXECUTE FUNCTION plume_ledger.refuse('the rows of a release never change');
CREATE TRIGGER rows_come_once_drawn BEFORE INSERT ON plume_ledger.releases
  FOR EACH ROW EXECUTE FUNCTION plume_ledger.check_release('drawing', 'staged', 'released');
CREATE TRIGGER rows_go_if_lost BEFORE DELETE ON plume_ledger.releases
  FOR EACH ROW EXECUTE FUNCTION plume_ledger.check_release('lost');

-- Not left out by a session that replays somebody else's changes.
ALTER TABLE plume_ledger.entries ENABLE ALWAYS TRIGGER entries_never_go;
ALTER TABLE plume_ledger.entries ENABLE ALWAYS TRIGGER entries_never_change;
ALTER TABLE plume_ledger.entries ENABLE ALWAYS TRIGGER entries_are_checked;
ALTER TABLE plume_ledger.entries ENABLE ALWAYS TRIGGER lost_rows_go;
ALTER TABLE plume_ledger.releases ENABLE ALWAYS TRIGGER rows_never_change;
ALTER TABLE plume_ledger.releases ENABLE ALWAYS TRIGGER rows_come_once_drawn;
ALTER TABLE plume_ledger.releases ENABLE ALWAYS TRIGGER rows_go_if_lost;
