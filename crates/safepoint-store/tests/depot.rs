//! The object store that several machines share: a directory, and a server.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests fail loudly, and damage what they test"
)]

#[path = "support/s3.rs"]
mod s3;

use std::fs;
use std::sync::Arc;

use s3::{Bucket, Fake};
use safepoint_model::Digest;
use safepoint_store::depot::Created;
use safepoint_store::{Blobs, Depot, StoreError};

/// A place for a depot, and ways to reach it.
enum Place {
    Directory(tempfile::TempDir),
    S3(Bucket),
}

impl Place {
    fn all() -> [Self; 2] {
        [
            Self::Directory(tempfile::tempdir().unwrap()),
            Self::S3(Bucket::new()),
        ]
    }

    /// As another machine sees it.
    fn depot(&self, owner: &str) -> Arc<Depot> {
        let depot = match self {
            Self::Directory(directory) => {
                let address = format!("file://{}", directory.path().display());
                Depot::open(&address.parse().unwrap(), &|_| None).unwrap()
            }
            Self::S3(bucket) => bucket.depot(),
        };
        depot.claim(owner);
        Arc::new(depot)
    }

    /// Writes over something, as the depot never would.
    fn forge(&self, name: &str, bytes: &[u8]) {
        match self {
            Self::Directory(directory) => fs::write(directory.path().join(name), bytes).unwrap(),
            Self::S3(bucket) => bucket.forge(name, bytes),
        }
    }
}

fn source(error: &StoreError) -> String {
    std::error::Error::source(error).map_or_else(String::new, ToString::to_string)
}

#[test]
fn su_09_what_is_created_stays_as_it_is() {
    for place in Place::all() {
        let (one, other) = (place.depot("safepoint/a"), place.depot("safepoint/a"));
        assert_eq!(one.read("packs/x").unwrap(), None);
        assert_eq!(
            one.create("packs/x", b"first".to_vec()).unwrap(),
            Created::Now
        );
        let again = other.create("packs/x", b"second".to_vec()).unwrap();
        assert_eq!(again, Created::Before);
        assert_eq!(other.read("packs/x").unwrap().unwrap(), b"first");
        assert_eq!(other.read_range("packs/x", 1..4).unwrap().unwrap(), b"irs");
        assert_eq!(other.read_range("packs/x", 3..9).unwrap().unwrap(), b"st");
        assert_eq!(other.read_range("packs/x", 7..9).unwrap().unwrap(), b"");
        assert_eq!(other.read_range("packs/y", 0..9).unwrap(), None);
        one.create("packs/a", Vec::new()).unwrap();
        assert_eq!(one.read("packs/a").unwrap().unwrap(), b"");
        assert_eq!(other.list("packs").unwrap(), ["a", "x"]);
        assert!(other.list("heads").unwrap().is_empty());
    }
}

#[test]
fn su_09_something_large_comes_back() {
    for place in Place::all() {
        let bytes: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
        place
            .depot("safepoint/a")
            .create("packs/large", bytes.clone())
            .unwrap();
        let found = place
            .depot("safepoint/a")
            .read("packs/large")
            .unwrap()
            .unwrap();
        assert!(found == bytes);
    }
}

#[test]
fn su_09_a_depot_belongs_to_one_store() {
    for place in Place::all() {
        place
            .depot("safepoint/a")
            .create("packs/x", b"a's".to_vec())
            .unwrap();
        let other = place.depot("safepoint/b");
        for error in [
            other
                .create("packs/y", b"b's".to_vec())
                .map(drop)
                .unwrap_err(),
            other.read("packs/x").map(drop).unwrap_err(),
            other.list("packs").map(drop).unwrap_err(),
        ] {
            let StoreError::DepotForeign { owner, .. } = &error else {
                unreachable!("{error}");
            };
            assert_eq!(owner, "safepoint/a");
        }
        assert_eq!(place.depot("safepoint/a").list("packs").unwrap(), ["x"]);
    }
}

