//! Addresses and names.

use std::net::{TcpListener, UdpSocket};

use super::*;

/// A listener of somebody else on this machine.
fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn dial(port: u16) -> String {
    format!("import socket; socket.create_connection(('127.0.0.1', {port}), 5).sendall(b'x')")
}

/// Whether anybody has connected.
fn was_reached(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_ok()
}

#[test]
fn fe_10_services_of_others_on_this_machine_are_closed() {
    let room = Room::new();
    let (listener, port) = listener();
    let ran = room.python(&dial(port)).failed();
    assert!(ran.talk().contains("Permission denied"), "{}", ran.talk());
    assert!(!was_reached(&listener));
    let wanted = host(&format!("127.0.0.1:{port}"));
    assert_eq!(ran.seen.refused, [wanted.clone()].into());
    assert_eq!(*room.gate.asked.lock().unwrap(), [wanted]);
    assert!(ran.seen.hosts.is_empty());
    // Control: it is there.
    assert!(room.free("python3", &dial(port)).status.success());
    assert!(was_reached(&listener));
}

#[test]
fn fe_12_a_named_service_is_reached_and_recorded() {
    let mut room = Room::new();
    let (listener, port) = listener();
    room.supervision.services = vec![format!("localhost:{port}").parse().unwrap()];
    let ran = room.python(&dial(port)).succeeded();
    assert!(was_reached(&listener));
    assert_eq!(ran.seen.hosts, [format!("localhost:{port}")].into());
    let (other, port) = self::listener();
    room.python(&dial(port)).failed();
    assert!(!was_reached(&other));
}

#[test]
fn fe_16_what_is_admitted_is_reached() {
    let room = Room::new();
    let (listener, port) = listener();
    let wanted = format!("127.0.0.1:{port}");
    room.gate.admitted.lock().unwrap().insert(host(&wanted));
    let ran = room.python(&dial(port)).succeeded();
    assert!(was_reached(&listener));
    assert_eq!(ran.seen.hosts, [wanted].into());
    assert!(ran.seen.refused.is_empty());
}

#[test]
fn fe_10_a_server_of_its_own_is_reached_unasked() {
    let room = Room::new();
    // On every address, as most servers of tests listen; both versions.
    let ran = room.python(
        "import socket, threading
for family, bound, dialled in [(socket.AF_INET, '', '127.0.0.1'), (socket.AF_INET, '127.0.0.1', '127.0.0.1'),
                               (socket.AF_INET6, '::', '::1'), (socket.AF_INET6, '::', '127.0.0.1')]:
    server = socket.socket(family)
    server.bind((bound, 0))
    server.listen()
    port = server.getsockname()[1]
    def answer():
        connection, _ = server.accept()
        connection.sendall(b'pong')
        connection.close()
    thread = threading.Thread(target=answer)
    thread.start()
    client = socket.create_connection((dialled, port), 5)
    assert client.recv(4) == b'pong', (bound, dialled)
    thread.join()
    print(bound, dialled, 'ok')
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(('127.0.0.1', 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.sendto(b'ping', udp.getsockname())
assert udp.recv(9) == b'ping'
sender.connect(udp.getsockname())
sender.send(b'again')
assert udp.recv(9) == b'again'
sender.sendmsg([b'a', b'b'])
assert udp.recv(9) == b'ab'
",
    );
    let ran = ran.succeeded();
    assert!(ran.seen.refused.is_empty(), "{:?}", ran.seen.refused);
    assert!(ran.seen.hosts.is_empty());
}

#[test]
fn fe_10_a_server_on_every_address_is_reached_on_this_machine_alone() {
    let room = Room::new();
    let ran = room.python(
        "import socket
server = socket.socket()
server.bind(('', 0))
server.listen()
print(server.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b'\\0').decode())
try:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'')
    print('opened')
except PermissionError:
    print('closed')
",
    );
    assert_eq!(ran.succeeded().talk(), "lo\nclosed\n");
}

