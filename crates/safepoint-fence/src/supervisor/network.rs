//! Calls about sockets: connecting, binding, listening.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use nix::sys::socket::{setsockopt, sockopt::BindToDevice};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::Errno;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use super::Refusal;
use super::caller::{Caller, Follow, open_path};
use super::listener::Answer;
use super::places::{DirectoryCache, Places, path_of, real_path};
use super::reach::{Purpose, Reach, Route};
use super::sockets::Transport;
use super::watch::Watch;
use super::writes::note;

/// An address is no longer than this.
const MAX_ADDRESS_BYTES: usize = 128;
const LOOPBACK: &str = "lo";

/// Where a caller wants to go, checked.
pub(super) enum Destination {
    Internet(Route),
    /// Our own name server.
    NameServer(SocketAddr),
    /// A socket with a path: the file that was checked.
    File(OwnedFd),
    Abstract(Vec<u8>),
    /// Nowhere any more.
    Unspecified,
    /// The kernel's own tables.
    Netlink,
}

/// An address in a call, as its bytes.
pub(super) fn address_bytes(
    caller: &Caller<'_>,
    address: u64,
    length: u64,
) -> Result<Vec<u8>, Errno> {
    match usize::try_from(length) {
        Ok(length @ 2..=MAX_ADDRESS_BYTES) => caller.bytes(address, length),
        _ => Err(Errno::INVAL),
    }
}

/// Checks where a caller wants to go.
pub(super) fn destination(
    caller: &Caller<'_>,
    socket: &OwnedFd,
    bytes: &[u8],
    purpose: Purpose,
    reach: &Reach,
    watch: &Watch,
) -> Result<Destination, Errno> {
    let family = bytes.get(..2).and_then(|it| it.try_into().ok());
    let family = i32::from(u16::from_ne_bytes(family.ok_or(Errno::INVAL)?));
    match family {
        libc::AF_UNSPEC => Ok(Destination::Unspecified),
        libc::AF_UNIX => unix(caller, bytes, reach, watch),
        libc::AF_NETLINK => Ok(Destination::Netlink),
        libc::AF_INET | libc::AF_INET6 => {
            let address = internet(bytes).ok_or(Errno::INVAL)?;
            let transport = match socket_type(socket)? {
                SocketType::STREAM => Transport::Tcp,
                SocketType::DGRAM => Transport::Udp,
                _ => return Err(Errno::ACCESS),
            };
            if transport == Transport::Udp && reach.replaces_name_server(address) {
                return reach.name_server().map(Destination::NameServer);
            }
            let purpose = match transport {
                Transport::Tcp => Purpose::Send,
                Transport::Udp => purpose,
            };
            reach
                .route(transport, address, purpose)
                .map(Destination::Internet)
        }
        _ => Err(Errno::AFNOSUPPORT),
    }
}

/// An address of either version.
fn internet(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let address = match family {
        libc::AF_INET => {
            let four: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            IpAddr::V4(Ipv4Addr::from(four))
        }
        _ => {
            let six: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(six))
        }
    };
    Some(SocketAddr::new(address, port))
}

fn unix(
    caller: &Caller<'_>,
    bytes: &[u8],
    reach: &Reach,
    watch: &Watch,
) -> Result<Destination, Errno> {
    let name = bytes.get(2..).unwrap_or_default();
    let reached = match name {
        [] => return Err(Errno::INVAL),
        [0, name @ ..] => {
            let reached = reach.abstract_socket(name)?;
            (Destination::Abstract(name.to_vec()), reached)
        }
        path => {
            let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
            let place = caller.locate(libc::AT_FDCWD, OsStr::from_bytes(path));
            let file = open_path(&place, Follow::Yes)?;
            caller.confirm()?;
            let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
            if kind != FileType::Socket {
                return Err(Errno::CONNREFUSED);
            }
            let path = path_of(&file)?;
            let reached = reach.socket_file(&file, path)?;
            (Destination::File(file), reached)
        }
    };
    let (destination, path) = reached;
    if let Some(path) = path {
        watch.reach_socket(path);
    }
    Ok(destination)
}

/// `connect`, done on behalf of the caller. It may block.
pub(super) fn connect(caller: &Caller<'_>, reach: &Reach, watch: &Watch) -> Answer {
    connected(caller, reach, watch).map(|()| 0).into()
}

fn connected(caller: &Caller<'_>, reach: &Reach, watch: &Watch) -> Result<(), Errno> {
    let socket = caller.take(caller.int(0))?;
    let bytes = address_bytes(caller, caller.argument(1), caller.argument(2) & 0xffff_ffff)?;
    caller.confirm()?;
    match destination(caller, &socket, &bytes, Purpose::Probe, reach, watch)? {
        Destination::Internet(route) => {
            let done = dial(&socket, &route);
            if matches!(done, Ok(()) | Err(Errno::INPROGRESS))
                && let Some(label) = route.label
            {
                watch.reach_host(label);
            }
            done
        }
        Destination::NameServer(address) => rustix::net::connect(
            &socket,
            &for_socket(&socket, address).ok_or(Errno::NETUNREACH)?,
        ),
        Destination::File(file) => rustix::net::connect(&socket, &unix_address(&file)?),
        Destination::Abstract(name) => {
            rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(&name)?)
        }
        Destination::Unspecified => rustix::net::connect_unspec(&socket),
        Destination::Netlink => Err(Errno::ACCESS),
    }
}

