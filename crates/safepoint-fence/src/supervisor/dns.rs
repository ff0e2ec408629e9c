//! Answers to what programs ask a name server, over UDP.
//!
//! Every name has an address here: a placeholder. Only where a rule names the host it is looked
//! up for real, so that one that does not exist is told as that. No question leaves the machine.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::names::{Names, Placeholder};
use super::rule::normalise_name;

const HEADER_BYTES: usize = 12;
/// Questions are no larger.
const MAX_BYTES: usize = 4096;

const TYPE_ADDRESS: u16 = 1;
const TYPE_ADDRESS_SIX: u16 = 28;
const CLASS_INTERNET: u16 = 1;
/// A response to a recursive question, which recursion is available for.
const RESPONSE: u16 = 0x8180;
const NO_SUCH_NAME: u16 = 3;
const NOT_UNDERSTOOD: u16 = 1;
const FAILED: u16 = 2;
/// Programs ask again soon.
const SECONDS_TO_LIVE: u32 = 1;
/// The name stands behind the header.
const NAME_OF_QUESTION: u16 = 0xC00C;

/// More names are not looked up at once.
const MAX_LOOK_UPS: usize = 8;
/// So often is looked whether anybody is left to ask.
const PATIENCE: Duration = Duration::from_millis(500);

/// The name server of one supervised tree. It ends soon after this is dropped.
#[derive(Debug)]
pub(super) struct NameServer {
    address: SocketAddr,
    _needed: Arc<()>,
}

/// Which names are looked up for real.
pub(super) type IsNamed = dyn Fn(&str) -> bool + Send + Sync;

