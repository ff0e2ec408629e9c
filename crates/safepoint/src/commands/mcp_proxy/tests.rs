use std::io::{BufReader, Cursor};

use serde_json::json;

use super::message::{self, Line, Said};

#[test]
fn su_06_lines_are_bounded_and_kept_as_they_are() {
    let text = b"one\r\n\ntoo long to be read\nlast";
    // A buffer smaller than any line.
    let mut input = BufReader::with_capacity(2, Cursor::new(text));
    let mut next = || message::next_line(&mut input, 8).unwrap();
    assert_eq!(next(), Line::Whole(b"one\r\n".to_vec()));
    assert_eq!(next(), Line::Whole(b"\n".to_vec()));
    assert_eq!(next(), Line::TooLong);
    assert_eq!(next(), Line::Whole(b"last".to_vec()));
    assert_eq!(next(), Line::End);
    let mut endless = BufReader::with_capacity(4, Cursor::new(b"never ended"));
    assert_eq!(message::next_line(&mut endless, 8).unwrap(), Line::TooLong);
    assert_eq!(message::next_line(&mut endless, 8).unwrap(), Line::End);
}

#[test]
fn su_06_what_could_be_read_in_two_ways_is_not_read() {
    let twice = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}"#;
    assert!(message::from_client(twice).is_err());
    assert!(message::from_client(b"{\"id\":1} {\"method\":\"tools/call\"}").is_err());
    assert!(message::from_client(b"\xef\xbb\xbf{}").is_err());
    let hidden = br#"{"jsonrpc":"2.0","id":1,"method":"\u0074ools\/call"}"#;
    let Ok(Said::One(said)) = message::from_client(hidden) else {
        panic!("it is one message");
    };
    assert_eq!(message::method(&said), Some("tools/call"));
}

#[test]
fn su_06_names_that_only_seem_to_be_others_are_refused() {
    let call = |name: &str, tool: &str| json!({name: "tools/call", "params": {tool: "sell"}});
    assert!(message::is_plain(&call("method", "name")));
    assert!(message::is_plain(
        &json!({"id": 1, "result": {"Method": 1}})
    ));
    assert!(!message::is_plain(&call("Method", "name")));
    assert!(!message::is_plain(&call("method", "NAME")));
    assert!(!message::is_plain(
        &json!({"method": "a", "param\u{17f}": {}})
    ));
    assert!(!message::is_plain(&json!([call("method", "name")])));
    assert!(!message::is_plain(&json!("tools/call")));
}

#[test]
fn su_06_methods_that_only_seem_to_be_others_are_refused() {
    for plain in [
        "tools/call",
        "tools/list",
        "notifications/cancelled",
        "$/progress",
    ] {
        assert!(message::is_plain(&json!({"method": plain})), "{plain}");
    }
    for other in [
        json!("TOOLS/CALL"),
        json!("tools/call "),
        json!(" tools/call"),
        json!("tools/call\u{0}"),
        json!("tools//call"),
        json!("tools.call"),
        json!("tools/ca\u{200b}ll"),
        json!(["tools/call"]),
        json!({"name": "tools/call"}),
        json!(null),
    ] {
        assert!(!message::is_plain(&json!({"method": other})), "{other}");
    }
}

#[test]
fn su_06_ids_are_compared_by_what_they_are() {
    let id = |value| message::id(&json!({ "id": value }));
    assert_eq!(id(json!(1)), id(json!(1.0)));
    assert_ne!(id(json!(1)), id(json!("1")));
    assert_eq!(id(json!(null)), None);
    assert_eq!(id(json!([1])), None);
}

#[test]
fn su_06_a_server_says_its_name_in_either_way() {
    let old = json!({"id": 1, "result": {"serverInfo": {"name": "files"}}});
    assert_eq!(message::name_of_server(&old), Some("files"));
    let new = json!({"id": 1, "result": {"_meta": {
        "io.modelcontextprotocol/serverInfo": {"name": "files", "version": "1"}}}});
    assert_eq!(message::name_of_server(&new), Some("files"));
    let none = json!({"id": 1, "result": {"serverInfo": {"name": ""}}});
    assert_eq!(message::name_of_server(&none), None);
}
