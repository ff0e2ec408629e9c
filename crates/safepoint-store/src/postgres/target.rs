//! Which database to connect to, and how.

use std::sync::Arc;
use std::time::Duration;

use postgres::{Client, Config, NoTls};

use super::address::Address;
use super::classify;
use super::tls::Encryption;
use crate::{Location, StoreError};

/// A database that connections are made to, again and again.
pub(super) struct Target {
    config: Config,
    encryption: Option<Encryption>,
    /// How it is shown.
    pub(super) place: String,
    lock_timeout: Duration,
}

impl Target {
    pub(super) fn read(url: &str, lock_timeout: Duration) -> Result<Self, StoreError> {
        let Address { mut config, roots } = Address::read(url)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        config.application_name("safepoint");
        Ok(Self {
            config,
            encryption: roots.as_ref().map(Encryption::new).transpose()?,
            place: Location::Postgres(url.to_owned()).to_string(),
            lock_timeout,
        })
    }

    pub(super) fn connect(&self) -> Result<Client, StoreError> {
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let client = match &self.encryption {
            None => self.config.connect(NoTls),
            Some(encryption) => self.config.connect(encryption.clone()),
        };
        let mut client = client.map_err(|error| StoreError::Unreachable {
            place: self.place.clone(),
            cause: Arc::new(error),
        })?;
        let settings = format!(
            "SET search_path TO safepoint; SET lock_timeout = {}; SET client_min_messages = warning",
            self.lock_timeout.as_millis().max(1) // 0 would mean forever
        );
        client
            .batch_execute(&settings)
            .map_err(|error| classify(&self.place, error))?;
        Ok(client)
    }
}
