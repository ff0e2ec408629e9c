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

use super::caller::{Caller, Slices, TakenSocket};
use super::listener::Answer;
use super::network::{
    Destination, address_bytes, claim_datagrams, destination, for_socket, is_blocking, unix_address,
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

/// Flags that mean the same for a copy of what the caller wrote.
const KEPT_FLAGS: SendFlags = SendFlags::DONTWAIT
    .union(SendFlags::NOSIGNAL)
    .union(SendFlags::OOB)
    .union(SendFlags::EOR)
    .union(SendFlags::MORE)
    .union(SendFlags::CONFIRM)
    .union(SendFlags::DONTROUTE);

/// Whether sending may wait until there is room, or somebody has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It has to be over at once.
    None,
    /// This thread has the time, for as long as the caller waits.
    Unlimited,
}

/// What became of trying to send.
pub(super) enum Sent {
    Answered(Answer),
    /// It needs a thread that can wait. So much of it was sent.
    Waits(usize),
}

/// One message, copied.
struct Message {
    address: Option<Vec<u8>>,
    /// Where the parts lie, and how long they are.
    parts: Vec<(u64, u64)>,
    descriptors: Vec<OwnedFd>,
}

/// `sendto`, `sendmsg` or `sendmmsg`, of which a part may have been sent before.
pub(super) fn send(
    caller: &Caller<'_>,
    patience: Patience,
    before: usize,
    reach: &Reach,
    watch: &Watch,
) -> Sent {
    attempt(caller, patience, before, reach, watch)
        .unwrap_or_else(|error| Sent::Answered(Answer::Fail(error)))
}

fn attempt(
    caller: &Caller<'_>,
    patience: Patience,
    before: usize,
    reach: &Reach,
    watch: &Watch,
) -> Result<Sent, Errno> {
    let socket = caller.take_socket(caller.int(0))?;
    let kind = socket_type(&socket)?;
    let is_stream = matches!(kind, SocketType::STREAM | SocketType::SEQPACKET);
    let call = caller.notification.call();
    // A connected socket has no use for an address; the caller is alone, so it stays this socket.
    if is_stream && call != libc::SYS_sendto && caller.is_single() {
        return Ok(Sent::Answered(Answer::Continue));
    }
    let waits = is_blocking(&socket)?;
    let sender = Sender {
        caller,
        socket: &socket,
        is_stream: kind == SocketType::STREAM,
        has_peer: is_stream,
        waits,
        patience,
        reach,
        watch,
    };
    if call == libc::SYS_sendmmsg {
        return sender.send_many();
    }
    let flags = caller.int(if call == libc::SYS_sendto { 3 } else { 2 });
    let sent = sender.send_all(before, flags, || match call {
        libc::SYS_sendto => Ok(Message {
            address: Some(address_bytes(
                caller,
                caller.argument(4),
                caller.argument(5) & 0xffff_ffff,
            )?),
            parts: vec![(caller.argument(1), caller.argument(2))],
            descriptors: Vec::new(),
        }),
        _ => sender.message(caller.argument(1)),
    })?;
    Ok(match sent {
        Progress::Done(bytes) => Sent::Answered(returned(bytes)),
        Progress::Waits(bytes) => Sent::Waits(bytes),
    })
}

