-- What was answered to whom, so that a request that comes again is answered again and not done again.
CREATE TABLE control_replies (
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  digest TEXT NOT NULL,
  time BIGINT NOT NULL,
  status BIGINT,
  body TEXT,
  PRIMARY KEY (caller, key)
);
CREATE INDEX control_replies_by_time ON control_replies (time);
