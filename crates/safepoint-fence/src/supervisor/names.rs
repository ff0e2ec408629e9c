//! Names of hosts. A supervised tree gets a placeholder for each name that it looks up, and the
//! name itself is looked up by us, once, when it may be dialled. So what was checked is what is
//! dialled, and looking a name up tells nobody anything.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// 198.18.0.0/15 is set aside for benchmarks: nothing in any network has such an address.
const FIRST: u32 = 0xC612_0001;
const LAST: u32 = 0xC613_FFFE;
/// A prefix of our own for the same in IPv6, unique and local.
const PREFIX: [u8; 12] = [
    0xfd, 0x5a, 0xfe, 0x50, 0x1f, 0x7e, 0x91, 0x30, 0x4d, 0xa2, 0, 0,
];

/// Looks names up.
pub(crate) trait Lookup: std::fmt::Debug + Send + Sync {
    /// The addresses of a name, as this machine finds them.
    fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// The resolver of this machine.
#[derive(Debug)]
pub(crate) struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        let found = (name, 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// The names of one supervised tree.
#[derive(Debug)]
pub(super) struct Names {
    known: Mutex<Known>,
    lookup: Box<dyn Lookup>,
}

#[derive(Debug, Default)]
struct Known {
    placeholders: BTreeMap<String, u32>,
    names: BTreeMap<u32, String>,
    addresses: BTreeMap<String, Vec<IpAddr>>,
}

impl Names {
    pub(super) fn new(lookup: Box<dyn Lookup>) -> Self {
        Self {
            known: Mutex::default(),
            lookup,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The placeholder of a name, which is the same each time. `None` when there are no more.
    pub(super) fn placeholder(&self, name: &str) -> Option<Placeholder> {
        let mut known = self.lock();
        if let Some(number) = known.placeholders.get(name) {
            return Some(Placeholder(*number));
        }
        let number = FIRST.checked_add(u32::try_from(known.names.len()).ok()?)?;
        if number > LAST {
            return None;
        }
        known.placeholders.insert(name.to_owned(), number);
        known.names.insert(number, name.to_owned());
        Some(Placeholder(number))
    }

    /// The name that an address stands for.
    pub(super) fn name_of(&self, address: IpAddr) -> Option<String> {
        let number = Placeholder::number_of(address)?;
        self.lock().names.get(&number).cloned()
    }

    /// The addresses of a name: those that were found when it was looked up first.
    pub(super) fn addresses(&self, name: &str) -> Vec<IpAddr> {
        if let Some(found) = self.lock().addresses.get(name) {
            return found.clone();
        }
        // Others are answered meanwhile.
        let found = self.lookup.addresses(name).unwrap_or_default();
        if found.is_empty() {
            // It may be there later.
            return found;
        }
        let mut known = self.lock();
        let kept = known.addresses.entry(name.to_owned());
        kept.or_insert(found).clone()
    }
}

/// What stands for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placeholder(u32);

impl Placeholder {
    pub(super) fn four(self) -> Ipv4Addr {
        Ipv4Addr::from(self.0)
    }

    pub(super) fn six(self) -> Ipv6Addr {
        let mut bytes = [0; 16];
        let parts = PREFIX.iter().copied().chain(self.0.to_be_bytes());
        for (byte, part) in bytes.iter_mut().zip(parts) {
            *byte = part;
        }
        Ipv6Addr::from(bytes)
    }

    fn number_of(address: IpAddr) -> Option<u32> {
        match super::address::unfold(address) {
            IpAddr::V4(four) => Some(u32::from(four)),
            IpAddr::V6(six) => {
                let [prefix @ .., a, b, c, d] = six.octets();
                (prefix == PREFIX).then(|| u32::from_be_bytes([a, b, c, d]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed;

    impl Lookup for Fixed {
        fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
            match name {
                "there.example" => Ok(vec!["192.0.2.7".parse().unwrap()]),
                _ => Ok(Vec::new()),
            }
        }
    }

    #[test]
    fn fe_11_each_name_has_one_placeholder() {
        let names = Names::new(Box::new(Fixed));
        let one = names.placeholder("a.example").unwrap();
        let other = names.placeholder("b.example").unwrap();
        assert_eq!(one.four().to_string(), "198.18.0.1");
        assert_ne!(one, other);
        assert_eq!(names.placeholder("a.example"), Some(one));
        for address in [IpAddr::V4(one.four()), IpAddr::V6(one.six())] {
            assert_eq!(names.name_of(address).as_deref(), Some("a.example"));
        }
        assert_eq!(names.name_of("198.18.0.9".parse().unwrap()), None);
        assert_eq!(names.name_of("fd5a:fe50::1".parse().unwrap()), None);
        assert_eq!(names.addresses("there.example").len(), 1);
        assert_eq!(names.addresses("elsewhere.example").len(), 0);
    }
}
