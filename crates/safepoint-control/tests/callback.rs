//! Asking stewards' services over HTTPS: what passes, and everything that does not.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail loudly"
)]

mod support;

use rcgen::CertificateParams;
use safepoint_control::{Caller, Https, HttpsError, NoCaller};
use safepoint_gates::sandbox::Said;
use safepoint_gates::{Callback, Decision};
use safepoint_model::Digest;
use serde_json::json;
use support::{Answer, Server, control, recorded, start, trusting};
use testkit::on_every_store;

fn callback(url: &str) -> Callback {
    Callback {
        key: Digest::of_parts(&[b"test"]),
        url: url.to_owned(),
        timeout_ms: 60_000,
        allow_private_addresses: true,
        input: json!({"b": "TICKET-1", "a": {"z": 1, "y": [true]}}),
    }
}

fn asked(answer: Answer) -> Result<Said, String> {
    let server = Server::new([answer]);
    trusting(&server).call(&callback(&server.url("/check?token=hunter22")))
}

/// The reason, which never tells the address.
fn refused(answer: Answer) -> String {
    let reason = asked(answer).unwrap_err();
    assert!(
        !reason.contains("hunter22") && !reason.contains("localhost"),
        "{reason}"
    );
    reason
}

#[test]
fn ga_15_a_service_is_asked_with_json_and_says_yes_or_no() {
    let server = Server::new([
        Answer::json(r#"{"valid": true}"#),
        Answer::json(r#"{"valid": false, "message": "name a ticket"}"#),
    ]);
    let https = trusting(&server);
    let callback = callback(&server.url("/check?x=1"));
    let said = https.call(&callback).unwrap();
    assert_eq!(
        said,
        Said {
            yes: true,
            ..Said::default()
        }
    );
    let said = https.call(&callback).unwrap();
    assert!(!said.yes);
    assert_eq!(said.message.as_deref(), Some("name a ticket"));

    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("post /check?x=1 http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(head.contains("user-agent: safepoint/"), "{head}");
    assert_eq!(body, r#"{"a":{"y":[true],"z":1},"b":"TICKET-1"}"#);
}

#[test]
fn ga_15_answers_in_chunks_are_read_too() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7\r\n{\"fire\"\r\n6\r\n:true}\r\n0\r\n\r\n";
    assert!(asked(Answer::Bytes(chunked.into())).unwrap().yes);
}

#[test]
fn ga_15_redirects_are_not_followed() {
    let elsewhere = Server::new([Answer::json(r#"{"valid": true}"#)]);
    for status in [
        "301 Moved",
        "302 Found",
        "303 See",
        "307 Temporary",
        "308 Permanent",
    ] {
        let target = elsewhere.url("/");
        let redirect = format!(
            "HTTP/1.1 {status}\r\nlocation: {target}\r\ncontent-length: 14\r\n\r\n{{\"valid\":true}}"
        );
        assert_eq!(
            refused(Answer::Bytes(redirect.into())),
            HttpsError::Redirect.to_string()
        );
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn ga_15_a_service_that_does_not_answer_in_time_says_nothing() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n".to_vec();
    let nearly = [head.as_slice(), b"{\"valid\":true"].concat();
    for answer in [
        Answer::Mute,
        Answer::Stall(Vec::new()),
        Answer::Stall(b"HTTP/1.1 200".to_vec()),
        Answer::Stall(head.clone()),
        Answer::Stall(nearly.clone()),
    ] {
        let server = Server::new([answer]);
        let callback = Callback {
            timeout_ms: 300,
            ..callback(&server.url("/"))
        };
        let reason = trusting(&server).call(&callback).unwrap_err();
        assert_eq!(reason, HttpsError::Timeout.to_string());
    }
}

#[test]
fn ga_15_no_time_at_all_is_not_for_ever() {
    let server = Server::new([Answer::json(r#"{"valid": true}"#)]);
    let callback = Callback {
        timeout_ms: 0,
        ..callback(&server.url("/"))
    };
    let reason = trusting(&server).call(&callback).unwrap_err();
    assert_eq!(reason, HttpsError::Timeout.to_string());
    // The longest that can be written is cut, not added up beyond what a clock holds.
    let callback = Callback {
        timeout_ms: u64::MAX,
        ..callback
    };
    assert!(trusting(&server).call(&callback).unwrap().yes);
}

#[test]
fn ga_15_anything_but_the_agreed_json_is_no_answer() {
    for body in [
        "",
        "yes",
        "[true]",
        r#"{"valid":"true"}"#,
        r#"{"valid":true,"x":1}"#,
        r#"{"valid":false,"valid":true}"#,
    ] {
        let reason = refused(Answer::json(body));
        assert!(reason.starts_with("its answer "), "{body}: {reason}");
    }
    for status in [
        "201 Created",
        "204 No Content",
        "400 Bad",
        "401 No",
        "404 No",
        "500 Oops",
        "503 Later",
    ] {
        let reason = refused(Answer::status(status, r#"{"valid":true}"#));
        let code = status.split(' ').next().unwrap();
        assert_eq!(reason, format!("it answered with status {code}"));
    }
    for bytes in [
        "",
        "hello\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{\"valid\":true}",
    ] {
        refused(Answer::Bytes(bytes.into()));
    }
}

#[test]
fn ga_15_an_answer_has_at_most_64_kib() {
    let padded = |size: usize| {
        let body = r#"{"valid":true}"#;
        format!("{body}{}", " ".repeat(size - body.len()))
    };
    assert!(asked(Answer::json(&padded(64 << 10))).unwrap().yes);
    let long = refused(Answer::json(&padded((64 << 10) + 1)));
    assert_eq!(long, HttpsError::TooLarge.to_string());
    // One that does not say how long it is, and would never end.
    let mut endless = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
    endless.extend(padded(1 << 20).into_bytes());
    assert_eq!(
        refused(Answer::Stall(endless)),
        HttpsError::TooLarge.to_string()
    );
    let headers = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(1 << 20));
    refused(Answer::Bytes(headers.into()));
}

#[test]
fn ga_15_only_the_right_certificate_will_do() {
    let yes = || [Answer::json(r#"{"valid": true}"#)];
    let server = Server::new(yes());
    let stranger = Server::new(yes());
    let url = callback(&server.url("/"));
    assert!(trusting(&server).call(&url).unwrap().yes);
    for https in [trusting(&stranger), Https::new()] {
        let reason = https.call(&url).unwrap_err();
        assert!(reason.starts_with("no trusted connection: "), "{reason}");
    }

    let named = |name: &str| CertificateParams::new([name.to_owned()]).unwrap();
    let mut expired = named("localhost");
    expired.not_after = rcgen::date_time_ymd(2000, 1, 1);
    for params in [named("example.com"), expired] {
        let server = Server::with_certificate(params, yes());
        let reason = trusting(&server)
            .call(&callback(&server.url("/")))
            .unwrap_err();
        assert!(reason.starts_with("no trusted connection: "), "{reason}");
        assert!(server.requests().is_empty());
    }
}

#[test]
fn ga_15_certificates_to_trust_must_be_some() {
    for pem in [
        "",
        "nonsense",
        "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n",
    ] {
        let error = Https::new().with_roots(pem).unwrap_err();
        assert_eq!(error, HttpsError::Certificate);
    }
}

#[test]
fn ga_15_private_addresses_are_not_asked_unless_allowed() {
    let server = Server::new([Answer::json(r#"{"valid": true}"#)]);
    let https = trusting(&server);
    let port = server.port();
    // By number, and by a name that is looked up.
    for host in ["127.0.0.1", "localhost", "LOCALHOST"] {
        let allowed = callback(&format!("https://{host}:{port}/"));
        let forbidden = Callback {
            allow_private_addresses: false,
            ..allowed.clone()
        };
        let before = server.connections();
        let reason = https.call(&forbidden).unwrap_err();
        assert_eq!(reason, HttpsError::Private.to_string());
        assert_eq!(server.connections(), before);
        assert!(https.call(&allowed).unwrap().yes, "{host}");
    }
}

#[test]
fn ga_15_only_https_is_spoken() {
    let server = Server::new([Answer::json(r#"{"valid": true}"#)]);
    let port = server.port();
    for url in [
        format!("http://localhost:{port}/"),
        format!("https://user:hunter22@localhost:{port}/"),
        format!("file://localhost:{port}/"),
        "https://".to_owned(),
    ] {
        let reason = trusting(&server).call(&callback(&url)).unwrap_err();
        assert!(
            reason.starts_with("its address cannot be used: "),
            "{reason}"
        );
        assert!(!reason.contains("hunter22"), "{reason}");
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn ga_15_nobody_there_is_no_answer() {
    let server = Server::new([Answer::json(r#"{"valid": true}"#)]);
    let (https, url) = (trusting(&server), server.url("/"));
    drop(server);
    let reason = https.call(&callback(&url)).unwrap_err();
    assert!(reason.starts_with("no trusted connection: "), "{reason}");
    let reason = NoCaller
        .call(&callback("https://example.com/hunter22"))
        .unwrap_err();
    assert_eq!(reason, "`https://example.com` is not asked here");
}

/// An atlas with a gate that the steward's service raises.
fn atlas(url: &str) -> serde_json::Value {
    json!({
        "extensions": [{
            "extension_id": "ours", "url": url, "timeout_ms": 60_000, "allow_private_addresses": true,
        }],
        "checkpoints": [{
            "checkpoint_id": "watched", "mode": "blocking",
            "trigger": {"type": "custom", "trigger_id": "ours", "params": {"level": 3}},
            "questions": [{"question_id": "why", "question": "Why?"}],
        }],
    })
}

on_every_store! {
    fn ga_15_a_session_asks_the_service_and_fails_closed(room: Room) {
        let server = Server::new([
            Answer::json(r#"{"fire": false}"#),
            Answer::json(r#"{"fire": true}"#),
            Answer::status("500 Oops", r#"{"fire": false}"#),
        ]);
        let control = control(&room, trusting(&server));
        let atlas = atlas(&server.url("/"));
        let decisions: Vec<Decision> = (0..3)
            .map(|_| start(&control, "test", atlas.clone()).judgement.resolution.decision)
            .collect();
        assert_eq!(decisions, [Decision::Allow, Decision::Hold, Decision::Hold]);
        assert!(server.requests()[0].contains(r#""trigger":{"level":3}"#));
        let failures = recorded(&room, "ExtensionFailed");
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].1["error"], "it answered with status 500");
    }
}
