//! The creation of a record: looked at, written and recorded in one transaction.
//!
//! Structure, type and permission are looked at first; state and parent last,
//! where nobody else can change them. A rejection is one entry and nothing else.

use std::sync::{Arc, Mutex, PoisonError};

use safepoint_model::{Digest, Frame, RecordId, WorkspaceId};
use safepoint_store::{Durability, fault};
use safepoint_trail::{Draft, Kind, Stream, Writing};
use serde_json::json;

use crate::ProgressError;
use crate::account::Account;
use crate::agent::actor;
use crate::chain::opened;
use crate::deliver::Handing;
use crate::emitted::Emission;
use crate::known::{End, Known};
use crate::place::Seen;
use crate::progress::Progress;
use crate::record::{self, Asked, Record};
use crate::rejection::{Reason, Rejection};
use crate::signal::SignalType;
use crate::state::State;
use crate::table::{self, Made, RequestKey, StoredRecord};
use crate::tell::protocol;

/// The longest request key.
const LONGEST_KEY: usize = 200;

impl Progress {
    /// Creates the record that `body` asks for, or rejects it.
    ///
    /// The same `request_key` with the same bytes gives the first result again.
    pub fn checkpoint(
        &self,
        id: &WorkspaceId,
        token: &str,
        body: &[u8],
        request_key: Option<&str>,
        seen: Option<&Seen>,
    ) -> Result<Result<Record, Rejection>, ProgressError> {
        let request = Arc::new(Request::read(id, token, body, request_key, seen));
        let first = self.try_checkpoint(&request, Handing::AtOnce);
        let (outcome, handing) = match first {
            // It was undone with everything else, so the record is made anew, and its parent
            // hears of it afterwards: whether it can is no concern of the child.
            (Err(_), Handing::Failed) => self.try_checkpoint(&request, Handing::InLine),
            first => first,
        };
        let outcome = outcome?;
        fault::point("progress.record.acknowledged");
        // The record is kept, whether its parent hears of it now or from whoever comes next.
        if let Handing::Left(parent) = &handing {
            let _ = self.deliver_to(parent);
        }
        Ok(outcome)
    }

    /// What came of it, and how far its signal got.
    fn try_checkpoint(
        &self,
        request: &Arc<Request>,
        handing: Handing,
    ) -> (Result<Result<Record, Rejection>, ProgressError>, Handing) {
        let got_so_far = Arc::new(Mutex::new(handing));
        let (progress, request) = (self.clone(), Arc::clone(request));
        let handing = Arc::clone(&got_so_far);
        let made = self.trail.write_shared(Durability::Sync, move |writing| {
            let mut handing = handing.lock().unwrap_or_else(PoisonError::into_inner);
            progress.checkpoint_in(writing, &request, &mut handing)
        });
        let mut handing = got_so_far.lock().unwrap_or_else(PoisonError::into_inner);
        let handing = std::mem::replace(&mut *handing, Handing::Done);
        (made.and_then(|made| made), handing)
    }

    fn checkpoint_in(
        &self,
        writing: &mut Writing<'_>,
        request: &Request,
        handing: &mut Handing,
    ) -> Result<Result<Result<Record, Rejection>, ProgressError>, ProgressError> {
        let id = &request.workspace;
        let known = self.known(writing, id)?;
        let made = match &known {
            Some(known) => Arc::clone(&known.made),
            None => Arc::new(table::made(writing.sql(), id)?),
        };
        let agent = match &known {
            Some(known) => known.agent,
            None => self.proved_binding(writing.sql(), id)?,
        };
        if let Err(error) =
            self.authenticate(writing, &made, agent, &request.token, "checkpoint_create")?
        {
            return Ok(Err(error));
        }
        let has_directory = match &known {
            Some(known) => known.has_directory,
            None => table::place(writing.sql(), id)?.is_some(),
        };
        let asked = match (has_directory, &request.asked) {
            (false, Ok(asked)) if asked.names_files => Ok(asked.clone()),
            // Without a directory there is more to reject, and another reason may come first.
            (false, _) => record::read(&request.body, id, record::Files::Named),
            (true, asked) => asked.clone(),
        };
        let directory = match (has_directory, &request.seen) {
            (false, _) => Directory::None,
            (true, Some(seen)) => Directory::Seen(seen),
            (true, None) => Directory::Unseen,
        };
        let setting = Setting {
            made: &made,
            agent,
            directory,
            known: known.as_deref(),
        };
        let key = request.key.as_ref();
        let outcome = match asked.and_then(|asked| usable(key).map(|()| asked)) {
            Ok(asked) => self.attempt(writing, &setting, asked, key, handing)?,
            Err(rejection) => Err(rejection),
        };
        if let Err(rejection) = &outcome {
            let timestamp = self.moment(writing)?;
            writing.append(Draft {
                stream: Stream::from(id),
                actor: actor(&made.role),
                kind: Kind::fixed("checkpoint_rejected").into(),
                action_id: None,
                body: json!({
                    "workspace": id, "type": record::type_of(&request.body),
                    "reason": rejection.reason, "timestamp": timestamp,
                }),
            })?;
        }
        Ok(Ok(outcome))
    }

