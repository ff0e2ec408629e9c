//! Requests that are none.

use super::*;

/// Sends bytes, with this many descriptors, and reads the answer.
fn send(socket: &Path, bytes: &[u8], descriptors: usize) -> Vec<u8> {
    let null = nothing();
    let place = File::open(".").unwrap();
    let mut all: Vec<BorrowedFd<'_>> = vec![null.as_fd(); descriptors];
    if let Some(last) = all.get_mut(3) {
        *last = place.as_fd();
    }
    let mut connection = UnixStream::connect(socket).unwrap();
    let mut space = vec![std::mem::MaybeUninit::uninit(); 1024];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if descriptors > 0 {
        assert!(control.push(SendAncillaryMessage::ScmRights(&all)));
    }
    let parts = [std::io::IoSlice::new(bytes)];
    let sent = sendmsg(&connection, &parts, &mut control, SendFlags::NOSIGNAL).unwrap();
    assert_eq!(sent, bytes.len());
    connection.shutdown(Shutdown::Write).unwrap();
    // Exactly: what comes after is an end, or a reset where not all was read.
    let mut answer = [0; 2];
    connection.read_exact(&mut answer).unwrap();
    answer.to_vec()
}

/// A good request: `exec` in this directory, with one variable.
fn request(directory: &Path) -> Vec<u8> {
    let number = |value: usize| u32::try_from(value).unwrap().to_le_bytes();
    let directory = directory.to_str().unwrap().as_bytes();
    let mut body = Vec::new();
    for part in [&number(1)[..], &number(4), b"exec"] {
        body.extend_from_slice(part);
    }
    body.extend_from_slice(&number(directory.len()));
    body.extend_from_slice(directory);
    for part in [&number(1)[..], &number(1), b"A", &number(1), b"1"] {
        body.extend_from_slice(part);
    }
    let mut request = b"SPFENCE\x01".to_vec();
    request.extend_from_slice(&number(body.len()));
    request.append(&mut body);
    request
}

#[test]
fn au_42_garbage_and_parts_of_requests_never_reach_the_handler() {
    let handled = AtomicUsize::new(0);
    let handle = |_| {
        handled.fetch_add(1, Ordering::SeqCst);
        9
    };
    const MALFORMED: [u8; 2] = [1, 1];
    served(handle, |socket| {
        let good = request(&here());
        assert_eq!(send(socket, &good, 4), [0, 9]);
        for end in 1..good.len() {
            assert_eq!(send(socket, &good[..end], 4), MALFORMED, "{end} bytes");
        }
        for descriptors in [0, 1, 3, 5, 64] {
            assert_eq!(send(socket, &good, descriptors), MALFORMED, "{descriptors}");
        }
        assert_eq!(send(socket, b"GET / HTTP/1.1\r\n\r\n", 0), MALFORMED);
        let mut newer = good.clone();
        newer[7] = 2;
        assert_eq!(send(socket, &newer, 4), [1, 2]);
        let mut huge = good.clone();
        huge[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(send(socket, &huge, 4), [1, 3]);
        let mut many = good.clone();
        many[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(send(socket, &many, 4), MALFORMED);
        // Nobody says anything.
        drop(UnixStream::connect(socket).unwrap());
        assert_eq!(send(socket, &good, 4), [0, 9]);
    });
    assert_eq!(handled.into_inner(), 2);
}

#[test]
fn au_42_the_working_directory_must_be_where_it_is_said_to_be() {
    let other = tempfile::tempdir().unwrap();
    served(
        |_| 9,
        |socket| {
            const ELSEWHERE: [u8; 2] = [1, 5];
            assert_eq!(send(socket, &request(other.path()), 4), ELSEWHERE);
            assert_eq!(send(socket, &request(Path::new("/absent")), 4), ELSEWHERE);
            assert_eq!(send(socket, &request(Path::new(".")), 4), ELSEWHERE);
            assert_eq!(send(socket, &request(&here()), 4), [0, 9]);
            let null = nothing();
            let streams = Streams {
                stdin: null.as_fd(),
                stdout: null.as_fd(),
                stderr: null.as_fd(),
            };
            let result = hand_over_streams(socket, &[], other.path(), &[], streams);
            let refused = matches!(
                result,
                Err(FenceError::Refused {
                    refusal: CallRefusal::Directory,
                    ..
                })
            );
            assert!(refused, "{result:?}");
        },
    );
}