#[test]
fn fe_10_what_one_action_has_started_the_next_one_of_the_session_reaches() {
    let room = Room::new();
    let server = "import socket
server = socket.socket()
server.bind(('127.0.0.1', 0))
server.listen()
print(server.getsockname()[1], flush=True)
while True:
    server.accept()[0].close()";
    let started = room.fence().spawn(room.command("python3", &["-c", server]));
    let mut started = started.unwrap();
    let mut stdout = std::io::BufReader::new(started.child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let port: u16 = line.trim().parse().unwrap();
    room.python(&dial(port)).succeeded();
    // Another session does not.
    let mut other = Room::new();
    other.supervision.registry = room.path("registry/other");
    other.python(&dial(port)).failed();
    started.child.kill().unwrap();
    started.child.wait().unwrap();
}

#[test]
fn fe_10_datagrams_to_others_are_closed_however_they_are_sent() {
    let room = Room::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let port = socket.local_addr().unwrap().port();
    let send = |how: &str| {
        format!(
            "import socket
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
address = ('127.0.0.1', {port})
{how}"
        )
    };
    for how in [
        "udp.sendto(b'x', address)",
        "udp.sendmsg([b'x'], [], 0, address)",
        "udp.connect(address); udp.send(b'x')",
    ] {
        room.python(&send(how)).failed();
        assert!(socket.recv(&mut [0; 9]).is_err(), "{how}");
        assert!(room.free("python3", &send(how)).status.success());
        assert!(socket.recv(&mut [0; 9]).is_ok(), "{how}");
    }
}

#[test]
fn fe_10_raw_sockets_and_other_families_are_closed() {
    let room = Room::new();
    let ran = room.python(
        "import socket
refused = 0
for family, kind, protocol in [(socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_DGRAM, 1),
                               (socket.AF_PACKET, socket.SOCK_RAW, 0), (40, socket.SOCK_STREAM, 0),
                               (socket.AF_NETLINK, socket.SOCK_RAW, 12), (38, socket.SOCK_SEQPACKET, 0)]:
    try:
        socket.socket(family, kind, protocol)
        print('open', family, kind, protocol)
    except OSError:
        refused += 1
print(refused)
print(len(socket.if_nameindex()) > 0)
",
    );
    let ran = ran.succeeded();
    assert_eq!(ran.talk(), "6\nTrue\n");
    assert_eq!(ran.seen.refused.len(), 2);
}

#[test]
fn fe_11_names_are_refused_by_name_and_port_and_nobody_is_asked_about_them() {
    let room = Room::new();
    let ran = room.python(
        "import socket
try:
    socket.create_connection(('www.some-host.example', 443), 5)
except PermissionError as error:
    print(error)
",
    );
    let ran = ran.succeeded();
    assert!(ran.talk().contains("Permission denied"), "{}", ran.talk());
    let wanted = host("www.some-host.example:443");
    assert_eq!(ran.seen.refused, [wanted].into());
}

#[test]
fn fe_11_an_allowed_host_that_does_not_resolve_is_told_as_that() {
    let mut room = Room::new();
    room.supervision.hosts = vec!["absent.invalid:443".parse().unwrap()];
    let ran = room.python(
        "import socket
try:
    socket.create_connection(('absent.invalid', 443), 5)
except socket.gaierror as error:
    print('no such name')
",
    );
    let ran = ran.succeeded();
    assert_eq!(ran.talk(), "no such name\n");
    assert!(ran.seen.refused.is_empty() && ran.seen.hosts.is_empty());
}

#[test]
fn fe_11_addresses_are_refused_in_every_form() {
    let room = Room::new();
    let (listener, port) = listener();
    let ran = room.python(&format!(
        "import socket
refused = 0
for family, address in [(socket.AF_INET6, '::ffff:127.0.0.1'), (socket.AF_INET, '0.0.0.0'), (socket.AF_INET, '127.0.0.1')]:
    try:
        client = socket.socket(family)
        client.settimeout(5)
        client.connect((address, {port}))
        print('open', address)
    except PermissionError:
        refused += 1
print(refused)
"
    ));
    assert_eq!(ran.succeeded().talk(), "3\n");
    assert!(!was_reached(&listener));
}

#[test]
fn fe_10_a_connection_that_nobody_takes_fails_as_without_a_fence() {
    let room = Room::new();
    let (listener, port) = listener();
    drop(listener);
    let ran = room.python(&dial(port)).failed();
    assert!(ran.talk().contains("Connection refused"), "{}", ran.talk());
    assert!(ran.seen.refused.is_empty());
}

#[test]
fn fe_10_a_file_does_not_pass_for_a_socket_of_the_session() {
    // Numbers of files and of sockets come from the same place: a file is never the session's socket.
    let room = Room::new();
    let ran = room.python(
        "import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for number in [os.memfd_create('m'), os.open('file', os.O_RDONLY), os.pipe()[0]]:
    for call in [lambda: libc.bind(number, b'\\2\\0' + bytes(14), 16), lambda: libc.listen(number, 1)]:
        print(call(), errno.errorcode[ctypes.get_errno()])
",
    );
    assert_eq!(ran.succeeded().talk(), "-1 ENOTSOCK\n".repeat(6));
    assert!(!room.path("registry/session").exists());
}

#[test]
fn fe_10_options_that_send_elsewhere_are_closed() {
    let room = Room::new();
    let ran = room.python(
        "import socket, struct
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
route = struct.pack('BBBBBBH', 0, 4, 4, 1, 1, 0, 0) + bytes(32)
for level, name in [(41, 57), (41, 5), (41, 6), (0, 4), (1, 60), (1, 25), (1, 62)]:
    try:
        six.setsockopt(level, name, route)
        print('open', level, name)
    except PermissionError:
        print('closed')
",
    );
    assert_eq!(ran.succeeded().talk(), "closed\n".repeat(7));
}

#[test]
fn fe_10_answers_over_udp_reach_who_has_asked() {
    let room = Room::new();
    let ran = room.python(
        "import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(('127.0.0.1', 0))
for connects in [False, True]:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if connects:
        client.connect(server.getsockname())
        client.send(b'ask')
    else:
        client.sendto(b'ask', server.getsockname())
    data, address = server.recvfrom(9)
    server.sendto(b'answer', address)
    client.settimeout(5)
    print(client.recv(9))
",
    );
    assert_eq!(ran.succeeded().talk(), "b'answer'\n".repeat(2));
}

#[test]
fn fe_10_a_connection_that_waits_ends_with_who_asked_for_it() {
    let room = Room::new();
    // A server that takes nobody: the second client waits for its place.
    let ran = room.python(
        "import os, signal, socket, time
server = socket.socket(socket.AF_UNIX)
server.bind('s')
server.listen(0)
first = socket.socket(socket.AF_UNIX)
first.connect('s')
child = os.fork()
if child == 0:
    socket.socket(socket.AF_UNIX).connect('s')
    os._exit(0)
class Told(Exception):
    pass
def tell(*_):
    raise Told
signal.signal(signal.SIGALRM, tell)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    socket.socket(socket.AF_UNIX).connect('s')
    print('connected')
except Told:
    print('interrupted')
os.kill(child, signal.SIGKILL)
print(os.waitpid(child, 0)[1])
",
    );
    assert_eq!(ran.succeeded().talk(), "interrupted\n9\n");
}

#[test]
fn fe_10_what_is_sent_at_once_by_several_threads_arrives_whole() {
    let room = Room::new();
    let ran = room.python(
        "import os, socket, threading
one, other = socket.socketpair()
data = os.urandom(3 << 20)
got = bytearray()
def take():
    while part := other.recv(1 << 16):
        got.extend(part)
thread = threading.Thread(target=take)
thread.start()
print(one.sendmsg([data[:5], data[5:]]) == len(data))
one.close()
thread.join()
print(got == data)
",
    );
    assert_eq!(ran.succeeded().talk(), "True\nTrue\n");
}

#[test]
fn fe_10_a_connection_is_made_when_it_is_checked_and_not_later() {
    let room = Room::new();
    let ran = room.python(
        "import socket
one = socket.socket()
for option in (30, 34, 19):
    try:
        one.setsockopt(socket.IPPROTO_TCP, option, 1)
        print(option, 'set')
    except OSError as error:
        print(option, error.errno)
one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
",
    );
    assert_eq!(ran.succeeded().talk(), "30 1\n34 1\n19 1\n");
}

/// Several sockets can share a port, and each gets some of what is meant for another.
#[test]
fn fe_10_nobody_joins_the_port_of_another() {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket, sockopt};
    let others = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_reuseport(&others, true).unwrap();
    let local: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    bind(&others, &local).unwrap();
    let bound = std::net::SocketAddr::try_from(getsockname(&others).unwrap()).unwrap();
    let port = bound.port();
    let datagrams = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    sockopt::set_socket_reuseport(&datagrams, true).unwrap();
    bind(&datagrams, &bound).unwrap();
    let join = |kind: &str, host: &str| {
        format!(
            "import socket
one = socket.socket(socket.AF_INET, socket.{kind})
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
one.bind(('{host}', {port}))
if socket.{kind} == socket.SOCK_STREAM: one.listen()
"
        )
    };
    let room = Room::new();
    // It does not listen yet: then nobody else does.
    listen(&others, 4).unwrap();
    for (kind, host) in [
        ("SOCK_STREAM", "127.0.0.1"),
        ("SOCK_STREAM", "0.0.0.0"),
        ("SOCK_DGRAM", "127.0.0.1"),
    ] {
        let ran = room.python(&join(kind, host)).failed();
        assert!(
            ran.talk().contains("Address already in use"),
            "{}",
            ran.talk()
        );
    }
    // A control: those of one session share theirs, as clusters of servers do.
    let own = "import os, socket
def serve(port):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind(('127.0.0.1', port))
    one.listen()
    return one
first = serve(0)
second = serve(first.getsockname()[1])
six = socket.socket(socket.AF_INET6)
six.bind(('::1', 0))
six.listen()
print(first.getsockname() == second.getsockname(), six.getsockname()[0])
";
    let ran = room.python(own).succeeded();
    assert_eq!(ran.talk(), "True ::1\n");
}
