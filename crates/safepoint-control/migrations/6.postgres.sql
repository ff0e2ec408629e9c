-- Answers are sealed: some hold tokens. Those that were kept before are forgotten.
DROP TABLE control_replies;
CREATE TABLE control_replies (
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  digest TEXT NOT NULL,
  time BIGINT NOT NULL,
  status BIGINT,
  sealed BYTEA,
  PRIMARY KEY (caller, key)
);
CREATE INDEX control_replies_by_time ON control_replies (time);