#[test]
fn su_09_a_server_that_writes_over_what_is_there_is_not_used() {
    let server = Fake::start(|method, _| match method {
        "PUT" => (200, "", "ETag: \"1\"\r\n"),
        _ => (404, "<Error><Code>NoSuchKey</Code></Error>", ""),
    });
    let error = server
        .depot()
        .create("packs/x", b"bytes".to_vec())
        .unwrap_err();
    assert!(matches!(error, StoreError::DepotUnsafe { .. }), "{error}");
    assert!(source(&error).contains("If-None-Match"), "{error:?}");
    // It was asked for the mark, and twice for the probe: nothing else was written.
    let asked: Vec<String> = server.asked();
    let probe = "PUT /team/all/safepoint-probe";
    assert_eq!(asked, ["GET /team/all/safepoint-depot", probe, probe]);
}

#[test]
fn su_09_wrong_credentials_are_told() {
    for status in [401, 403] {
        let server = Fake::start(move |_, _| {
            (
                status,
                "<Error><Code>SignatureDoesNotMatch</Code><Message>no</Message></Error>",
                "",
            )
        });
        let error = server.depot().read("packs/x").unwrap_err();
        assert!(matches!(error, StoreError::DepotRefused { .. }), "{error}");
        assert_eq!(server.asked().len(), 1, "it is not tried again");
    }
}

#[test]
fn su_09_a_depot_that_is_not_there_is_told() {
    let nobody = s3::depot_at("http://127.0.0.1:1", "team", "all");
    nobody.claim("safepoint/a");
    let error = nobody.read("packs/x").unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");

    let no_bucket = s3::depot_at(&s3::server(), "no-such-bucket", "all");
    no_bucket.claim("safepoint/a");
    let error = no_bucket.create("packs/x", b"bytes".to_vec()).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(source(&error).contains("NoSuchBucket"), "{error:?}");
}

#[test]
fn su_09_a_blob_of_one_machine_is_read_on_another() {
    for place in Place::all() {
        let rooms = tempfile::tempdir().unwrap();
        let machine =
            |name: &str| Blobs::new(rooms.path().join(name)).shared(place.depot("safepoint/a"));
        let digest = machine("one").put(b"a large body").unwrap();
        let other = machine("other");
        assert_eq!(other.get(&digest).unwrap().unwrap(), b"a large body");
        assert_eq!(other.get(&Digest::of_parts(&[b"absent"])).unwrap(), None);

        // What it has fetched it keeps; what is damaged there it fetches again.
        let name = digest.to_string();
        let kept = rooms.path().join("other").join(&name[..2]).join(&name[2..]);
        assert_eq!(fs::read(&kept).unwrap(), b"a large body");
        fs::write(&kept, b"damaged").unwrap();
        assert_eq!(other.get(&digest).unwrap().unwrap(), b"a large body");
        assert_eq!(fs::read(&kept).unwrap(), b"a large body");

        // What is not what its name says is never handed out, and never kept.
        place.forge(&format!("blobs/{digest}"), b"another body");
        fs::remove_file(&kept).unwrap();
        let error = other.get(&digest).unwrap_err();
        assert!(matches!(error, StoreError::Corrupted { .. }), "{error}");
        assert!(!kept.exists());
        // Who has it goes on having it.
        assert_eq!(
            machine("one").get(&digest).unwrap().unwrap(),
            b"a large body"
        );
    }
}

#[test]
fn su_09_a_blob_from_before_there_was_a_depot_is_shared_when_it_is_put_again() {
    let place = Place::all().into_iter().next().expect("a directory");
    let rooms = tempfile::tempdir().unwrap();
    let alone = Blobs::new(rooms.path().join("one"));
    let digest = alone.put(b"a large body").unwrap();
    let one = alone.shared(place.depot("safepoint/a"));
    let other = Blobs::new(rooms.path().join("other")).shared(place.depot("safepoint/a"));
    assert_eq!(other.get(&digest).unwrap(), None);
    one.put(b"a large body").unwrap();
    assert_eq!(other.get(&digest).unwrap().unwrap(), b"a large body");
}
