//! Calls about sockets: connecting, binding, listening.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use nix::sys::socket::{setsockopt, sockopt::BindToDevice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::net::sockopt::{
    socket_acceptconn, socket_cookie, socket_domain, socket_error, socket_type,
};
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketType, getsockname};

use super::Refusal;
use super::WriteAccess;
use super::address::unfold;
use super::caller::{Caller, Follow, Slices, TakenDescriptor};
use super::listener::Answer;
use super::places::{DirectoryCache, Places, path_of, real_path};
use super::reach::{Purpose, Reach, Route};
use super::sockets::Transport;
use super::watch::Watch;
use super::writes::note;

/// An address is no longer than this.
const MAX_ADDRESS_BYTES: usize = 128;
const LOOPBACK: &str = "lo";
/// So often is looked whether something of the session itself answers.
const OWN_SLICES: u64 = 60;

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
    socket: impl AsFd,
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
            let file = place.open(Follow::Yes)?;
            caller.confirm()?;
            // Who has given up rights does not get ours.
            if !caller.has_our_rights() {
                return Err(Errno::ACCESS);
            }
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

/// `connect`, done on behalf of the caller. It may wait.
pub(super) fn connect(caller: &Caller<'_>, reach: &Reach, watch: &Watch) -> Answer {
    connected(caller, reach, watch).map(|()| 0).into()
}

fn connected(caller: &Caller<'_>, reach: &Reach, watch: &Watch) -> Result<(), Errno> {
    let socket = caller.take_socket(caller.int(0))?;
    let bytes = address_bytes(caller, caller.argument(1), caller.argument(2) & 0xffff_ffff)?;
    caller.confirm()?;
    claim_datagrams(&socket, reach)?;
    match destination(caller, &socket, &bytes, Purpose::Probe, reach, watch)? {
        Destination::Internet(route) => {
            let done = dial(caller, &socket, &route, reach);
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
        Destination::File(file) => dial_unix(caller, &socket, &unix_address(&file)?),
        Destination::Abstract(name) => {
            dial_unix(caller, &socket, &SocketAddrUnix::new_abstract_name(&name)?)
        }
        Destination::Unspecified => rustix::net::connect_unspec(&socket),
        Destination::Netlink => Err(Errno::ACCESS),
    }
}

/// A datagram socket that names somebody is bound by that, and answers reach it.
pub(super) fn claim_datagrams(socket: impl AsFd + Copy, reach: &Reach) -> Result<(), Errno> {
    match socket_type(socket)? {
        SocketType::DGRAM => reach.registry.add(socket_cookie(socket)?),
        _ => Ok(()),
    }
}

/// A socket file by the descriptor that was checked: its name may mean another one by now.
pub(super) fn unix_address(file: &OwnedFd) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new(format!("/proc/thread-self/fd/{}", file.as_fd().as_raw_fd()))
}

