//! A connection that hears of every write, and nothing else.

use std::time::Duration;

use postgres::Client;
use postgres::fallible_iterator::FallibleIterator;

use super::target::Target;
use super::{CHANNEL, classify};
use crate::StoreError;
use crate::watch::Woken;

/// Listens for what writers say when they commit.
pub(crate) struct Listener {
    target: Target,
    /// None after the connection was lost.
    client: Option<Client>,
}

impl Listener {
    pub(crate) fn open(url: &str, lock_timeout: Duration) -> Result<Self, StoreError> {
        let mut listener = Self {
            target: Target::read(url, lock_timeout)?,
            client: None,
        };
        listener.listen()?;
        Ok(listener)
    }

    fn listen(&mut self) -> Result<(), StoreError> {
        let mut client = self.target.connect()?;
        client
            .batch_execute(&format!("LISTEN {CHANNEL}"))
            .map_err(|error| classify(&self.target.place, error))?;
        self.client = Some(client);
        Ok(())
    }

    /// Waits until somebody has written, or `most` is over.
    pub(crate) fn wait(&mut self, most: Duration) -> Result<Woken, StoreError> {
        let heard = match &mut self.client {
            Some(client) => hear(client, most).map_err(|error| classify(&self.target.place, error)),
            None => Ok(None),
        };
        match heard {
            Ok(Some(woken)) => Ok(woken),
            // Lost: what was written meanwhile nobody has heard.
            Ok(None) | Err(StoreError::Unreachable { .. }) => {
                self.client = None;
                self.listen()?;
                Ok(Woken::Written)
            }
            Err(error) => {
                self.client = None;
                Err(error)
            }
        }
    }
}

/// What is heard within `most`; `None` when the connection is lost.
fn hear(client: &mut Client, most: Duration) -> Result<Option<Woken>, postgres::Error> {
    let first = {
        let mut notifications = client.notifications();
        let first = notifications.timeout_iter(most).next()?;
        // Many writes wake once.
        let mut waiting = notifications.iter();
        while waiting.next()?.is_some() {}
        first
    };
    Ok(match first {
        Some(_) => Some(Woken::Written),
        None if client.is_closed() => None,
        None => Some(Woken::Quiet),
    })
}
