//! Which database to connect to, and how.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postgres::{Client, Config, NoTls};

use super::address::Address;
use super::classify;
use super::tls::Encryption;
use crate::{Location, StoreError};

/// How long a connection may take, where the address does not say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A database that connections are made to, again and again.
pub(super) struct Target {
    config: Config,
    encryption: Option<Encryption>,
    /// How it is shown.
    pub(super) place: String,
    lock_timeout: Duration,
    /// An attempt that the server has not answered yet. The next one waits for it, so that a
    /// server that stays silent costs one thread and not one for each attempt.
    pending: Mutex<Option<Receiver<Result<Client, StoreError>>>>,
}

impl Target {
    pub(super) fn read(url: &str, lock_timeout: Duration) -> Result<Self, StoreError> {
        let Address { mut config, roots } = Address::read(url)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.application_name("safepoint");
        Ok(Self {
            config,
            encryption: roots.as_ref().map(Encryption::new).transpose()?,
            place: Location::Postgres(url.to_owned()).to_string(),
            lock_timeout,
            pending: Mutex::default(),
        })
    }

    /// Connects. The client library bounds only the time until the server accepts; a server
    /// that accepts and then says nothing would hold us forever, so the whole handshake is
    /// made on a thread that is waited for no longer than `connect_timeout` per host.
    pub(super) fn connect(&self) -> Result<Client, StoreError> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = match pending.take() {
            Some(attempt) => attempt,
            None => self.begin_connecting()?,
        };
        let one = self.config.get_connect_timeout().copied();
        let hosts = u32::try_from(self.config.get_hosts().len().max(1)).unwrap_or(u32::MAX);
        let limit = one.unwrap_or(CONNECT_TIMEOUT).saturating_mul(hosts);
        match attempt.recv_timeout(limit) {
            Ok(connected) => connected,
            Err(RecvTimeoutError::Timeout) => {
                *pending = Some(attempt);
                let seconds = limit.as_secs_f32();
                let reason = format!("the server said nothing for {seconds} s (connect_timeout)");
                let error = std::io::Error::new(std::io::ErrorKind::TimedOut, reason);
                Err(self.unreachable(error))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.unreachable(std::io::Error::other("the attempt to connect was cut off")))
            }
        }
    }

    fn begin_connecting(&self) -> Result<Receiver<Result<Client, StoreError>>, StoreError> {
        let (config, encryption) = (self.config.clone(), self.encryption.clone());
        let (place, lock_timeout) = (self.place.clone(), self.lock_timeout);
        let (sender, attempt) = sync_channel(1);
        std::thread::Builder::new()
            .name("postgres-connect".to_owned())
            .spawn(move || {
                // Nobody may be waiting any more; then the connection is closed.
                let _ = sender.send(shake_hands(&config, encryption, &place, lock_timeout));
            })
            .map_err(|error| self.unreachable(error))?;
        Ok(attempt)
    }

    fn unreachable(&self, error: std::io::Error) -> StoreError {
        StoreError::Unreachable {
            place: self.place.clone(),
            cause: Arc::new(error),
        }
    }
}

fn shake_hands(
    config: &Config,
    encryption: Option<Encryption>,
    place: &str,
    lock_timeout: Duration,
) -> Result<Client, StoreError> {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    let client = match encryption {
        None => config.connect(NoTls),
        Some(encryption) => config.connect(encryption),
    };
    let mut client = client.map_err(|error| StoreError::Unreachable {
        place: place.to_owned(),
        cause: Arc::new(error),
    })?;
    let settings = format!(
        "SET search_path TO safepoint; SET lock_timeout = {}; SET client_min_messages = warning",
        lock_timeout.as_millis().max(1) // 0 would mean forever
    );
    client
        .batch_execute(&settings)
        .map_err(|error| classify(place, error))?;
    Ok(client)
}