fn returned(bytes: usize) -> Answer {
    Answer::Return(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// How far sending one message has come.
enum Progress {
    Done(usize),
    Waits(usize),
}

struct Sender<'a> {
    caller: &'a Caller<'a>,
    socket: &'a TakenSocket<'a>,
    /// Whether a part of a message can be sent.
    is_stream: bool,
    /// Whether it can only be sent to whom the socket is connected to.
    has_peer: bool,
    /// Whether its owner would wait.
    waits: bool,
    patience: Patience,
    reach: &'a Reach,
    watch: &'a Watch,
}

impl Sender<'_> {
    fn send_many(&self) -> Result<Sent, Errno> {
        let count = self.caller.notification.unsigned(2).min(MAX_MESSAGES);
        let mut sent = 0;
        for index in 0..count {
            let place = self.caller.argument(1) + u64::from(index) * HEADER_AND_LENGTH;
            match self.send_all(0, self.caller.int(3), || self.message(place)) {
                Ok(Progress::Done(bytes)) => {
                    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).to_ne_bytes();
                    self.caller.write(place + HEADER as u64, &bytes)?;
                    sent += 1;
                }
                // What was sent counts; the caller sends the rest again.
                Ok(Progress::Waits(_)) if sent == 0 => return Ok(Sent::Waits(0)),
                Err(error) if sent == 0 => return Err(error),
                Ok(Progress::Waits(_)) | Err(_) => break,
            }
        }
        Ok(Sent::Answered(Answer::Return(sent)))
    }

    /// Sends a message from `before` on. What is to be sent is read again each time: nothing is
    /// held while it waits, descriptors that go along least of all.
    fn send_all(
        &self,
        before: usize,
        flags: i32,
        read: impl Fn() -> Result<Message, Errno>,
    ) -> Result<Progress, Errno> {
        let asked = SendFlags::from_bits_retain(flags.cast_unsigned());
        let waits = self.waits && !asked.contains(SendFlags::DONTWAIT);
        let flags = asked & KEPT_FLAGS | SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let mut slices = Slices::of(self.socket);
        let mut sent = before;
        loop {
            let done = read().and_then(|message| self.send_part(&message, sent, flags));
            match done {
                Ok(None) => return Ok(Progress::Waits(sent)),
                Ok(Some((bytes, whole))) => {
                    sent += bytes;
                    if !waits || !self.is_stream || sent >= whole || bytes == 0 {
                        return Ok(Progress::Done(sent));
                    }
                }
                Err(Errno::AGAIN) if waits => {}
                Err(error) if sent == 0 => return Err(error),
                Err(_) => return Ok(Progress::Done(sent)),
            }
            if self.patience == Patience::None {
                return Ok(Progress::Waits(sent));
            }
            let waited = match self.has_peer {
                true => self.caller.wait_for(self.socket, &mut slices),
                // A datagram waits for the room of whoever gets it.
                false => self.caller.pause(&mut slices),
            };
            match waited {
                Ok(()) => {}
                Err(error) if sent == 0 => return Err(error),
                Err(_) => return Ok(Progress::Done(sent)),
            }
        }
    }

    /// Sends what there is to send at once: so many bytes, of so many. `None` where it first has
    /// to be found out whether it may be sent.
    fn send_part(
        &self,
        message: &Message,
        sent: usize,
        flags: SendFlags,
    ) -> Result<Option<(usize, usize)>, Errno> {
        let address = message.address.as_deref().filter(|_| !self.has_peer);
        if address.is_some() && self.patience == Patience::None {
            return Ok(None);
        }
        let whole = message.parts.iter().map(|(_, length)| *length).sum::<u64>();
        let whole = usize::try_from(whole).map_err(|_| Errno::MSGSIZE)?;
        let data = self.data(&message.parts, sent)?;
        self.caller.confirm()?;
        let descriptors = if sent == 0 {
            message.descriptors.as_slice()
        } else {
            &[]
        };
        let bytes = self.dispatch(&data, descriptors, address, flags)?;
        Ok(Some((bytes, whole)))
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
            parts: pairs,
            descriptors: match (control, control_length) {
                (0, _) | (_, 0) => Vec::new(),
                _ => self.descriptors(control, control_length)?,
            },
        })
    }

    /// The bytes of all parts behind the first ones, as far as they are taken.
    fn data(&self, parts: &[(u64, u64)], mut skipped: usize) -> Result<Vec<u8>, Errno> {
        let mut data = Vec::new();
        for (address, length) in parts {
            let length = usize::try_from(*length).map_err(|_| Errno::MSGSIZE)?;
            let start = skipped.min(length);
            skipped -= start;
            let (address, length) = (address.saturating_add(start as u64), length - start);
            let room = MAX_BYTES - data.len();
            if length > room && !self.is_stream {
                return Err(Errno::MSGSIZE);
            }
            data.extend(self.caller.bytes(address, length.min(room))?);
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

    fn dispatch(
        &self,
        data: &[u8],
        descriptors: &[OwnedFd],
        address: Option<&[u8]>,
        flags: SendFlags,
    ) -> Result<usize, Errno> {
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        let ancillary = SendAncillaryMessage::ScmRights(&descriptors);
        let mut space = vec![MaybeUninit::uninit(); ancillary.size()];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(ancillary) {
            return Err(Errno::INVAL);
        }
        let part = [IoSlice::new(data)];
        let Some(bytes) = address else {
            return sendmsg(self.socket, &part, &mut control, flags);
        };
        claim_datagrams(self.socket, self.reach)?;
        let purpose = Purpose::Send;
        let (reach, watch) = (self.reach, self.watch);
        match destination(self.caller, self.socket, bytes, purpose, reach, watch)? {
            Destination::Internet(route) => {
                let first = route.addresses.iter().find_map(|address| {
                    for_socket(self.socket, std::net::SocketAddr::new(*address, route.port))
                });
                let first = first.ok_or(Errno::NETUNREACH)?;
                let sent = sendmsg_addr(self.socket, &first, &part, &mut control, flags)?;
                if let Some(label) = route.label {
                    watch.reach_host(label);
                }
                Ok(sent)
            }
            Destination::NameServer(server) => {
                let server = for_socket(self.socket, server).ok_or(Errno::NETUNREACH)?;
                sendmsg_addr(self.socket, &server, &part, &mut control, flags)
            }
            Destination::File(file) => sendmsg_addr(
                self.socket,
                &unix_address(&file)?,
                &part,
                &mut control,
                flags,
            ),
            Destination::Abstract(name) => {
                let address = SocketAddrUnix::new_abstract_name(&name)?;
                sendmsg_addr(self.socket, &address, &part, &mut control, flags)
            }
            Destination::Netlink if only_asks(self.socket, data) => {
                sendmsg(self.socket, &part, &mut control, flags)
            }
            Destination::Netlink => Err(Errno::PERM),
            Destination::Unspecified => Err(Errno::DESTADDRREQ),
        }
    }
}

/// Whether a message to the kernel's tables asks, and changes nothing: every fourth kind does.
fn only_asks(socket: impl AsFd, data: &[u8]) -> bool {
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
