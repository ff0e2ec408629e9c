//! People who are signed in to the page of one of several servers: two machines with one store,
//! as a load balancer has them, and browsers that come now to the one and now to the other.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/http.rs"]
mod http;

use http::{Reply, Server, token};
use safepoint_model::{Digest, Frame};
use safepoint_store::{StoreError, query_all};
use testkit::{Database, Room, TestEnv, on_every_store};

/// A machine with a directory of its own that shares store, objects and key with others.
fn machine(room: &Room) -> TestEnv {
    let mut env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let objects = format!("file://{}", room.path().join("objects").display());
    let key = room.path().join("team.key").display().to_string();
    env.set("SAFEPOINT_STORE", &room.address())
        .set("SAFEPOINT_OBJECTS", &objects)
        .set("SAFEPOINT_KEY", &key);
    env
}

/// Posts a form as a page of this server would; with a cookie, where there is one.
#[track_caller]
fn post(server: &Server, path: &str, cookie: &str, form: &str) -> Reply {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nCookie: {cookie}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {1}\r\n\r\n{form}",
        server.address,
        form.len()
    );
    server.raw(head.as_bytes())
}

/// Signs in. Returns the cookie, as a browser sends it.
#[track_caller]
fn sign_in(server: &Server, token: &str) -> String {
    let entered = post(server, "/sign-in", "", &format!("token={token}"));
    assert_eq!(entered.status, 303, "{entered:?}");
    let cookie = entered.header("set-cookie").unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

#[track_caller]
fn look(server: &Server, cookie: &str, path: &str) -> Reply {
    let cookie = format!("Cookie: {cookie}");
    server.ask("GET", path, "", &["Accept: text/html", &cookie], None)
}

/// Whether a browser with this cookie is signed in.
#[track_caller]
fn is_in(server: &Server, cookie: &str) -> bool {
    let page = look(server, cookie, "/status");
    match page.status {
        200 => true,
        303 => false,
        _ => panic!("{page:?}"),
    }
}

/// The mark in the forms of a page.
#[track_caller]
fn mark(page: &Reply) -> &str {
    let (_, rest) = page.body.split_once(r#"name="mark" value=""#).unwrap();
    rest.split_once('"').unwrap().0
}

/// What somebody sees who reads the database: the digest of the cookie, and what is sealed.
fn rows(room: &Room) -> Vec<[Vec<u8>; 2]> {
    let statement = "SELECT cookie, sealed FROM control_visits ORDER BY began";
    room.store()
        .read::<_, StoreError>(|sql| {
            query_all(sql, statement, &[], |row| {
                Ok([row.blob(0)?.to_owned(), row.blob(1)?.to_owned()])
            })
        })
        .unwrap()
}

on_every_store! {
    fn su_09_who_signed_in_at_one_server_is_signed_in_at_all(room: Room) {
        let (first, second) = (machine(&room), machine(&room));
        let reads = token(&first, "reads", &["--role", "auditor"]);
        let (one, two) = (Server::start(&first, &[]), Server::start(&second, &[]));
        let cookie = sign_in(&one, &reads);
        for path in ["/", "/trail", "/sessions", "/checkpoints", "/status"] {
            for server in [&one, &two] {
                let page = look(server, &cookie, path);
                assert_eq!(page.status, 200, "{path}: {page:?}");
            }
        }
        // A form that one of them showed is taken by the other, and only with its mark.
        let other = sign_in(&two, &reads);
        let (page, others) = (look(&one, &cookie, "/"), look(&one, &other, "/"));
        assert_ne!(mark(&page), mark(&others));
        let form = |page: &Reply| format!("mark={}", mark(page));
        let refused = post(&two, "/sign-out", &cookie, &form(&others));
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(is_in(&one, &cookie) && is_in(&two, &cookie));
        let left = post(&two, "/sign-out", &cookie, &form(&page));
        assert_eq!(left.status, 303, "{left:?}");
        assert!(!is_in(&two, &cookie) && !is_in(&one, &cookie));
        // The other visit is not touched, also where a server is cut off and started anew.
        one.kill();
        let one = Server::start(&first, &[]);
        assert!(is_in(&one, &other) && is_in(&two, &other));
        // A token that is taken back ends its visits everywhere at once.
        second.json(&["token", "revoke", "reads"]);
        assert!(!is_in(&one, &other) && !is_in(&two, &other));
        assert!(rows(&room).is_empty(), "what is over is deleted");
    }

    fn su_08_a_copy_of_the_visits_or_a_forged_one_signs_nobody_in(room: Room) {
        let env = machine(&room);
        let ann = token(&env, "ann", &["--role", "auditor"]);
        let eve = token(&env, "eve", &["--role", "steward"]);
        let server = Server::start(&env, &[]);
        let anns = sign_in(&server, &ann);
        let eves = sign_in(&server, &eve);
        let [[key, sealed], [own, _]] = <[[Vec<u8>; 2]; 2]>::try_from(rows(&room)).unwrap();
        // Nothing in a row is a cookie or a token.
        for part in [&key, &sealed].into_iter().flat_map(|column| column.windows(32)) {
            let text = Digest::from_slice(part).unwrap().to_string();
            assert!(!anns.ends_with(&text) && !ann.ends_with(&text), "{text}");
        }
        for column in [key.as_slice(), sealed.get(..32).unwrap()] {
            let text = Digest::from_slice(column).unwrap().to_string();
            assert!(!is_in(&server, &format!("safepoint={text}")));
            let asked = server.get("/v1/holds", &format!("spt_{text}"));
            asked.problem(401);
        }
        // Ann's row under a cookie of Eve's choice, and what is in it in the place of her own.
        let chosen = Digest::of_parts(&[b"eve"]);
        let mut frame = Frame::new("safepoint/visit/v1");
        let placed = frame.field(chosen.as_bytes()).digest();
        let literal = |bytes: &[u8]| {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            match room.database() {
                Database::Sqlite => format!("x'{digits}'"),
                Database::Postgres => format!("'\\x{digits}'"),
            }
        };
        let (from, to) = (literal(&key), literal(placed.as_bytes()));
        room.tamper(&format!(
            "INSERT INTO control_visits SELECT {to}, sealed, began, latest FROM control_visits WHERE cookie = {from};"
        ));
        assert!(!is_in(&server, &format!("safepoint={chosen}")));
        let to = literal(&own);
        room.tamper(&format!(
            "DELETE FROM control_visits WHERE cookie = {to}; \
             INSERT INTO control_visits SELECT {to}, sealed, began, latest FROM control_visits WHERE cookie = {from};"
        ));
        assert!(!is_in(&server, &eves));
        assert!(is_in(&server, &anns), "hers is as it was");
        // Nobody's visit can be made longer.
        room.tamper("UPDATE control_visits SET latest = latest + 1000000000;");
        assert!(!is_in(&server, &anns));
    }
}
