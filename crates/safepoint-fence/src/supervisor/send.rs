//! Calls that send with an address: done here, with a copy of what the caller wrote.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketType, sendmsg, sendmsg_addr,
};

use super::caller::Caller;
use super::listener::Answer;
use super::network::{
    Destination, address_bytes, destination, for_socket, is_blocking, unix_address,
};
use super::reach::{Purpose, Reach};
use super::watch::Watch;

/// No more is copied at once. A stream takes part of what it is given; no datagram is so large.
const MAX_BYTES: usize = 1 << 20;
/// Parts of one message, and messages of one call, as the kernel limits them.
const MAX_PARTS: u64 = 1024;
const MAX_MESSAGES: u32 = 1024;
const MAX_CONTROL_BYTES: u64 = 20 << 10;
const MAX_DESCRIPTORS: usize = 253;

const HEADER: usize = 56;
const HEADER_AND_LENGTH: u64 = 64;

/// Whether sending may wait until there is room, or somebody has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It has to be over at once.
    None,
    /// This thread has the time.
    Unlimited,
}

/// What became of trying to send.
pub(super) enum Sent {
    Answered(Answer),
    /// It needs a thread that can wait.
    Waits,
}

/// One message, copied.
struct Message {
    address: Option<Vec<u8>>,
    data: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// `sendto`, `sendmsg` or `sendmmsg`.
pub(super) fn send(caller: &Caller<'_>, patience: Patience, reach: &Reach, watch: &Watch) -> Sent {
    match attempt(caller, patience, reach, watch) {
        Ok(Some(answer)) => Sent::Answered(answer),
        Ok(None) => Sent::Waits,
        Err(error) => Sent::Answered(Answer::Fail(error)),
    }
}

fn attempt(
    caller: &Caller<'_>,
    patience: Patience,
    reach: &Reach,
    watch: &Watch,
) -> Result<Option<Answer>, Errno> {
    let socket = caller.take(caller.int(0))?;
    let kind = socket_type(&socket)?;
    let is_stream = matches!(kind, SocketType::STREAM | SocketType::SEQPACKET);
    let call = caller.notification.call();
    // A connected socket has no use for an address; the caller is alone, so it stays this socket.
    if is_stream && call != libc::SYS_sendto && caller.is_single() {
        return Ok(Some(Answer::Continue));
    }
    let sender = Sender {
        caller,
        socket: &socket,
        is_stream,
        patience,
        reach,
        watch,
    };
    let sent = match call {
        libc::SYS_sendto => {
            let message = Message {
                address: Some(address_bytes(
                    caller,
                    caller.argument(4),
                    caller.argument(5) & 0xffff_ffff,
                )?),
                data: sender.data(&[(caller.argument(1), caller.argument(2))])?,
                descriptors: Vec::new(),
            };
            sender.send(&message, caller.int(3))?
        }
        libc::SYS_sendmsg => {
            let message = sender.message(caller.argument(1))?;
            sender.send(&message, caller.int(2))?
        }
        _ => return sender.send_many(),
    };
    Ok(sent.map(|bytes| Answer::Return(i64::try_from(bytes).unwrap_or(i64::MAX))))
}

struct Sender<'a> {
    caller: &'a Caller<'a>,
    socket: &'a OwnedFd,
    is_stream: bool,
    patience: Patience,
    reach: &'a Reach,
    watch: &'a Watch,
}

