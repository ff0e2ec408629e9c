//! Which sockets of this machine answer where, as the kernel lists them (`sock_diag`).
//!
//! A socket is known by its cookie, a number of 64 bits that no other socket ever gets. Inodes are
//! not good enough: they come round again, and files have them too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::fs::Dev;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::address::unfold;

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

/// Where a Unix socket is bound.
#[derive(Debug, Clone, Copy)]
pub(super) enum UnixPlace<'a> {
    /// A file, by device and inode.
    File(Dev, u64),
    /// An abstract name.
    Name(&'a [u8]),
}

// What the kernel is asked, and what it answers.
const BY_FAMILY: u16 = 20;
/// The older question, which is about TCP of both families at once.
const TCP: u16 = 18;
const DUMP: u16 = 0x301;
const END: u16 = 3;
const HEADER: usize = 16;
const SHOW_NAME_AND_FILE: u32 = 3;
const ATTRIBUTE_NAME: u16 = 0;
const ATTRIBUTE_FILE: u16 = 1;

/// The state of a socket that takes connections.
const LISTENING: u8 = 10;
const DATAGRAM: u8 = 2;

/// The sockets of this machine. The kernel is asked over one socket, which is opened with the first
/// question and stays open.
#[derive(Debug, Default)]
pub(super) struct SocketList(Mutex<Option<Diagnostics>>);

impl SocketList {
    /// The cookies of the sockets that answer at this address of this machine.
    pub(super) fn listeners(
        &self,
        transport: Transport,
        address: IpAddr,
        port: u16,
    ) -> Result<Vec<u64>, Errno> {
        let mut found = Vec::new();
        let mut take = |body: &[u8]| {
            let socket = InternetSocket::read(body);
            let answers = socket.filter(|it| it.port == port && it.answers(address));
            found.extend(answers.map(|it| it.cookie));
        };
        match transport {
            Transport::Tcp => {
                let mut request = vec![0; 4];
                request.extend(ports_from(port));
                request.extend((1_u32 << LISTENING).to_ne_bytes());
                request.extend([0; 4]);
                self.dump(TCP, &request, &mut take)?;
            }
            Transport::Udp => {
                for family in [libc::AF_INET, libc::AF_INET6] {
                    let numbers = [family, libc::IPPROTO_UDP];
                    let [family, protocol] = numbers.map(|it| u8::try_from(it).unwrap_or(0));
                    let mut request = vec![family, protocol, 0, 0];
                    // One that is connected takes what comes from where it is connected to.
                    request.extend(u32::MAX.to_ne_bytes());
                    request.extend(ports_from(port));
                    self.dump(BY_FAMILY, &request, &mut take)?;
                }
            }
        }
        Ok(found)
    }

    /// The cookies of the Unix sockets that answer there. Of several processes that share one,
    /// each has a copy of the same.
    pub(super) fn unix_listeners(&self, place: UnixPlace<'_>) -> Result<Vec<u64>, Errno> {
        let mut request = vec![u8::try_from(libc::AF_UNIX).unwrap_or(0), 0, 0, 0];
        request.extend(u32::MAX.to_ne_bytes());
        request.extend(0_u32.to_ne_bytes());
        request.extend(SHOW_NAME_AND_FILE.to_ne_bytes());
        request.extend(u64::MAX.to_ne_bytes());
        let mut found = Vec::new();
        self.dump(BY_FAMILY, &request, &mut |body| {
            found.extend(bound_at(body, place));
        })?;
        Ok(found)
    }

    fn dump(&self, kind: u16, request: &[u8], take: &mut dyn FnMut(&[u8])) -> Result<(), Errno> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut diagnostics = match kept.take() {
            Some(diagnostics) => diagnostics,
            None => Diagnostics::open()?,
        };
        // After an error the rest of an answer may be left: it is not used again.
        diagnostics.dump(kind, request, take)?;
        *kept = Some(diagnostics);
        Ok(())
    }
}

/// `struct inet_diag_sockid`: sockets at one port of this machine. The kernel leaves others out.
fn ports_from(port: u16) -> Vec<u8> {
    let mut bytes = port.to_be_bytes().to_vec();
    bytes.extend([0; 46]);
    bytes
}

struct InternetSocket {
    address: IpAddr,
    port: u16,
    cookie: u64,
}

impl InternetSocket {
    /// `struct inet_diag_msg`
    fn read(body: &[u8]) -> Option<Self> {
        let address: [u8; 16] = body.get(8..24)?.try_into().ok()?;
        let address = match i32::from(*body.first()?) {
            libc::AF_INET => {
                let [a, b, c, d, ..] = address;
                IpAddr::V4(Ipv4Addr::new(a, b, c, d))
            }
            _ => IpAddr::V6(Ipv6Addr::from(address)),
        };
        Some(Self {
            address,
            port: u16::from_be_bytes(body.get(4..6)?.try_into().ok()?),
            cookie: long(body.get(44..)?)?,
        })
    }

    /// Connecting to no address means this machine.
    fn answers(&self, wanted: IpAddr) -> bool {
        let bound = unfold(self.address);
        bound.is_unspecified() || bound == unfold(wanted) || wanted.is_unspecified()
    }
}