fn dial(
    caller: &Caller<'_>,
    socket: &TakenDescriptor<'_>,
    route: &Route,
    reach: &Reach,
) -> Result<(), Errno> {
    let mut last = Errno::NETUNREACH;
    let waits = is_blocking(socket)?;
    for address in &route.addresses {
        let dialled = SocketAddr::new(*address, route.port);
        let Some(dialled) = for_socket(socket, dialled) else {
            continue;
        };
        let done = match start_dialling(socket, &dialled, waits) {
            Err(Errno::INPROGRESS) if waits => finish_dialling(caller, socket, Slices::of(socket)),
            // What is the session's own answers at once, or its place is taken by another.
            Err(Errno::INPROGRESS) if route.label.is_none() => {
                finish_dialling(caller, socket, Slices::some(OWN_SLICES))
            }
            other => other,
        };
        let is_tcp = socket_type(socket)? == SocketType::STREAM;
        if done.is_ok() && is_tcp && route.label.is_none() {
            if !reach.is_own(Transport::Tcp, *address, route.port) {
                let _ = rustix::net::shutdown(socket, Shutdown::Both);
                return Err(Errno::ACCESS);
            }
        } else if done.is_err() && route.label.is_none() {
            let _ = rustix::net::connect_unspec(socket);
        }
        match done {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
        if !waits {
            break;
        }
    }
    Err(last)
}

/// Begins to connect, and never waits: whoever waits for a call that is done on behalf of another
/// could not be told that this one is gone.
fn start_dialling(
    socket: &TakenDescriptor<'_>,
    address: &SocketAddr,
    waits: bool,
) -> Result<(), Errno> {
    without_waiting(socket, waits, || rustix::net::connect(socket, address))
}

fn without_waiting(
    socket: &TakenDescriptor<'_>,
    waits: bool,
    connect: impl Fn() -> Result<(), Errno>,
) -> Result<(), Errno> {
    if !waits {
        return connect();
    }
    let flags = fcntl_getfl(socket)?;
    fcntl_setfl(socket, flags | OFlags::NONBLOCK)?;
    let done = connect();
    fcntl_setfl(socket, flags)?;
    done
}

fn finish_dialling(
    caller: &Caller<'_>,
    socket: &TakenDescriptor<'_>,
    mut slices: Slices,
) -> Result<(), Errno> {
    loop {
        let mut events = [PollFd::new(socket, PollFlags::OUT)];
        if poll(&mut events, Some(&Timespec::default()))? > 0 {
            return socket_error(socket)?;
        }
        match caller.wait_for(socket, &mut slices) {
            // As the kernel says it where the time of a socket is over.
            Err(Errno::AGAIN) => return Err(Errno::INPROGRESS),
            other => other?,
        }
    }
}

fn dial_unix(
    caller: &Caller<'_>,
    socket: &TakenDescriptor<'_>,
    address: &SocketAddrUnix,
) -> Result<(), Errno> {
    let waits = is_blocking(socket)?;
    let mut slices = Slices::of(socket);
    loop {
        match without_waiting(socket, waits, || rustix::net::connect(socket, address)) {
            // Too many wait to be taken.
            Err(Errno::AGAIN) if waits => caller.pause(&mut slices)?,
            other => return other,
        }
    }
}

/// An address in the form that a socket of this family takes.
pub(super) fn for_socket(socket: impl AsFd, address: SocketAddr) -> Option<SocketAddr> {
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

pub(super) fn is_blocking(socket: impl AsFd) -> Result<bool, Errno> {
    Ok(!fcntl_getfl(socket)?.contains(OFlags::NONBLOCK))
}

/// Whether others have a socket there: several can share a port (`SO_REUSEPORT`), and each would
/// get some of what is meant for another.
fn refuse_shared(reach: &Reach, socket: impl AsFd, address: SocketAddr) -> Result<(), Errno> {
    let transport = match socket_type(socket)? {
        SocketType::STREAM => Transport::Tcp,
        SocketType::DGRAM => Transport::Udp,
        _ => return Err(Errno::ACCESS),
    };
    match address.port() {
        0 => Ok(()),
        port => reach.refuse_foreign(transport, unfold(address.ip()), port),
    }
}

/// The address in a call, with its scope: here nobody looks for another one.
fn bound_address(bytes: &[u8]) -> Option<SocketAddr> {
    let address = internet(bytes)?;
    let SocketAddr::V6(mut six) = address else {
        return Some(address);
    };
    if let Some(scope) = bytes.get(24..28).and_then(|scope| scope.try_into().ok()) {
        six.set_scope_id(u32::from_ne_bytes(scope));
    }
    Some(SocketAddr::V6(six))
}

/// `bind` of an address of the internet, done on behalf of the caller.
fn bind_internet(
    caller: &Caller<'_>,
    reach: &Reach,
    socket: &TakenDescriptor<'_>,
    bytes: &[u8],
) -> Result<(), Errno> {
    caller.confirm()?;
    let family = bytes.get(..2).and_then(|it| it.try_into().ok());
    let family = i32::from(u16::from_ne_bytes(family.ok_or(Errno::INVAL)?));
    let is_of_socket = match socket_domain(socket)? {
        // An old way to bind to no address.
        AddressFamily::INET => matches!(family, libc::AF_INET | libc::AF_UNSPEC),
        _ => family == libc::AF_INET6,
    };
    if !is_of_socket {
        return Err(Errno::AFNOSUPPORT);
    }
    let address = match family {
        libc::AF_INET6 => bound_address(bytes),
        _ => {
            let mut bytes = bytes.to_vec();
            let family = u16::try_from(libc::AF_INET).map_err(|_| Errno::INVAL)?;
            if let Some(first) = bytes.get_mut(..2) {
                first.copy_from_slice(&family.to_ne_bytes());
            }
            internet(&bytes)
        }
    };
    let address = address.ok_or(Errno::INVAL)?;
    refuse_shared(reach, socket, address)?;
    rustix::net::bind(socket, &address)
}

/// `bind`: what the tree binds is its own.
pub(super) fn bind(
    caller: &Caller<'_>,
    reach: &Reach,
    places: &Places,
    known: &DirectoryCache,
    watch: &Watch,
) -> Answer {
    let bound = caller.take_socket(caller.int(0)).and_then(|socket| {
        reach.registry.add(socket_cookie(&socket)?)?;
        let bytes = address_bytes(caller, caller.argument(1), caller.argument(2) & 0xffff_ffff)?;
        let family = socket_domain(&socket)?;
        if matches!(family, AddressFamily::INET | AddressFamily::INET6) {
            bind_internet(caller, reach, &socket, &bytes)?;
        }
        Ok((family, bytes))
    });
    match bound {
        Ok((AddressFamily::INET | AddressFamily::INET6, _)) => Answer::from(Ok(0)),
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
                && (note(path, false, places, watch) == WriteAccess::None || !watch.may_continue())
            {
                return Answer::Fail(Errno::ACCESS);
            }
            Answer::Continue
        }
        Ok(_) => Answer::Continue,
        Err(error) => Answer::Fail(error),
    }
}

fn is_listening(socket: impl AsFd) -> bool {
    socket_acceptconn(socket).unwrap_or(false)
}

/// `listen`, done on behalf of the caller, on this machine only.
pub(super) fn listen(caller: &Caller<'_>, reach: &Reach, watch: &Watch) -> Answer {
    let done = caller.take_socket(caller.int(0)).and_then(|socket| {
        // It may never have been bound: listening gives it a port.
        reach.registry.add(socket_cookie(&socket)?)?;
        let is_internet = matches!(
            socket_domain(&socket)?,
            AddressFamily::INET | AddressFamily::INET6
        );
        if is_internet {
            // Somebody else may have begun to listen there since it was bound.
            let bound = SocketAddr::try_from(getsockname(&socket)?).map_err(|_| Errno::INVAL)?;
            if !is_listening(&socket) {
                refuse_shared(reach, &socket, bound)?;
            }
        }
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
            let refused = match is_internet {
                true => "a raw socket",
                false => "a socket of another family",
            };
            watch.refuse(Refusal::Call(refused.to_owned()));
            match is_internet {
                true => Answer::Fail(Errno::PERM),
                false => Answer::Fail(Errno::AFNOSUPPORT),
            }
        }
    }
}