    fn attempt(
        &self,
        writing: &mut Writing<'_>,
        setting: &Setting<'_>,
        mut asked: Asked,
        key: Option<&RequestKey>,
        handing: &mut Handing,
    ) -> Result<Result<Record, Rejection>, ProgressError> {
        let Setting {
            made,
            directory,
            known,
            ..
        } = *setting;
        if let Some(key) = key
            && let Some(first) = table::keyed(writing.sql(), &made.id, &key.key)?
        {
            if first.request_digest.as_deref() != Some(key.digest.as_bytes().as_slice()) {
                let detail = "the request key was used for another checkpoint; choose a new one";
                return Ok(Err(Rejection::structure(detail)));
            }
            let left = made.parent.clone();
            *handing = left.map_or(Handing::Done, Handing::Left); // it may still wait
            return opened(&made.id, &first).map(Ok);
        }
        let taxonomy = match known {
            Some(known) => Arc::clone(&known.taxonomy),
            None => self.taxonomy(writing.sql(), &made.run)?,
        };
        if let (Directory::Seen(seen), false) = (directory, asked.names_files) {
            asked.payload.files_changed.clone_from(&seen.files_changed);
        }
        if let Err(rejection) = taxonomy.permits(&made.role, &asked.kind, &asked.payload) {
            return Ok(Err(rejection));
        }
        let timestamp = self.moment(writing)?;
        let (mut state, account, end) = match known {
            Some(known) => {
                let end = End::Known(known.head.clone(), known.number);
                (State::Active, known.account, end)
            }
            None => self.as_kept(writing, &made.id)?,
        };
        let account = account.at(state, timestamp);
        // Whether somebody looked at the time before us changes nothing: it is up.
        if self.time_out(writing, made, &account, state)? {
            state = table::standing(writing.sql(), &made.id)?.0.state;
        }
        if state != State::Active {
            let detail =
                format!("the workspace is {state}; checkpoints are made while it is active");
            return Ok(Err(Rejection::new(Reason::WorkspaceNotActive, detail)));
        }
        let number = end.next_number();
        // What is built upon must be what was written.
        let parent = match end {
            End::None => None,
            End::Known(id, _) => Some(id),
            End::Read(row) => Some(self.heads.open(&made.id, &row)?),
        };
        if !asked.builds_upon(parent.as_ref()) {
            let head = parent.as_ref().map_or("null", RecordId::as_str);
            let detail = format!("`parent` is not the head of the chain, which is `{head}`");
            return Ok(Err(Rejection::new(Reason::InvalidParent, detail)));
        }
        let seen = match directory {
            Directory::None => None,
            Directory::Seen(seen) => Some(seen),
            Directory::Unseen => {
                let why = format!("the directory of `{}` has to be looked at first", made.id);
                return Err(ProgressError::Refused(why));
            }
        };
        if let Some(seen) = seen {
            if seen.since != parent {
                let detail = "the chain has grown since the directory was looked at; ask again";
                return Ok(Err(Rejection::new(Reason::InvalidParent, detail)));
            }
            if let Err(rejection) = seen.confirms(&asked.payload.files_changed) {
                return Ok(Err(rejection));
            }
            safepoint_state::keep(writing.sql(), &seen.snapshot)?;
        }
        let made_record = Record {
            id: RecordId::new(timestamp, &*self.entropy)?,
            workspace: made.id.clone(),
            kind: asked.kind,
            payload: asked.payload,
            intent: asked.intent,
            parent,
            status: asked.status,
            confidence: asked.confidence,
            resource_usage: asked.resource_usage,
            snapshot: seen.map(|seen| seen.snapshot.clone()),
            actions: seen.map(|seen| seen.actions.clone()).unwrap_or_default(),
            timestamp,
        };
        let (emission, account) = self.keep(writing, made, &made_record, number, key, account)?;
        self.hand_over(writing, &emission, handing)?;
        if let Some(account) = account {
            let known = Known {
                made: Arc::clone(made),
                agent: setting.agent,
                has_directory: !matches!(directory, Directory::None),
                taxonomy,
                account,
                head: made_record.id.clone(),
                number,
            };
            self.remember(writing, known);
        }
        Ok(Ok(made_record))
    }

