//! What a supervised tree may reach, decided for one address at a time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::fstat;
use rustix::io::Errno;

use super::address::{is_local, is_public, join_port, unfold};
use super::dns::{IsNamed, NameServer};
use super::names::{Lookup, Names};
use super::registry::Registry;
use super::sockets::{SocketList, Transport, UnixPlace};
use super::watch::Watch;
use super::{HostRule, Refusal, Supervision};

/// Sockets with which programs only ask the system about names and users. They go another way
/// where nobody answers, so that refusing them is nobody's concern.
const ASKED_IN_PASSING: [&str; 4] = [
    "/run/nscd",
    "/run/systemd/resolve",
    "/run/systemd/userdb",
    "/run/systemd/journal",
];

/// The rules of a supervised tree, and what they need to be applied.
#[derive(Debug)]
pub(super) struct Reach {
    rules: Supervision,
    names: Arc<Names>,
    server: Mutex<Option<NameServer>>,
    pub(super) registry: Registry,
    sockets: SocketList,
    watch: Arc<Watch>,
}

/// Something that may be dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// The addresses, best first.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) port: u16,
    /// What is recorded once it is reached. Nothing where it belongs to the session.
    pub(super) label: Option<String>,
}

/// Why an address is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Something is sent there.
    Send,
    /// A datagram socket is connected: resolvers do that to find out which address they would
    /// send from, and send nothing.
    Probe,
}

impl Reach {
    pub(super) fn new(rules: Supervision, lookup: Box<dyn Lookup>, watch: Arc<Watch>) -> Self {
        let sockets = rules.sockets.iter();
        let sockets = sockets.map(|it| it.canonicalize().unwrap_or_else(|_| it.clone()));
        let registry = Registry::new(rules.registry.clone());
        Self {
            rules: Supervision {
                sockets: sockets.collect(),
                ..rules
            },
            names: Arc::new(Names::new(lookup)),
            server: Mutex::default(),
            registry,
            sockets: SocketList::default(),
            watch,
        }
    }

    /// Where to dial for an address that the caller gave, if it may.
    pub(super) fn route(
        &self,
        transport: Transport,
        address: SocketAddr,
        purpose: Purpose,
    ) -> Result<Route, Errno> {
        match self.names.name_of(address.ip()) {
            Some(name) => self.route_to_name(transport, &name, address.port(), purpose),
            None => self.route_to_address(transport, unfold(address.ip()), address.port()),
        }
    }

    fn route_to_name(
        &self,
        transport: Transport,
        name: &str,
        port: u16,
        purpose: Purpose,
    ) -> Result<Route, Errno> {
        let is_meant = |rules: &[HostRule]| {
            let mut rules = rules.iter();
            rules.any(|rule| rule.includes_name(name) && rule.includes_port(port))
        };
        let label = format!("{name}:{port}");
        if is_meant(&self.rules.services) {
            return self.dial(self.names.addresses(name), port, label);
        }
        if !is_meant(&self.rules.hosts) {
            if purpose == Purpose::Probe {
                return Err(Errno::ACCESS);
            }
            if !self.watch.admit(Refusal::Host(label.clone())) {
                return Err(Errno::ACCESS);
            }
        }
        let found = self.names.addresses(name);
        let public: Vec<IpAddr> = found.iter().copied().filter(|it| is_public(*it)).collect();
        match (public.is_empty(), found.first()) {
            // A name says nothing about machines that are not public: the address must be named.
            (true, Some(address)) => self.route_to_address(transport, unfold(*address), port),
            _ => self.dial(public, port, label),
        }
    }

    fn route_to_address(
        &self,
        transport: Transport,
        address: IpAddr,
        port: u16,
    ) -> Result<Route, Errno> {
        if is_local(address) {
            let cookies = self.sockets.listeners(transport, address, port)?;
            if cookies.is_empty() {
                return Err(Errno::CONNREFUSED);
            }
            if self.registry.has_all(&cookies) {
                return Ok(Route {
                    addresses: vec![address],
                    port,
                    label: None,
                });
            }
        }
        let label = match self.label_of(address, port) {
            Some(label) => label,
            None => {
                let label = join_port(address, port);
                if !self.watch.admit(Refusal::Host(label.clone())) {
                    return Err(Errno::ACCESS);
                }
                label
            }
        };
        self.dial(vec![address], port, label)
    }

    /// Whether what answers at an address of this machine is still the session's own.
    pub(super) fn is_own(&self, transport: Transport, address: IpAddr, port: u16) -> bool {
        let cookies = self
            .sockets
            .listeners(transport, address, port)
            .unwrap_or_default();
        cookies.is_empty() || self.registry.has_all(&cookies)
    }

    /// Refuses to bind where somebody else has a socket.
    pub(super) fn refuse_foreign(
        &self,
        transport: Transport,
        address: IpAddr,
        port: u16,
    ) -> Result<(), Errno> {
        let cookies = self.sockets.listeners(transport, address, port)?;
        match cookies.is_empty() || self.registry.has_all(&cookies) {
            true => Ok(()),
            false => Err(Errno::ADDRINUSE),
        }
    }

