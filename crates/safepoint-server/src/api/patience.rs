//! How long anybody is waited for: a body that does not come, and an answer that nobody
//! takes, are cut. What is slow and goes on is not.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The body of a request did not come in in time.
#[derive(Debug, thiserror::Error)]
#[error("the body did not come in in time")]
struct TooSlow;

/// Whether a body did not come in in time, for whoever answers.
#[derive(Clone, Default)]
pub(super) struct Late(Arc<AtomicBool>);

impl Late {
    pub(super) fn is_so(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A body that has to be there in time, from when it is first waited for.
pub(super) fn body(body: Body, patience: Duration, late: &Late) -> Body {
    Body::new(Timed {
        body,
        patience,
        end: None,
        late: late.clone(),
    })
}

struct Timed {
    body: Body,
    patience: Duration,
    end: Option<Pin<Box<Sleep>>>,
    late: Late,
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        let patience = self.patience;
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(end.as_mut().poll(context));
        self.late.0.store(true, Ordering::Release);
        Poll::Ready(Some(Err(axum::Error::new(TooSlow))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that is cut when the other side takes nothing for too long.
pub(super) struct Taken<S> {
    stream: S,
    patience: Duration,
    /// When it is cut, while nothing is taken.
    end: Option<Pin<Box<Sleep>>>,
}

impl<S> Taken<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            end: None,
        }
    }

    fn written(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.end = None;
            return written;
        }
        let patience = self.patience;
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(end.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Taken<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Taken<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.written(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn su_07_who_takes_nothing_is_cut_and_who_takes_is_not() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (ours, mut theirs) = duplex(8);
            let mut ours = Taken::new(ours, Duration::from_secs(10));
            // Little at a time, and longer in all than nothing may be taken.
            let taken = async {
                let mut bytes = [0; 8];
                for _ in 0..10 {
                    sleep(Duration::from_secs(9)).await;
                    theirs.read_exact(&mut bytes).await.unwrap();
                }
            };
            // Only so that what would hang fails.
            let most = Duration::from_secs(600);
            let both = async { tokio::join!(ours.write_all(&[1; 80]), taken) };
            let (written, ()) = timeout(most, both).await.unwrap();
            written.unwrap();
            let written = timeout(most, ours.write_all(&[1; 80])).await.unwrap();
            assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
    }
}
