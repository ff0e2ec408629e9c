//! Addresses of hosts: which one is really meant, and where it leads.
//!
//! Nothing here decides; it only says what an address is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address that is really dialled: an IPv4 address that is folded into an
/// IPv6 one (mapped, compatible, NAT64, 6to4) is taken out of it.
pub(super) fn unfold(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else {
        return address;
    };
    let folded = |bytes: [u8; 4]| IpAddr::V4(Ipv4Addr::from(bytes));
    match six.octets() {
        // ::ffff:a.b.c.d, and ::a.b.c.d but for :: and ::1.
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => folded([a, b, c, d]),
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] if six.segments()[6] != 0 => {
            folded([a, b, c, d])
        }
        // 64:ff9b::a.b.c.d
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => folded([a, b, c, d]),
        // 2002:a.b.c.d::
        [0x20, 0x02, a, b, c, d, ..] => folded([a, b, c, d]),
        _ => address,
    }
}

/// Does the address lead to this machine itself? The unspecified address does.
pub(super) fn is_local(address: IpAddr) -> bool {
    let address = unfold(address);
    let is_zero_network = matches!(address, IpAddr::V4(four) if four.octets()[0] == 0);
    address.is_loopback() || address.is_unspecified() || is_zero_network
}

/// Does the address lead to the public network? An allowed name is dialled only there.
pub(super) fn is_public(address: IpAddr) -> bool {
    match unfold(address) {
        IpAddr::V4(four) => is_public_four(four),
        IpAddr::V6(six) => is_public_six(six),
    }
}

fn is_public_four(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b)) // shared by providers; a metadata service too
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99) // relays of 6to4
        || (a == 198 && (18..20).contains(&b)); // benchmarks, and our own placeholders
    !(is_special
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast())
}

fn is_public_six(address: Ipv6Addr) -> bool {
    let first = address.segments()[0];
    // Only 2000::/3 is given out. Of that, 2001::/23 is special (Teredo too),
    // and 2001:db8::/32 and 3fff::/20 are for documents.
    let second = address.segments()[1];
    let is_special = match first {
        0x2001 => second < 0x0200 || second == 0x0db8,
        0x3fff => second < 0x1000,
        _ => false,
    };
    first & 0xe000 == 0x2000 && !is_special
}

/// A host and a port, as they are written: IPv6 addresses stand in brackets.
pub(super) fn join_port(address: IpAddr, port: u16) -> String {
    match address {
        IpAddr::V4(four) => format!("{four}:{port}"),
        IpAddr::V6(six) => format!("[{six}]:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn fe_11_addresses_are_unfolded() {
        for folded in [
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:a00:1::1",
            "10.0.0.1",
        ] {
            assert_eq!(unfold(address(folded)), address("10.0.0.1"), "{folded}");
            assert!(!is_public(address(folded)), "{folded}");
        }
        assert_eq!(unfold(address("::1")), address("::1"));
        assert_eq!(unfold(address("::")), address("::"));
    }

    #[test]
    fn fe_11_what_is_not_public_is_told_from_what_is() {
        for local in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "::1",
            "::",
            "::ffff:0.0.0.0",
        ] {
            assert!(is_local(address(local)), "{local}");
            assert!(!is_public(address(local)), "{local}");
        }
        for closed in [
            "169.254.169.254",
            "100.100.100.200",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
            "fc00::1",
            "2001:db8::1",
            "2001::1",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::",
        ] {
            assert!(!is_public(address(closed)), "{closed}");
            assert!(!is_local(address(closed)), "{closed}");
        }
        for open in [
            "1.1.1.1",
            "93.184.215.14",
            "2606:4700::1111",
            "64:ff9b::1.1.1.1",
        ] {
            assert!(is_public(address(open)), "{open}");
        }
    }
}
