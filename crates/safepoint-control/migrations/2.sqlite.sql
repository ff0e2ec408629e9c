-- What is decided about: holds, permits, trust, operators, how a session stands, what runs.
-- Each is a document; its digest is in the trail, so that a row that was changed is found.
CREATE TABLE control_documents (
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  time INTEGER NOT NULL,
  is_open INTEGER NOT NULL,
  topic TEXT,
  state TEXT NOT NULL,
  PRIMARY KEY (kind, id)
);
CREATE INDEX control_documents_by_open ON control_documents (kind, is_open, time);
CREATE INDEX control_documents_by_topic ON control_documents (kind, topic, time);
