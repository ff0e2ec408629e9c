//! Which sockets of this machine listen where, as the kernel lists them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

/// The state of a TCP socket that listens, and of a UDP socket that is bound to no other one.
const LISTENING: &str = "0A";
const BOUND: &str = "07";

/// The inodes of the sockets that answer at this address of this machine.
pub(super) fn listeners(transport: Transport, address: IpAddr, port: u16) -> Vec<u64> {
    let (tables, state) = match transport {
        Transport::Tcp => (["/proc/net/tcp", "/proc/net/tcp6"], LISTENING),
        Transport::Udp => (["/proc/net/udp", "/proc/net/udp6"], BOUND),
    };
    let mut found = Vec::new();
    for table in tables {
        let text = fs::read_to_string(table).unwrap_or_default();
        let rows = text.lines().skip(1).filter_map(row);
        found.extend(
            rows.filter(|row| row.state == state && row.port == port)
                .filter(|row| answers(row.address, address))
                .map(|row| row.inode),
        );
    }
    found
}

struct Row<'a> {
    address: IpAddr,
    port: u16,
    state: &'a str,
    inode: u64,
}

/// A line such as `0: 0100007F:1F90 00000000:0000 0A … 29199 …`.
fn row(line: &str) -> Option<Row<'_>> {
    let mut fields = line.split_ascii_whitespace();
    let (address, port) = fields.nth(1)?.split_once(':')?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?.parse().ok()?;
    Some(Row {
        address: hexadecimal(address)?,
        port: u16::from_str_radix(port, 16).ok()?,
        state,
        inode,
    })
}

/// An address as the kernel prints it: words of 32 bits, each in the order of this machine.
fn hexadecimal(text: &str) -> Option<IpAddr> {
    let mut bytes = Vec::new();
    for word in text.as_bytes().chunks(8) {
        let word = std::str::from_utf8(word).ok()?;
        bytes.extend(u32::from_str_radix(word, 16).ok()?.to_ne_bytes());
    }
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some(IpAddr::V4(Ipv4Addr::from(four)));
    }
    let six = <[u8; 16]>::try_from(bytes.as_slice()).ok()?;
    Some(IpAddr::V6(Ipv6Addr::from(six)))
}

/// Whether a socket that is bound to one address answers at another.
fn answers(bound: IpAddr, wanted: IpAddr) -> bool {
    // Connecting to no address means this machine.
    bound.is_unspecified() || unfold(bound) == unfold(wanted) || wanted.is_unspecified()
}

/// Where a Unix socket is bound.
#[derive(Debug, Clone, Copy)]
pub(super) enum UnixPlace<'a> {
    /// A file, by device and inode.
    File(Dev, u64),
    /// An abstract name.
    Name(&'a [u8]),
}

// What is asked of `sock_diag`, as its header has it.
const BY_FAMILY: u16 = 20;
const DUMP: u16 = 0x301;
const END: u16 = 3;
const SHOW_NAME_AND_FILE: u32 = 3;
const ATTRIBUTE_NAME: u16 = 0;
const ATTRIBUTE_FILE: u16 = 1;
const HEADER: usize = 16;

/// The inodes of the Unix sockets that are bound there. Of several processes that share one,
/// each has a copy of the same.
pub(super) fn unix_listeners(place: UnixPlace<'_>) -> Result<Vec<u64>, Errno> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let mut request = Vec::new();
    request.extend(40_u32.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(0_u32.to_ne_bytes());
    request.extend(SHOW_NAME_AND_FILE.to_ne_bytes());
    request.extend(u64::MAX.to_ne_bytes());
    send(&socket, &request, SendFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (_, length) = recv(&socket, &mut *buffer, RecvFlags::empty())?;
        let mut rest = buffer.get(..length).unwrap_or_default();
        if rest.is_empty() {
            return Err(Errno::PROTO);
        }
        while let Some((kind, body, after)) = message(rest) {
            match kind {
                BY_FAMILY => found.extend(bound_at(body, place)),
                END => return Ok(found),
                _ => return Err(Errno::PROTO),
            }
            rest = after;
        }
    }
}

/// The kind and the body of the first message, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let body = bytes.get(HEADER..length)?;
    let after = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, body, after))
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

/// The inode of the socket, if it is bound there.
fn bound_at(body: &[u8], place: UnixPlace<'_>) -> Option<u64> {
    let inode = number(body.get(4..)?)?;
    let mut rest = body.get(16..)?;
    while let Some(length) = rest.get(..2) {
        let length = usize::from(u16::from_ne_bytes(length.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(4..length)?;
        let is_it = match (kind, place) {
            (ATTRIBUTE_NAME, UnixPlace::Name(name)) => value == name,
            (ATTRIBUTE_FILE, UnixPlace::File(device, file)) => {
                // The kernel tells the low half of the inode, and the device in its own form.
                let major = u64::from(number(value.get(4..)?)? >> 20);
                let minor = u64::from(number(value.get(4..)?)? & 0xf_ffff);
                let same = (major, minor)
                    == (
                        u64::from(rustix::fs::major(device)),
                        u64::from(rustix::fs::minor(device)),
                    );
                same && u64::from(number(value)?) == file & u64::from(u32::MAX)
            }
            _ => false,
        };
        if is_it {
            return Some(inode.into());
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use super::*;

    fn inode(socket: impl AsFd) -> u64 {
        rustix::fs::fstat(socket).unwrap().st_ino
    }

    #[test]
    fn fe_10_sockets_that_listen_on_this_machine_are_found() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let here = "127.0.0.1".parse().unwrap();
        assert_eq!(listeners(Transport::Tcp, here, port), [inode(&tcp)]);
        let folded = "::ffff:127.0.0.1".parse().unwrap();
        assert_eq!(listeners(Transport::Tcp, folded, port), [inode(&tcp)]);
        let elsewhere = "127.0.0.2".parse().unwrap();
        assert_eq!(listeners(Transport::Tcp, elsewhere, port), [0; 0]);

        let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = udp.local_addr().unwrap().port();
        assert_eq!(listeners(Transport::Udp, here, port), [inode(&udp)]);
        assert_eq!(listeners(Transport::Tcp, here, port), [0; 0]);
    }

    #[test]
    fn fe_13_sockets_with_a_path_and_abstract_ones_are_found() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let file = std::fs::metadata(&path).unwrap();
        let place = UnixPlace::File(file.dev(), file.ino());
        assert_eq!(unix_listeners(place).unwrap(), [inode(&listener)]);
        let other = UnixPlace::File(file.dev(), file.ino() + 1);
        assert_eq!(unix_listeners(other).unwrap(), [0; 0]);

        let name = format!("fe-13-{}", inode(&listener));
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let mut wanted = vec![0];
        wanted.extend(name.as_bytes());
        let found = unix_listeners(UnixPlace::Name(&wanted)).unwrap();
        assert_eq!(found, [inode(&listener)]);
    }
}
