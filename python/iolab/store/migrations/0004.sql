-- What an operation is, beside its size: never to be read from its name. NULL where nobody knows.
-- `iolab.store.schema` then fills them in for the operations of which it is certain, and makes the
-- digests of the records again, which were checked before.
ALTER TABLE phase ADD COLUMN kind TEXT;
ALTER TABLE phase ADD COLUMN access TEXT;
