//! An API behind which nobody is: it answers what a test says, and remembers what became of
//! keys.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use safepoint_model::Digest;
use serde_json::{Map, Value};

use super::{Api, Begun, Called, EndpointNote, Events, Gauges, Kept, Output, Refused};
use crate::commands::{Answer, Caller, Command, Commands, Record, Unavailable};

#[derive(Default)]
pub(super) struct Nobody {
    /// What every call gives.
    pub(super) called: Option<Called>,
    /// What became of keys, in order.
    pub(super) keys: Mutex<Vec<&'static str>>,
}

impl Nobody {
    fn remember(&self, what: &'static str) {
        self.keys.lock().unwrap().push(what);
    }
}

impl Commands for Nobody {
    fn caller(&self, _: &str) -> Result<Option<Caller>, Unavailable> {
        Ok(None)
    }
    fn home(&self, _: &Caller, _: Record, _: &str) -> Result<Option<PathBuf>, Unavailable> {
        Ok(None)
    }
    fn run(&self, _: &Caller, _: &Command) -> Answer {
        Answer {
            exit: 1,
            document: Value::Null,
        }
    }
}

impl Api for Nobody {
    fn endpoints(&self) -> Vec<EndpointNote> {
        Vec::new()
    }
    fn description(&self) -> Value {
        Value::Null
    }
    fn call(
        &self,
        _: &Caller,
        _: &str,
        _: &Map<String, Value>,
        _: Output,
    ) -> Result<Called, Refused> {
        self.called.clone().ok_or(Refused("no".into()))
    }
    fn begin(&self, _: &Caller, _: &str, _: Digest) -> Result<Begun, Unavailable> {
        self.remember("taken");
        Ok(Begun::New)
    }
    fn keep(&self, _: &Caller, _: &str, _: &Kept) -> Result<(), Unavailable> {
        self.remember("kept");
        Ok(())
    }
    fn give_back(&self, _: &Caller, _: &str) -> Result<(), Unavailable> {
        self.remember("given back");
        Ok(())
    }
    fn workspace(&self, _: &str) -> Result<Option<String>, Unavailable> {
        Ok(None)
    }
    fn events(&self, _: &Caller, _: Option<&str>, _: u64, _: usize) -> Result<Events, Unavailable> {
        Ok(Events::default())
    }
    fn size(&self) -> Result<u64, Unavailable> {
        Ok(0)
    }
    fn wait(&self, _: Duration) -> Result<(), Unavailable> {
        Ok(())
    }
    fn gauges(&self) -> Result<Gauges, Unavailable> {
        Ok(Gauges::default())
    }
    fn log(&self, _: Map<String, Value>) {}
}
