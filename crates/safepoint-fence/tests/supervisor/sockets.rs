//! Sockets with a path, and abstract ones.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use super::*;

fn connect(path: &str) -> String {
    format!("import socket; s = socket.socket(socket.AF_UNIX); s.connect({path}); s.sendall(b'x')")
}

fn was_reached(listener: &UnixListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_ok()
}

#[test]
fn fe_13_sockets_with_a_path_are_closed_unless_they_are_named() {
    let mut room = Room::new();
    let path = room.path("outside/docker.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::os::unix::fs::symlink(&path, room.path("work/link")).unwrap();
    for name in ["'../outside/docker.sock'", "'link'", &format!("{path:?}")] {
        let ran = room.python(&connect(name)).failed();
        assert!(ran.talk().contains("Permission denied"), "{}", ran.talk());
        assert_eq!(ran.seen.refused, [Refusal::Socket(path.clone())].into());
        assert!(!was_reached(&listener), "{name}");
    }
    room.supervision.sockets = vec![path.clone()];
    let ran = room.python(&connect("'link'")).succeeded();
    assert_eq!(ran.seen.sockets, [path].into());
    assert!(was_reached(&listener));
}

#[test]
fn fe_13_a_socket_in_the_workspace_is_not_the_sessions_because_of_that() {
    let room = Room::new();
    let path = room.path("work/other.sock");
    let listener = UnixListener::bind(&path).unwrap();
    room.python(&connect("'other.sock'")).failed();
    assert!(!was_reached(&listener));
}

#[test]
fn fe_13_abstract_sockets_are_closed() {
    let room = Room::new();
    let name = format!("fe-13-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let script = connect(&format!("'\\0{name}'"));
    let ran = room.python(&script).failed();
    assert_eq!(
        ran.seen.refused,
        [Refusal::Socket(format!("@{name}").into())].into()
    );
    assert!(!was_reached(&listener));
    assert!(room.free("python3", &script).status.success());
    assert!(was_reached(&listener));
}

#[test]
fn fe_13_datagrams_to_sockets_with_a_path_are_closed() {
    let room = Room::new();
    let path = room.path("outside/log");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    for how in [
        "s.sendto(b'x', p)",
        "s.sendmsg([b'x'], [], 0, p)",
        "s.connect(p); s.send(b'x')",
    ] {
        let script = format!(
            "import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); p = '../outside/log'; {how}"
        );
        room.python(&script).failed();
        assert!(socket.recv(&mut [0; 9]).is_err(), "{how}");
        assert!(room.free("python3", &script).status.success());
        assert!(socket.recv(&mut [0; 9]).is_ok(), "{how}");
    }
}

#[test]
fn fe_10_sockets_of_its_own_work_with_descriptors_and_all() {
    let room = Room::new();
    let ran = room.python(
        "import array, os, socket, threading
for name in ['own.sock', '\\0fe-10-own-%d' % os.getpid()]:
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    def answer():
        connection, _ = server.accept()
        data, control, _, _ = connection.recvmsg(99, socket.CMSG_SPACE(4))
        passed = array.array('i', control[0][2])[0]
        os.write(passed, data)
    thread = threading.Thread(target=answer)
    thread.start()
    client = socket.socket(socket.AF_UNIX)
    client.connect(name)
    read, write = os.pipe()
    socket.send_fds(client, [b'through'], [write])
    assert os.read(read, 99) == b'through', name
    thread.join()
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
one.sendmsg([b'a', b'b'])
assert other.recv(9) == b'ab'
big = os.urandom(3 << 20)
one, other = socket.socketpair()
def write():
    one.sendall(big)
    one.sendmsg([b'end'])
    one.close()
thread = threading.Thread(target=write)
thread.start()
got = b''
while part := other.recv(1 << 16):
    got += part
assert got == big + b'end'
",
    );
    let ran = ran.succeeded();
    assert!(ran.seen.refused.is_empty(), "{:?}", ran.seen.refused);
    assert!(ran.seen.written.paths.contains(&room.path("work/own.sock")));
}

#[test]
fn fe_10_a_server_with_a_path_has_several_clients_at_once() {
    let room = Room::new();
    let ran = room.python(
        "import socket
server = socket.socket(socket.AF_UNIX)
server.bind('own.sock')
server.listen()
held = []
for number in range(3):
    client = socket.socket(socket.AF_UNIX)
    client.connect('own.sock')
    held += [client, server.accept()]
print(len(held))
",
    );
    let ran = ran.succeeded();
    assert_eq!(ran.talk(), "6\n");
    assert!(ran.seen.refused.is_empty());
}