    /// The name under which a rule allows an address.
    fn label_of(&self, address: IpAddr, port: u16) -> Option<String> {
        let rules = |rules: &'_ [HostRule]| -> Vec<HostRule> {
            let meant = rules.iter().filter(|rule| rule.includes_port(port));
            meant.cloned().collect()
        };
        let (hosts, services) = (rules(&self.rules.hosts), rules(&self.rules.services));
        if hosts
            .iter()
            .chain(&services)
            .any(|it| it.includes_address(address))
        {
            return Some(join_port(address, port));
        }
        let leads_here = |rule: &&HostRule| {
            let found = rule.name().map(|name| self.names.addresses(name));
            found.is_some_and(|found| found.iter().any(|it| same_host(*it, address)))
        };
        let host = hosts.iter().filter(|_| is_public(address)).find(leads_here);
        let rule = host.or_else(|| services.iter().find(leads_here))?;
        rule.name().map(|name| format!("{name}:{port}"))
    }

    fn dial(&self, addresses: Vec<IpAddr>, port: u16, label: String) -> Result<Route, Errno> {
        match addresses.is_empty() {
            true => Err(Errno::HOSTUNREACH),
            false => Ok(Route {
                addresses,
                port,
                label: Some(label),
            }),
        }
    }

    /// Whether this address is one that nothing but the rules open: a name server of the system
    /// is replaced by ours.
    pub(super) fn replaces_name_server(&self, address: SocketAddr) -> bool {
        const NAME_SERVERS: u16 = 53;
        address.port() == NAME_SERVERS
            && self.label_of(unfold(address.ip()), NAME_SERVERS).is_none()
            && !(is_local(address.ip()) && {
                let address = unfold(address.ip());
                let cookies = self
                    .sockets
                    .listeners(Transport::Udp, address, NAME_SERVERS);
                self.registry.has_all(&cookies.unwrap_or_default())
            })
    }

    /// The name server of the tree, started when it is first asked.
    pub(super) fn name_server(&self) -> Result<SocketAddr, Errno> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = &*server {
            return Ok(server.address());
        }
        let rules: Vec<HostRule> = self
            .rules
            .hosts
            .iter()
            .chain(&self.rules.services)
            .cloned()
            .collect();
        let is_named: Arc<IsNamed> =
            Arc::new(move |name: &str| rules.iter().any(|rule| rule.includes_name(name)));
        let started = NameServer::start(Arc::clone(&self.names), is_named);
        let started = started.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let address = started.address();
        *server = Some(started);
        Ok(address)
    }

    /// Whether a socket file may be reached, and what is recorded then.
    pub(super) fn socket_file(
        &self,
        file: impl std::os::fd::AsFd,
        path: PathBuf,
    ) -> Result<Option<PathBuf>, Errno> {
        let status = fstat(file)?;
        let cookies = self
            .sockets
            .unix_listeners(UnixPlace::File(status.st_dev, status.st_ino))?;
        if cookies.is_empty() {
            return Err(Errno::CONNREFUSED);
        }
        if self.registry.has_all(&cookies) {
            return Ok(None);
        }
        if self.rules.sockets.contains(&path) {
            return Ok(Some(path));
        }
        if ASKED_IN_PASSING.iter().any(|place| path.starts_with(place)) {
            return Err(Errno::CONNREFUSED);
        }
        match self.watch.admit(Refusal::Socket(path.clone())) {
            true => Ok(Some(path)),
            false => Err(Errno::ACCESS),
        }
    }

    /// Whether an abstract socket may be reached, and what is recorded then.
    pub(super) fn abstract_socket(&self, name: &[u8]) -> Result<Option<PathBuf>, Errno> {
        let mut kernel_name = vec![0];
        kernel_name.extend(name);
        let cookies = self.sockets.unix_listeners(UnixPlace::Name(&kernel_name))?;
        if cookies.is_empty() {
            return Err(Errno::CONNREFUSED);
        }
        if self.registry.has_all(&cookies) {
            return Ok(None);
        }
        let label = PathBuf::from(format!("@{}", String::from_utf8_lossy(name)));
        if self.rules.sockets.contains(&label) {
            return Ok(Some(label));
        }
        match self.watch.admit(Refusal::Socket(label.clone())) {
            true => Ok(Some(label)),
            false => Err(Errno::ACCESS),
        }
    }
}