impl NameServer {
    pub(super) fn start(names: Arc<Names>, is_named: Arc<IsNamed>) -> std::io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let address = socket.local_addr()?;
        let needed = Arc::new(());
        let still = Arc::downgrade(&needed);
        thread::Builder::new()
            .name("name server".to_owned())
            .spawn(move || serve(&socket, &names, &is_named, &still))?;
        Ok(Self {
            address,
            _needed: needed,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn serve(socket: &UdpSocket, names: &Arc<Names>, is_named: &Arc<IsNamed>, still_needed: &Weak<()>) {
    let mut buffer = vec![0; MAX_BYTES];
    let under_way = Arc::new(());
    while still_needed.strong_count() > 0 {
        // Nobody has asked meanwhile, or somebody who is gone.
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let bytes = buffer.get(..length).unwrap_or_default();
        let question = Question::read(bytes);
        let name = question.as_ref().and_then(Question::name);
        let answer = match name.filter(|name| is_named(name)) {
            None => answer(bytes, names, Existence::Assumed),
            // Whoever asks will ask again.
            Some(_) if Arc::strong_count(&under_way) > MAX_LOOK_UPS => None,
            Some(_) => {
                look_up(socket, from, bytes, names, Arc::clone(&under_way));
                None
            }
        };
        if let Some(answer) = answer {
            let _ = socket.send_to(&answer, from);
        }
    }
}

/// Looking up takes its time: others are answered meanwhile.
fn look_up(
    socket: &UdpSocket,
    from: SocketAddr,
    bytes: &[u8],
    names: &Arc<Names>,
    under_way: Arc<()>,
) {
    let Ok(socket) = socket.try_clone() else {
        return;
    };
    let (names, bytes) = (Arc::clone(names), bytes.to_vec());
    let work = move || {
        if let Some(answer) = answer(&bytes, &names, Existence::LookedUp) {
            let _ = socket.send_to(&answer, from);
        }
        drop(under_way);
    };
    let _ = thread::Builder::new()
        .name("look-up".to_owned())
        .spawn(work);
}

/// Whether a name is taken to exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Existence {
    Assumed,
    LookedUp,
}

struct Question<'a> {
    identifier: [u8; 2],
    labels: Vec<&'a [u8]>,
    kind: u16,
    class: u16,
    /// As it came.
    bytes: &'a [u8],
}

impl<'a> Question<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        let [a, b, flags, _, questions @ ..] = header else {
            return None;
        };
        // A question, and one of them.
        if flags & 0xf8 != 0 || questions.get(..2)? != [0, 1] {
            return None;
        }
        let mut labels = Vec::new();
        let mut at = HEADER_BYTES;
        loop {
            let length = usize::from(*bytes.get(at)?);
            at += 1;
            match length {
                0 => break,
                1..=63 => labels.push(bytes.get(at..at + length)?),
                _ => return None,
            }
            at += length;
        }
        Some(Self {
            identifier: [*a, *b],
            labels,
            kind: word(bytes, at)?,
            class: word(bytes, at + 2)?,
            bytes: bytes.get(HEADER_BYTES..at + 4)?,
        })
    }

    fn name(&self) -> Option<String> {
        let labels: Vec<&str> = self
            .labels
            .iter()
            .map(|label| std::str::from_utf8(label).ok())
            .collect::<Option<_>>()?;
        normalise_name(&labels.join("."))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The answer to a question. `None` where it is none.
fn answer(bytes: &[u8], names: &Names, existence: Existence) -> Option<Vec<u8>> {
    let Some(question) = Question::read(bytes) else {
        let identifier = bytes.get(..2)?.try_into().ok()?;
        return Some(response(identifier, NOT_UNDERSTOOD, &[], &[]));
    };
    let reply =
        |code, record: &[u8]| Some(response(question.identifier, code, question.bytes, record));
    let Some(name) = question.name().filter(|_| question.class == CLASS_INTERNET) else {
        return reply(NO_SUCH_NAME, &[]);
    };
    if existence == Existence::LookedUp && names.addresses(&name).is_empty() {
        return reply(NO_SUCH_NAME, &[]);
    }
    let address = |placeholder: Placeholder| match question.kind {
        TYPE_ADDRESS => Some(placeholder.four().octets().to_vec()),
        TYPE_ADDRESS_SIX => Some(placeholder.six().octets().to_vec()),
        _ => None,
    };
    let Some(placeholder) = names.placeholder(&name) else {
        return reply(FAILED, &[]);
    };
    match address(placeholder) {
        Some(address) => reply(0, &record(question.kind, &address)),
        // It has nothing else.
        None => reply(0, &[]),
    }
}

fn record(kind: u16, address: &[u8]) -> Vec<u8> {
    let length = u16::try_from(address.len()).unwrap_or_default();
    let mut bytes = Vec::new();
    bytes.extend(NAME_OF_QUESTION.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(CLASS_INTERNET.to_be_bytes());
    bytes.extend(SECONDS_TO_LIVE.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(address);
    bytes
}

fn response(identifier: [u8; 2], code: u16, question: &[u8], record: &[u8]) -> Vec<u8> {
    let count = |bytes: &[u8]| u16::from(!bytes.is_empty()).to_be_bytes();
    let mut bytes = Vec::new();
    bytes.extend(identifier);
    bytes.extend((RESPONSE | code).to_be_bytes());
    bytes.extend(count(question));
    bytes.extend(count(record));
    bytes.extend([0; 4]);
    bytes.extend(question);
    bytes.extend(record);
    bytes
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::names::Lookup;
    use super::*;

    #[derive(Debug)]
    struct OnlyOne;

    impl Lookup for OnlyOne {
        fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
            match name {
                "there.example" => Ok(vec!["192.0.2.7".parse().unwrap()]),
                _ => Err(std::io::Error::other("no such name")),
            }
        }
    }

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut bytes = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(u8::try_from(label.len()).unwrap());
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(CLASS_INTERNET.to_be_bytes());
        bytes
    }

    fn code(answer: &[u8]) -> u8 {
        answer[3] & 15
    }

    #[test]
    fn fe_11_names_get_placeholders_and_nothing_else() {
        let names = Names::new(Box::new(OnlyOne));
        let asked = question("a.example", TYPE_ADDRESS);
        let told = answer(&asked, &names, Existence::Assumed).unwrap();
        assert_eq!(told[..2], [7, 9]);
        assert_eq!((code(&told), told[5], told[7]), (0, 1, 1));
        assert_eq!(told[told.len() - 4..], [198, 18, 0, 1]);
        let asked = question("a.example", 65);
        let told = answer(&asked, &names, Existence::Assumed).unwrap();
        assert_eq!((code(&told), told[7]), (0, 0));
        for wrong in [&b"\x01\x02"[..], &[0; 40], &asked[..20]] {
            let told = answer(wrong, &names, Existence::Assumed).unwrap();
            assert_eq!(code(&told), 1);
        }
    }

    #[test]
    fn fe_11_a_named_host_that_does_not_resolve_is_told_as_that() {
        let names = Names::new(Box::new(OnlyOne));
        let told = |name| {
            let asked = question(name, TYPE_ADDRESS);
            code(&answer(&asked, &names, Existence::LookedUp).unwrap())
        };
        assert_eq!(told("there.example"), 0);
        assert_eq!(told("elsewhere.example"), 3);
    }

    #[test]
    fn fe_11_the_name_server_answers_over_udp() {
        let names = Arc::new(Names::new(Box::new(OnlyOne)));
        let is_named: Arc<IsNamed> = Arc::new(|name: &str| name.ends_with("here.example"));
        let server = NameServer::start(names, is_named).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.address()).unwrap();
        for (name, expected) in [
            ("x.example", 0),
            ("there.example", 0),
            ("nothere.example", 3),
        ] {
            socket.send(&question(name, TYPE_ADDRESS)).unwrap();
            let mut buffer = [0; 512];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(code(&buffer[..length]), expected, "{name}");
        }
    }
}