impl Sender<'_> {
    fn send_many(&self) -> Result<Option<Answer>, Errno> {
        let count = self.caller.notification.unsigned(2).min(MAX_MESSAGES);
        let mut sent = 0;
        for index in 0..count {
            let place = self.caller.argument(1) + u64::from(index) * HEADER_AND_LENGTH;
            let done = self
                .message(place)
                .and_then(|message| self.send(&message, self.caller.int(3)));
            match done {
                Ok(Some(bytes)) => {
                    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).to_ne_bytes();
                    self.caller.write(place + HEADER as u64, &bytes)?;
                    sent += 1;
                }
                // What was sent counts; the caller sends the rest again.
                Ok(None) if sent == 0 => return Ok(None),
                Err(error) if sent == 0 => return Err(error),
                Ok(None) | Err(_) => break,
            }
        }
        Ok(Some(Answer::Return(sent)))
    }

    /// Reads a message header and all that it points to.
    fn message(&self, place: u64) -> Result<Message, Errno> {
        let header = self.caller.bytes(place, HEADER)?;
        let word = |at: usize| -> Result<u64, Errno> {
            let bytes = header.get(at..at + 8).and_then(|it| it.try_into().ok());
            bytes.map(u64::from_ne_bytes).ok_or(Errno::FAULT)
        };
        let (name, name_length) = (word(0)?, word(8)? & 0xffff_ffff);
        let (parts, count) = (word(16)?, word(24)?);
        let (control, control_length) = (word(32)?, word(40)?);
        if count > MAX_PARTS || control_length > MAX_CONTROL_BYTES {
            return Err(Errno::MSGSIZE);
        }
        let length = usize::try_from(count * 16).map_err(|_| Errno::MSGSIZE)?;
        let vectors = self.caller.bytes(parts, length)?;
        let pairs: Vec<(u64, u64)> = vectors
            .as_chunks::<16>()
            .0
            .iter()
            .map(|pair| {
                let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *pair;
                (
                    u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
                    u64::from_ne_bytes([i, j, k, l, m, n, o, p]),
                )
            })
            .collect();
        let address = match (name, name_length) {
            (0, _) | (_, 0) => None,
            _ => Some(address_bytes(self.caller, name, name_length)?),
        };
        Ok(Message {
            address,
            data: self.data(&pairs)?,
            descriptors: match (control, control_length) {
                (0, _) | (_, 0) => Vec::new(),
                _ => self.descriptors(control, control_length)?,
            },
        })
    }

    /// The bytes of all parts, as far as they are taken.
    fn data(&self, parts: &[(u64, u64)]) -> Result<Vec<u8>, Errno> {
        let mut data = Vec::new();
        for (address, length) in parts {
            let length = usize::try_from(*length).map_err(|_| Errno::MSGSIZE)?;
            let room = MAX_BYTES - data.len();
            if length > room && !self.is_stream {
                return Err(Errno::MSGSIZE);
            }
            data.extend(self.caller.bytes(*address, length.min(room))?);
        }
        Ok(data)
    }

    /// The descriptors that go along. Who sends is said by the kernel, and nothing else is known.
    fn descriptors(&self, control: u64, length: u64) -> Result<Vec<OwnedFd>, Errno> {
        const HEAD: usize = 16;
        let length = usize::try_from(length).map_err(|_| Errno::INVAL)?;
        let bytes = self.caller.bytes(control, length)?;
        let mut rest = bytes.as_slice();
        let mut found = Vec::new();
        while let Some(head) = rest.get(..HEAD) {
            let (size, kind) = head.split_at(8);
            let size = u64::from_ne_bytes(size.try_into().map_err(|_| Errno::INVAL)?);
            let size = usize::try_from(size).map_err(|_| Errno::INVAL)?;
            let body = rest.get(HEAD..size).ok_or(Errno::INVAL)?;
            let (level, kind) = kind.split_at(4);
            let int = |bytes: &[u8]| bytes.try_into().map(i32::from_ne_bytes);
            match (int(level), int(kind)) {
                (Ok(libc::SOL_SOCKET), Ok(libc::SCM_RIGHTS)) => {
                    for number in body.as_chunks::<4>().0 {
                        if found.len() == MAX_DESCRIPTORS {
                            return Err(Errno::INVAL);
                        }
                        found.push(self.caller.take(i32::from_ne_bytes(*number))?);
                    }
                }
                (Ok(libc::SOL_SOCKET), Ok(libc::SCM_CREDENTIALS)) => {}
                _ => return Err(Errno::INVAL),
            }
            rest = rest.get(size.next_multiple_of(8)..).unwrap_or_default();
        }
        Ok(found)
    }

    /// Sends one message, and says how much of it. `None` where that would have to wait.
    fn send(&self, message: &Message, flags: i32) -> Result<Option<usize>, Errno> {
        let address = message.address.as_ref().filter(|_| !self.is_stream);
        if address.is_some() && self.patience == Patience::None {
            return Ok(None);
        }
        let mut flags = SendFlags::from_bits_retain(flags.cast_unsigned()) | SendFlags::NOSIGNAL;
        let waits = is_blocking(self.socket)? && !flags.contains(SendFlags::DONTWAIT);
        if self.patience == Patience::None {
            flags |= SendFlags::DONTWAIT;
        }
        self.caller.confirm()?;
        match self.dispatch(message, address.map(Vec::as_slice), flags) {
            Err(Errno::AGAIN) if waits => Ok(None),
            other => other.map(Some),
        }
    }

    fn dispatch(
        &self,
        message: &Message,
        address: Option<&[u8]>,
        flags: SendFlags,
    ) -> Result<usize, Errno> {
        let descriptors: Vec<BorrowedFd<'_>> =
            message.descriptors.iter().map(AsFd::as_fd).collect();
        let ancillary = SendAncillaryMessage::ScmRights(&descriptors);
        let mut space = vec![MaybeUninit::uninit(); ancillary.size()];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(ancillary) {
            return Err(Errno::INVAL);
        }
        let data = [IoSlice::new(&message.data)];
        let Some(bytes) = address else {
            return sendmsg(self.socket, &data, &mut control, flags);
        };
        let purpose = Purpose::Send;
        let (reach, watch) = (self.reach, self.watch);
        match destination(self.caller, self.socket, bytes, purpose, reach, watch)? {
            Destination::Internet(route) => {
                let first = route.addresses.iter().find_map(|address| {
                    for_socket(self.socket, std::net::SocketAddr::new(*address, route.port))
                });
                let first = first.ok_or(Errno::NETUNREACH)?;
                let sent = sendmsg_addr(self.socket, &first, &data, &mut control, flags)?;
                if let Some(label) = route.label {
                    watch.reach_host(label);
                }
                Ok(sent)
            }
            Destination::NameServer(server) => {
                let server = for_socket(self.socket, server).ok_or(Errno::NETUNREACH)?;
                sendmsg_addr(self.socket, &server, &data, &mut control, flags)
            }
            Destination::File(file) => sendmsg_addr(
                self.socket,
                &unix_address(&file)?,
                &data,
                &mut control,
                flags,
            ),
            Destination::Abstract(name) => {
                let address = SocketAddrUnix::new_abstract_name(&name)?;
                sendmsg_addr(self.socket, &address, &data, &mut control, flags)
            }
            Destination::Netlink if only_asks(self.socket, &message.data) => {
                sendmsg(self.socket, &data, &mut control, flags)
            }
            Destination::Netlink => Err(Errno::PERM),
            Destination::Unspecified => Err(Errno::DESTADDRREQ),
        }
    }
}

/// Whether a message to the kernel's tables asks, and changes nothing: every fourth kind does.
fn only_asks(socket: &OwnedFd, data: &[u8]) -> bool {
    const FIRST_KIND: u16 = 16;
    const HEAD: usize = 16;
    if socket_domain(socket) != Ok(AddressFamily::NETLINK) {
        return false;
    }
    let mut rest = data;
    while !rest.is_empty() {
        let Some(head) = rest.get(..HEAD) else {
            return false;
        };
        let [a, b, c, d, e, f, ..] = *head else {
            return false;
        };
        let kind = u16::from_ne_bytes([e, f]);
        if kind < FIRST_KIND || kind % 4 != 2 {
            return false;
        }
        let size = usize::try_from(u32::from_ne_bytes([a, b, c, d])).unwrap_or(0);
        if size < HEAD {
            return false;
        }
        rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}