/// A socket file by the descriptor that was checked: its name may mean another one by now.
pub(super) fn unix_address(file: &OwnedFd) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

fn dial(socket: &OwnedFd, route: &Route) -> Result<(), Errno> {
    let mut last = Errno::NETUNREACH;
    let is_blocking = is_blocking(socket)?;
    for address in &route.addresses {
        let address = SocketAddr::new(*address, route.port);
        let Some(address) = for_socket(socket, address) else {
            continue;
        };
        match rustix::net::connect(socket, &address) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
        if !is_blocking {
            break;
        }
    }
    Err(last)
}

/// An address in the form that a socket of this family takes.
pub(super) fn for_socket(socket: &OwnedFd, address: SocketAddr) -> Option<SocketAddr> {
    let family = socket_domain(socket).ok()?;
    match (family, address.ip()) {
        (AddressFamily::INET6, IpAddr::V4(four)) => Some(SocketAddr::new(
            four.to_ipv6_mapped().into(),
            address.port(),
        )),
        (AddressFamily::INET, IpAddr::V4(_)) | (AddressFamily::INET6, IpAddr::V6(_)) => {
            Some(address)
        }
        _ => None,
    }
}

pub(super) fn is_blocking(socket: &OwnedFd) -> Result<bool, Errno> {
    Ok(!fcntl_getfl(socket)?.contains(OFlags::NONBLOCK))
}

/// `bind`: what the tree binds is its own.
pub(super) fn bind(
    caller: &Caller<'_>,
    reach: &Reach,
    places: &Places,
    known: &DirectoryCache,
    watch: &Watch,
) -> Answer {
    let bound = caller.take(caller.int(0)).and_then(|socket| {
        reach.registry.add(fstat(&socket)?.st_ino)?;
        let bytes = address_bytes(caller, caller.argument(1), caller.argument(2) & 0xffff_ffff)?;
        Ok((socket_domain(&socket)?, bytes))
    });
    match bound {
        // Landlock holds new files, and no other address reaches anything by itself.
        Ok((AddressFamily::UNIX, bytes)) => {
            let path = bytes.get(2..).unwrap_or_default();
            let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
            if !path.is_empty()
                && let Ok(path) = real_path(
                    caller,
                    known,
                    libc::AT_FDCWD,
                    OsStr::from_bytes(path),
                    Follow::No,
                )
                && !note(path, false, places, watch)
            {
                return Answer::Fail(Errno::ACCESS);
            }
            Answer::Continue
        }
        Ok(_) | Err(Errno::INVAL | Errno::FAULT | Errno::BADF) => Answer::Continue,
        Err(error) => Answer::Fail(error),
    }
}

/// `listen`, done on behalf of the caller, on this machine only.
pub(super) fn listen(caller: &Caller<'_>, reach: &Reach, watch: &Watch) -> Answer {
    let done = caller.take(caller.int(0)).and_then(|socket| {
        // It may never have been bound: listening gives it a port.
        reach.registry.add(fstat(&socket)?.st_ino)?;
        let is_internet = matches!(
            socket_domain(&socket)?,
            AddressFamily::INET | AddressFamily::INET6
        );
        if is_internet && setsockopt(&socket, BindToDevice, &OsString::from(LOOPBACK)).is_err() {
            watch.refuse(Refusal::Call("listen".to_owned()));
            return Err(Errno::ACCESS);
        }
        rustix::net::listen(&socket, caller.int(1))
    });
    done.map(|()| 0).into()
}

/// `socket`: only the kinds whose calls are supervised.
pub(super) fn socket(caller: &Caller<'_>, watch: &Watch) -> Answer {
    // What stands behind the kind are flags.
    const KIND: i32 = 0xf;
    let (family, kind, protocol) = (caller.int(0), caller.int(1) & KIND, caller.int(2));
    let is_internet = matches!(family, libc::AF_INET | libc::AF_INET6);
    match (kind, protocol) {
        (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) | (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP)
            if is_internet =>
        {
            Answer::Continue
        }
        // Programs use the plain protocol then.
        (libc::SOCK_STREAM, libc::IPPROTO_MPTCP) if is_internet => {
            Answer::Fail(Errno::PROTONOSUPPORT)
        }
        (_, libc::NETLINK_ROUTE) if family == libc::AF_NETLINK => Answer::Continue,
        _ => {
            watch.refuse(Refusal::Call(format!(
                "socket of family {family}, kind {kind}"
            )));
            match is_internet {
                true => Answer::Fail(Errno::PERM),
                false => Answer::Fail(Errno::AFNOSUPPORT),
            }
        }
    }
}