/// Whether two addresses are the same machine. No address, and any of loopback, is this one.
fn same_host(one: IpAddr, other: IpAddr) -> bool {
    let (one, other) = (unfold(one), unfold(other));
    let this = IpAddr::V4(Ipv4Addr::LOCALHOST);
    one == other
        || is_local(one)
            && is_local(other)
            && (one == this || other == this || one.is_loopback() && other.is_loopback())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::path::Path;

    use super::super::{Gate, GuardedNames, NetworkAccess, WriteAccess};
    use super::*;

    #[derive(Debug)]
    struct Book;

    impl Lookup for Book {
        fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
            let found: &[&str] = match name {
                "public.example" => &["93.184.215.14", "10.0.0.1"],
                "inward.example" => &["127.0.0.1"],
                "metadata.example" => &["::ffff:169.254.169.254"],
                "localhost" => &["::1", "127.0.0.1"],
                _ => &[],
            };
            Ok(found.iter().map(|it| it.parse().unwrap()).collect())
        }
    }

    #[derive(Debug)]
    struct Open(&'static str);

    impl Gate for Open {
        fn admit(&self, wanted: &Refusal) -> bool {
            *wanted == Refusal::Host(self.0.to_owned())
        }
        fn write_access(&self, _: &Path) -> WriteAccess {
            WriteAccess::Kernel
        }
    }

    fn reach(hosts: &[&str], services: &[&str], gate: Option<&'static str>) -> Reach {
        let rules = |texts: &[&str]| texts.iter().map(|it| it.parse().unwrap()).collect();
        let gate = gate.map(|host| Arc::new(Open(host)) as Arc<dyn Gate>);
        let supervision = Supervision {
            hosts: rules(hosts),
            services: rules(services),
            sockets: Vec::new(),
            registry: "/nowhere/at/all".into(),
            freezer: None,
            journal: None,
            guarded: GuardedNames::default(),
            network: NetworkAccess::Closed,
        };
        Reach::new(
            supervision,
            Box::new(Book),
            Arc::new(Watch::new(gate, None, GuardedNames::default())),
        )
    }

    fn to_name(reach: &Reach, name: &str, port: u16) -> Result<Vec<String>, Errno> {
        let placeholder = reach.names.placeholder(name).unwrap();
        let address = SocketAddr::new(placeholder.four().into(), port);
        let route = reach.route(Transport::Tcp, address, Purpose::Send)?;
        Ok(route.addresses.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn fe_11_an_allowed_name_leads_to_its_public_addresses_alone() {
        let reach = reach(&["*.example:443"], &[], None);
        assert_eq!(
            to_name(&reach, "public.example", 443),
            Ok(vec!["93.184.215.14".to_owned()])
        );
        assert_eq!(to_name(&reach, "public.example", 80), Err(Errno::ACCESS));
        assert_eq!(to_name(&reach, "metadata.example", 443), Err(Errno::ACCESS));
        assert_eq!(
            to_name(&reach, "absent.example", 443),
            Err(Errno::HOSTUNREACH)
        );
        let refused = reach.watch.seen().refused;
        let host = |text: &str| Refusal::Host(text.to_owned());
        assert!(
            refused.contains(&host("169.254.169.254:443")),
            "{refused:?}"
        );
        assert!(refused.contains(&host("public.example:80")), "{refused:?}");
    }

    #[test]
    fn fe_11_an_allowed_name_that_leads_to_loopback_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let allowed = reach(&["inward.example:*"], &[], None);
        assert_eq!(
            to_name(&allowed, "inward.example", port),
            Err(Errno::ACCESS)
        );
        let named = reach(&[], &["inward.example:*"], None);
        assert!(to_name(&named, "inward.example", port).is_ok());
    }

    #[test]
    fn fe_12_services_of_this_machine_are_reached_only_when_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let port = address.port();
        let dial = |reach: &Reach| reach.route(Transport::Tcp, address, Purpose::Send);
        let closed = reach(&["127.0.0.2:*"], &[], None);
        assert_eq!(dial(&closed), Err(Errno::ACCESS));
        for service in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
            let route = dial(&reach(&[], &[&service], None)).unwrap();
            assert_eq!(route.label, Some(service));
        }
        // What the session has bound is its own.
        let socket = rustix::net::sockopt::socket_cookie(&listener).unwrap();
        let own = tempfile::tempdir().unwrap();
        let mut mine = reach(&[], &[], None);
        mine.registry = Registry::new(own.path().to_owned());
        mine.registry.add(socket).unwrap();
        assert_eq!(dial(&mine).unwrap().label, None);
        drop(listener);
        assert_eq!(dial(&closed), Err(Errno::CONNREFUSED));
    }

    #[test]
    fn fe_16_what_no_rule_names_is_asked_about() {
        let reach = reach(&[], &[], Some("public.example:443"));
        assert!(to_name(&reach, "public.example", 443).is_ok());
        assert_eq!(to_name(&reach, "public.example", 80), Err(Errno::ACCESS));
        let refused = reach.watch.seen().refused;
        assert_eq!(
            refused,
            [Refusal::Host("public.example:80".to_owned())].into()
        );
    }

    #[test]
    fn fe_11_name_servers_of_the_system_are_replaced_unless_they_are_named() {
        let server: SocketAddr = "127.0.0.53:53".parse().unwrap();
        assert!(reach(&[], &[], None).replaces_name_server(server));
        assert!(!reach(&[], &["127.0.0.53:53"], None).replaces_name_server(server));
        let other: SocketAddr = "127.0.0.53:54".parse().unwrap();
        assert!(!reach(&[], &[], None).replaces_name_server(other));
        let started = reach(&[], &[], None).name_server().unwrap();
        assert!(
            UdpSocket::bind("127.0.0.1:0")
                .unwrap()
                .connect(started)
                .is_ok()
        );
    }
}