    /// Writes a record down, emits the signal that tells of it, and counts it. Gives the account
    /// with it, where that follows from the record and nothing else has happened.
    fn keep(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        record: &Record,
        number: i64,
        key: Option<&RequestKey>,
        mut account: Account,
    ) -> Result<(Emission, Option<Account>), ProgressError> {
        let body = record.to_canonical()?;
        let since = account.add_record(u64::try_from(body.len()).unwrap_or(u64::MAX));
        let reckoned = made.reckoned(account, State::Active);
        let rows = reckoned.row_for_record();
        let proof = record::proof(&record.id, &body);
        let request = key.map(|key| request_mark(&key.key, key.digest.as_bytes()));
        let entry = writing.append(Draft {
            stream: Stream::from(&made.id),
            actor: actor(&made.role),
            kind: Kind::fixed("checkpoint_created").into(),
            action_id: None,
            body: json!({
                "checkpoint_id": record.id, "subject": "record", "workspace": made.id, "type": record.kind,
                "status": record.status, "confidence": record.confidence, "parent": record.parent,
                "timestamp": record.timestamp, "resource_usage": record.resource_usage,
                "snapshot": record.snapshot,
                "integrity": {"proof": proof, "algorithm": record::RECORD_TAG},
                "request": request, "rows": table::marks(rows),
            }),
        })?;
        fault::point("progress.record.recorded");
        let row = StoredRecord::of(
            record,
            number,
            body,
            &proof,
            account.taken.record_bytes,
            entry.seq,
            key,
        );
        table::insert_record(writing.sql(), &made.id, &row)?;
        self.heads.remember(&record.id, &made.id, row);
        fault::point("progress.record.kept");
        let about = Some(record.id.as_str());
        let kind = SignalType::Checkpoint;
        let emission = self.utter(writing, made, protocol(), kind, None, about)?;
        fault::point("progress.record.told");
        self.meter_record(writing, made, record, &since)?;
        table::insert_rows(writing.sql(), rows, entry.seq)?;
        self.settle(writing, made, &reckoned, Some(entry.seq))?;
        Ok((emission, rows.is_empty().then_some(account)))
    }
}

/// What is asked for, as far as it is known before anybody has to wait for it. It borrows
/// nothing, since another thread may be the one that makes the record.
struct Request {
    workspace: WorkspaceId,
    token: String,
    body: Vec<u8>,
    asked: Result<Asked, Rejection>,
    key: Option<RequestKey>,
    seen: Option<Seen>,
}

impl Request {
    fn read(
        id: &WorkspaceId,
        token: &str,
        body: &[u8],
        key: Option<&str>,
        seen: Option<&Seen>,
    ) -> Self {
        Self {
            workspace: id.clone(),
            token: token.to_owned(),
            body: body.to_vec(),
            asked: record::read(body, id, record::Files::NamedOrSeen),
            key: key.map(|key| RequestKey {
                key: key.to_owned(),
                digest: request_digest(body),
            }),
            seen: seen.cloned(),
        }
    }
}

/// What entries say of the key that a record was asked for with.
pub(crate) fn request_mark(key: &str, digest: &[u8]) -> Digest {
    Frame::new("safepoint/record-key/v1")
        .field(key.as_bytes())
        .field(digest)
        .digest()
}

/// Where a record is to be made.
struct Setting<'a> {
    made: &'a Arc<Made>,
    /// The digest of the token that counts.
    agent: Option<Digest>,
    directory: Directory<'a>,
    known: Option<&'a Known>,
}

/// Whether a workspace has a directory of its own, and what was seen in it.
#[derive(Clone, Copy)]
enum Directory<'a> {
    None,
    Seen(&'a Seen),
    Unseen,
}

/// Whether a request key can be kept.
pub(crate) fn is_usable_key(key: &str) -> bool {
    !key.is_empty() && key.len() <= LONGEST_KEY && !key.contains('\0')
}

fn usable(key: Option<&RequestKey>) -> Result<(), Rejection> {
    if key.is_some_and(|key| !is_usable_key(&key.key)) {
        return Err(Rejection::structure(
            "a request key has 1 to 200 bytes, and no NUL character",
        ));
    }
    Ok(())
}

fn request_digest(body: &[u8]) -> Digest {
    Frame::new("safepoint/record-request/v1")
        .field(body)
        .digest()
}
