//! Threads for calls whose answer may take its time.
//!
//! Each such call has a thread at once, however many of the others wait. A thread that is done takes
//! the next call: starting one costs more than most of these calls.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// More threads are not kept for calls to come.
const MAX_IDLE: usize = 2;

type Job = Box<dyn FnOnce() + Send>;

/// The threads of one supervised tree. Those that are idle end when this is dropped.
#[derive(Default)]
pub(super) struct Workers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<WorkState>,
    changed: Condvar,
}

#[derive(Default)]
struct WorkState {
    /// Each has an idle thread that is about to take it.
    jobs: VecDeque<Job>,
    idle: usize,
    is_over: bool,
}

impl Workers {
    /// Has a thread do this.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let mut state = self.0.lock();
        if state.jobs.len() < state.idle {
            state.jobs.push_back(Box::new(job));
            drop(state);
            self.0.changed.notify_one();
            return Ok(());
        }
        drop(state);
        let shared = Arc::clone(&self.0);
        let serve = move || {
            job();
            shared.serve();
        };
        let thread = thread::Builder::new().name("call".to_owned());
        thread.spawn(serve).map(drop)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        let mut shown = formatter.debug_struct("Workers");
        shown.field("idle", &state.idle).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WorkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what comes, until enough others wait for that.
    fn serve(&self) {
        while let Some(job) = self.next() {
            job();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        if state.idle >= MAX_IDLE {
            return None;
        }
        state.idle += 1;
        while state.jobs.is_empty() && !state.is_over {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.idle -= 1;
        state.jobs.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn fe_50_a_thread_that_is_done_takes_the_next_call() {
        let workers = Workers::default();
        let (told, names) = channel();
        let mut threads = Vec::new();
        for _ in 0..20 {
            let told = told.clone();
            let job = move || told.send(thread::current().id()).unwrap();
            workers.run(job).unwrap();
            threads.push(names.recv().unwrap());
            while workers.0.lock().idle == 0 {
                thread::yield_now();
            }
        }
        threads.dedup();
        assert_eq!(threads.len(), 1);
    }

    #[test]
    fn fe_50_no_call_waits_for_another() {
        let workers = Workers::default();
        let (told, begun) = channel();
        let held = Arc::new(Mutex::new(()));
        let guard = held.lock().unwrap();
        for round in 0..8 {
            let (told, held) = (told.clone(), Arc::clone(&held));
            let job = move || {
                told.send(round).unwrap();
                drop(held.lock());
            };
            workers.run(job).unwrap();
            assert_eq!(begun.recv().unwrap(), round);
        }
        drop(guard);
        let shared = Arc::clone(&workers.0);
        drop(workers);
        // None is left that waits for a call.
        while Arc::strong_count(&shared) > 1 {
            thread::yield_now();
        }
    }
}
