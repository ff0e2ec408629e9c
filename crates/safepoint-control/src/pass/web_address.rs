//! Where a client's own web tool would go. It asks from the client's process, outside every fence,
//! so what it is given has to lead to the public network by what it says.

use safepoint_fence::HostRule;

use super::fetching::PRIVATE_SUFFIXES;

/// Whether an address of the web names a host of the public network. Names are not looked up.
pub(super) fn is_public_address(url: &str) -> bool {
    let url = url.trim();
    let rest = match url.split_once("://") {
        Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => rest,
            _ => return false,
        },
        // Clients take it for one of `https`.
        None => url,
    };
    // Programs of the web take both for the end of a host.
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, it)| it);
    is_public_host(host)
}

/// The same of a host, with a port or without.
fn is_public_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, "*"),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    // Other spellings of a host are somebody else's to understand.
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.[]:".contains(it);
    if !name.chars().all(is_plain) {
        return false;
    }
    let port = match port {
        "" => "*",
        port => port,
    };
    let Ok(rule) = format!("{name}:{port}").parse::<HostRule>() else {
        return false;
    };
    rule.is_public() && rule.name().is_none_or(is_public_name)
}

/// Whether a name is one of the public network, and no other way to write an address.
fn is_public_name(name: &str) -> bool {
    let Some((_, last)) = name.rsplit_once('.') else {
        return false;
    };
    let is_number = last.starts_with("0x") || last.chars().all(|it| it.is_ascii_digit());
    !is_number && !PRIVATE_SUFFIXES.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::is_public_address;

    #[test]
    fn fe_11_a_web_tool_is_asked_about_what_is_not_public() {
        for url in [
            "https://example.org/a?b#c",
            "http://example.org:8080",
            "HTTPS://Example.ORG./",
            "example.org/page",
            "https://user@example.org/",
            "https://93.184.215.14/",
            "https://[2606:2800:21f::1]/",
        ] {
            assert!(is_public_address(url), "{url}");
        }
        for url in [
            "http://127.0.0.1:9200/idx/_delete",
            "http://localhost:8080/shutdown",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://169.254.169.254/latest/meta-data/iam",
            "http://192.168.1.1/reboot",
            "http://10.0.0.1",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://127.1/",
            "http://0177.0.0.1/",
            "http://example.org@127.0.0.1/",
            "http://127.0.0.1\\@example.org/",
            "http://127.0.0.1#@example.org/",
            "http://printer/",
            "http://nas.local/",
            "http://metadata.google.internal/",
            "http://%31%32%37.0.0.1/",
            "http://１２７.0.0.1/",
            "http://*.example.org/",
            "file:///etc/passwd",
            "ftp://example.org/",
            "data:text/html,x",
            "",
        ] {
            assert!(!is_public_address(url), "{url}");
        }
    }
}
