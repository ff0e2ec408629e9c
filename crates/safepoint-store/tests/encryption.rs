//! PostgreSQL over TLS. A small server in front of the real one ends the
//! encryption, as a proxy in front of a database would.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests fail loudly, and write files"
)]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use safepoint_store::{Location, Options, Store, StoreError, Woken};
use support::{NOTES, add, ids};
use testkit::{Database, Room};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio_rustls::TlsAcceptor;

/// A certificate for `name`, which vouches for itself.
struct Certificate {
    pem: String,
    der: CertificateDer<'static>,
    key: Vec<u8>,
}

fn certificate(name: &str) -> Certificate {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Certificate {
        pem: certificate.pem(),
        der: certificate.der().clone(),
        key: key.serialize_der(),
    }
}

/// What the server in front says when it is asked for encryption.
#[derive(Clone, Copy)]
enum Says {
    Yes,
    No,
}

/// Starts a server in front of the room's database, and returns its port.
fn front(room: &Room, certificate: &Certificate, says: Says) -> u16 {
    let address = room.address();
    let directory = address.split(['@', '/']).nth(3).unwrap();
    let socket = PathBuf::from(directory.replace("%2F", "/")).join(".s.PGSQL.5432");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certificate.key.clone()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    let listener = runtime
        .block_on(TcpListener::bind(("127.0.0.1", 0)))
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (acceptor, socket) = (acceptor.clone(), socket.clone());
            tokio::spawn(async move {
                // Nothing but the wish for encryption may come in the clear.
                let mut request = [0; 8];
                stream.read_exact(&mut request).await?;
                assert_eq!(request, [0, 0, 0, 8, 4, 210, 22, 47]);
                if let Says::No = says {
                    return stream.write_all(b"N").await;
                }
                stream.write_all(b"S").await?;
                let mut stream = acceptor.accept(stream).await?;
                let mut database = UnixStream::connect(socket).await?;
                tokio::io::copy_bidirectional(&mut stream, &mut database).await?;
                Ok(())
            });
        }
    };
    thread::spawn(move || runtime.block_on(serve));
    port
}

fn open(room: &Room, port: u16, roots: &str) -> Result<Store, StoreError> {
    let file = room.path().join("roots.pem");
    std::fs::write(&file, roots).unwrap();
    let address = room.address();
    let (_, database) = address.rsplit_once('/').unwrap();
    let url = format!(
        "postgres://postgres@localhost:{port}/{database}?sslmode=verify-full&sslrootcert={}",
        file.display()
    );
    let location: Location = url.parse().unwrap();
    assert_eq!(
        location.to_string(),
        format!("postgres://postgres@localhost:{port}/{database}")
    );
    Store::open(&location, Options::default())
}

#[test]
fn su_09_a_store_is_reached_over_tls() {
    let room = Room::new(Database::Postgres);
    let certificate = certificate("localhost");
    let port = front(&room, &certificate, Says::Yes);
    let store = open(&room, port, &certificate.pem).unwrap();
    store.migrate(&NOTES).unwrap();
    let mut watch = store.watch().unwrap();
    add(&store, 1).unwrap();
    assert_eq!(ids(&store).unwrap(), [1]);
    assert_eq!(ids(&room.store()).unwrap(), [1]);
    let woken = watch.wait(Duration::from_secs(600)).unwrap();
    assert_eq!(woken, Woken::Written);
}

#[test]
fn su_09_a_server_that_cannot_prove_who_it_is_gets_nothing() {
    let room = Room::new(Database::Postgres);
    let (right, wrong) = (certificate("localhost"), certificate("db.example"));
    let cases = [
        ("of another name", &wrong, &wrong.pem, Says::Yes),
        (
            "of another root",
            &right,
            &certificate("localhost").pem,
            Says::Yes,
        ),
        ("without encryption", &right, &right.pem, Says::No),
    ];
    for (case, shown, trusted, says) in cases {
        let port = front(&room, shown, says);
        let error = open(&room, port, trusted).unwrap_err();
        assert!(
            matches!(error, StoreError::Unreachable { .. }),
            "{case}: {error}"
        );
    }
}

#[test]
fn su_09_roots_that_are_none_are_refused() {
    let room = Room::new(Database::Postgres);
    for roots in [
        "",
        "nonsense",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    ] {
        let error = open(&room, 1, roots).unwrap_err();
        assert!(matches!(error, StoreError::File { .. }), "{error}");
    }
}
