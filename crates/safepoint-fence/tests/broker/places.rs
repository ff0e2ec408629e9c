//! Where the socket is, and who may be there.

use super::*;

#[test]
fn au_42_the_directory_of_the_socket_is_closed_to_others() {
    let room = tempfile::tempdir().unwrap();
    let made = room.path().join("a/b");
    let listener = Listener::bind(&made).unwrap();
    assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o700);
    assert!(listener.path().starts_with(&made));
    assert!(listener.path().exists());

    let refused = |path: &Path| {
        let result = Listener::bind(path);
        assert!(
            matches!(result, Err(FenceError::Directory { .. })),
            "{result:?}"
        );
    };
    symlink(&made, room.path().join("link")).unwrap();
    refused(&room.path().join("link"));
    fs::set_permissions(&made, Permissions::from_mode(0o750)).unwrap();
    refused(&made);
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&made, Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&made, Some(65534), None).unwrap();
        refused(&made);
    }
}

#[test]
fn au_42_sockets_without_a_process_are_swept_up_and_others_stay() {
    let directory = tempfile::tempdir().unwrap();
    let room = &directory.path().join("calls");
    let living = Listener::bind(room).unwrap();
    let dead = room.join("call-1-0.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    let strange = room.join("other.sock");
    drop(std::os::unix::net::UnixListener::bind(&strange).unwrap());
    let file = room.join("call-file.sock");
    fs::write(&file, "not a socket").unwrap();
    let second = Listener::bind(room).unwrap();
    assert_ne!(living.path(), second.path());
    assert!(living.path().exists() && second.path().exists());
    assert!(!dead.exists());
    assert!(strange.exists());
    assert_eq!(fs::read(&file).unwrap(), b"not a socket");
}

#[test]
fn au_42_a_socket_may_have_a_long_path() {
    let room = tempfile::tempdir().unwrap();
    let deep = room.path().join("d".repeat(200)).join("e".repeat(200));
    let listener = Listener::bind(&deep).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| listener.serve(|_| 9, &stop));
        let _stop = Stop(&stop);
        assert_eq!(call(listener.path(), &[]).unwrap(), 9);
    });
}
