//! Atlases in the store, by digest: what a session began with stays there.

use std::collections::BTreeMap;

use safepoint_gates::{Loaded, load};
use safepoint_model::{Digest, Timestamp};
use safepoint_store::{Sql, StoreError, Value, query_all, query_one};

use super::{AtlasFile, digest};
use crate::ControlError;

/// Keeps an atlas.
pub(crate) fn keep(sql: &mut dyn Sql, atlas: &AtlasFile) -> Result<(), StoreError> {
    let known = query_one(
        sql,
        "SELECT version FROM control_atlases WHERE digest = ?1",
        &[Value::Blob(atlas.digest.as_bytes())],
        |row| row.text(0).map(str::to_owned),
    )?;
    if known.is_some() {
        return Ok(());
    }
    sql.execute(
        "INSERT INTO control_atlases (digest, atlas_id, version, text) VALUES (?1, ?2, ?3, ?4)",
        &[
            Value::Blob(atlas.digest.as_bytes()),
            Value::Text(&atlas.manifest.atlas_id),
            Value::Text(&atlas.manifest.version),
            Value::Text(&atlas.text),
        ],
    )?;
    for (path, content) in &atlas.modules {
        sql.execute(
            "INSERT INTO control_modules (digest, path, content) VALUES (?1, ?2, ?3)",
            &[
                Value::Blob(atlas.digest.as_bytes()),
                Value::Text(path),
                Value::Blob(content),
            ],
        )?;
    }
    Ok(())
}

/// The atlas with this digest, checked against it.
pub(crate) fn fetch(sql: &mut dyn Sql, wanted: Digest) -> Result<Loaded, ControlError> {
    let text = query_one(
        sql,
        "SELECT text FROM control_atlases WHERE digest = ?1",
        &[Value::Blob(wanted.as_bytes())],
        |row| row.text(0).map(str::to_owned),
    )?;
    let modules: BTreeMap<String, Vec<u8>> = query_all(
        sql,
        "SELECT path, content FROM control_modules WHERE digest = ?1",
        &[Value::Blob(wanted.as_bytes())],
        |row| Ok((row.text(0)?.to_owned(), row.blob(1)?.to_vec())),
    )?
    .into_iter()
    .collect();
    // Whoever can write to the database must not be able to change what is asked.
    let text = text
        .filter(|text| digest(text, &modules) == wanted)
        .ok_or_else(|| StoreError::corrupted("the atlases", format!("`{wanted}` is not there")))?;
    let manifest = load::read(&text).map_err(|problems| ControlError::Atlas {
        path: wanted.to_string().into(),
        text,
        problems,
    })?;
    Ok(Loaded {
        manifest,
        digest: wanted,
        modules,
    })
}

/// The key that signs an atlas, if one was ever seen.
pub(crate) fn known_steward(
    sql: &mut dyn Sql,
    atlas_id: &str,
) -> Result<Option<String>, StoreError> {
    query_one(
        sql,
        "SELECT key FROM control_stewards WHERE atlas_id = ?1",
        &[Value::Text(atlas_id)],
        |row| row.text(0).map(str::to_owned),
    )
}

/// Remembers the key that signs an atlas.
pub(crate) fn trust_steward(
    sql: &mut dyn Sql,
    atlas_id: &str,
    key: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO control_stewards (atlas_id, key, since) VALUES (?1, ?2, ?3) \
         ON CONFLICT (atlas_id) DO UPDATE SET key = excluded.key, since = excluded.since",
        &[
            Value::Text(atlas_id),
            Value::Text(key),
            Value::Integer(now.as_micros()),
        ],
    )
    .map(drop)
}