/// The cookie of the socket, if it answers there: `struct unix_diag_msg` and its attributes.
fn bound_at(body: &[u8], place: UnixPlace<'_>) -> Option<u64> {
    let (kind, state) = (*body.get(1)?, *body.get(2)?);
    // What a listening socket has accepted has the same name.
    let answers = match kind {
        DATAGRAM => true,
        _ => state == LISTENING,
    };
    let cookie = long(body.get(8..)?)?;
    let mut rest = body.get(16..)?;
    while let Some(length) = rest.get(..2) {
        let length = usize::from(u16::from_ne_bytes(length.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(4..length)?;
        let is_there = match (kind, place) {
            (ATTRIBUTE_NAME, UnixPlace::Name(name)) => value == name,
            (ATTRIBUTE_FILE, UnixPlace::File(device, file)) => is_file(value, device, file)?,
            _ => false,
        };
        if is_there {
            return answers.then_some(cookie);
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

/// The kernel tells the low half of the inode, and the device in its own form.
fn is_file(value: &[u8], device: Dev, file: u64) -> Option<bool> {
    let (inode, found) = (number(value)?, number(value.get(4..)?)?);
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let is_device = (found >> 20, found & 0xf_ffff) == (major, minor);
    Some(is_device && u64::from(inode) == file & u64::from(u32::MAX))
}

/// A socket over which the kernel lists others.
#[derive(Debug)]
struct Diagnostics {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Diagnostics {
    fn open() -> Result<Self, Errno> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        let buffer = vec![0; 1 << 16];
        Ok(Self { socket, buffer })
    }

    /// Asks for a list, and hands each part of it over.
    fn dump(
        &mut self,
        kind: u16,
        request: &[u8],
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Errno> {
        let length = u32::try_from(HEADER + request.len()).map_err(|_| Errno::INVAL)?;
        let mut message = Vec::new();
        message.extend(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(DUMP.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(request);
        send(&self.socket, &message, SendFlags::empty())?;
        loop {
            let (_, length) = recv(&self.socket, &mut *self.buffer, RecvFlags::empty())?;
            let mut rest = self.buffer.get(..length).unwrap_or_default();
            if rest.is_empty() {
                return Err(Errno::PROTO);
            }
            while let Some((found, body, after)) = part(rest) {
                match found {
                    END => return Ok(()),
                    _ if found == kind => take(body),
                    _ => return Err(Errno::PROTO),
                }
                rest = after;
            }
        }
    }
}

/// The kind and the body of the first message, and what follows it.
fn part(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let body = bytes.get(HEADER..length)?;
    let after = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, body, after))
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

fn long(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    use rustix::net::sockopt::socket_cookie;

    use super::*;

    #[test]
    fn fe_10_sockets_that_listen_on_this_machine_are_found() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let cookie = socket_cookie(&tcp).unwrap();
        let list = SocketList::default();
        let found = |transport, address: &str, port| {
            list.listeners(transport, address.parse().unwrap(), port)
                .unwrap()
        };
        assert_eq!(found(Transport::Tcp, "127.0.0.1", port), [cookie]);
        assert_eq!(found(Transport::Tcp, "::ffff:127.0.0.1", port), [cookie]);
        assert_eq!(found(Transport::Tcp, "127.0.0.2", port), [0; 0]);
        // What it has accepted is bound there, and takes no connections.
        let _client = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        let _accepted = tcp.accept().unwrap();
        assert_eq!(found(Transport::Tcp, "127.0.0.1", port), [cookie]);

        // One of the newer family takes both.
        if let Ok(dual) = TcpListener::bind("[::]:0") {
            let port = dual.local_addr().unwrap().port();
            let cookie = socket_cookie(&dual).unwrap();
            assert_eq!(found(Transport::Tcp, "127.0.0.1", port), [cookie]);
            assert_eq!(found(Transport::Tcp, "::1", port), [cookie]);
        }

        let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = udp.local_addr().unwrap().port();
        let cookie = socket_cookie(&udp).unwrap();
        assert_eq!(found(Transport::Udp, "127.0.0.1", port), [cookie]);
        udp.connect("127.0.0.1:9").unwrap();
        assert_eq!(found(Transport::Udp, "127.0.0.1", port), [cookie]);
        assert_eq!(found(Transport::Tcp, "127.0.0.1", port), [0; 0]);
    }

    #[test]
    fn fe_13_sockets_with_a_path_and_abstract_ones_are_found() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let file = std::fs::metadata(&path).unwrap();
        let cookie = socket_cookie(&listener).unwrap();
        let place = UnixPlace::File(file.dev(), file.ino());
        let list = SocketList::default();
        assert_eq!(list.unix_listeners(place).unwrap(), [cookie]);
        let _client = UnixStream::connect(&path).unwrap();
        let _accepted = listener.accept().unwrap();
        assert_eq!(list.unix_listeners(place).unwrap(), [cookie]);
        let other = UnixPlace::File(file.dev(), file.ino() + 1);
        assert_eq!(list.unix_listeners(other).unwrap(), [0; 0]);

        let name = format!("fe-13-{cookie}");
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let mut wanted = vec![0];
        wanted.extend(name.as_bytes());
        let found = list.unix_listeners(UnixPlace::Name(&wanted)).unwrap();
        assert_eq!(found, [socket_cookie(&listener).unwrap()]);
    }
}
