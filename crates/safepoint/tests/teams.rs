//! Several machines with one database and one object store: each has an empty
//! directory of its own, and any of them goes on where another has ended.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "../../safepoint-store/tests/support/s3.rs"]
mod s3;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use s3::Bucket;
use serde_json::Value;
use testkit::{Database, Room, TestEnv};

/// Where objects are shared.
enum Shared {
    Directory(PathBuf),
    S3(Bucket),
}

/// A database, a place for objects, and machines that share them.
struct Team {
    room: Room,
    env: TestEnv,
    shared: Shared,
}

impl Team {
    /// With all that a team has: PostgreSQL and S3.
    fn new() -> Self {
        Self::with(Database::Postgres, Shared::S3(Bucket::new()))
    }

    /// The same with files alone.
    fn of_files() -> Self {
        let room = Room::new(Database::Sqlite);
        let shared = Shared::Directory(room.path().join("depot"));
        Self::with(Database::Sqlite, shared)
    }

    fn with(database: Database, shared: Shared) -> Self {
        Self {
            room: Room::new(database),
            env: TestEnv::new(env!("CARGO_BIN_EXE_safepoint")),
            shared,
        }
    }

    fn objects(&self) -> String {
        match &self.shared {
            Shared::Directory(path) => format!("file://{}", path.display()),
            Shared::S3(bucket) => bucket.address(),
        }
    }

    fn home(&self, machine: &str) -> PathBuf {
        self.env.root().join(machine)
    }

    fn key(&self) -> PathBuf {
        self.env.root().join("secret/team.key")
    }

    /// A command on one of the machines.
    fn command(&self, machine: &str, arguments: &[&str]) -> Command {
        let mut command = self.env.command(arguments);
        command
            .env("SAFEPOINT_HOME", self.home(machine))
            .env("SAFEPOINT_STORE", self.room.address())
            .env("SAFEPOINT_OBJECTS", self.objects())
            .env("SAFEPOINT_KEY", self.key());
        if let Shared::S3(_) = self.shared {
            command.envs(s3::variables(&s3::server()));
        }
        command
    }

    fn run(&self, machine: &str, arguments: &[&str]) -> Output {
        self.command(machine, arguments).output().unwrap()
    }

    #[track_caller]
    fn json(&self, machine: &str, arguments: &[&str]) -> Value {
        let output = self.run(machine, &[&["--json"], arguments].concat());
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The code of the error that a command must end with, and its exit code.
    #[track_caller]
    fn refused(&self, mut command: Command) -> (String, i32) {
        let output = command.output().unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| unreachable!("{error}: {output:?}"));
        let code = printed["error"]["code"].as_str();
        let code = code.unwrap_or_else(|| unreachable!("{printed}"));
        (code.to_owned(), output.status.code().unwrap())
    }

    #[track_caller]
    fn checkpoint(&self, machine: &str) -> String {
        let made = self.json(machine, &["checkpoint", "--reason", "a test"]);
        made["checkpoint_id"]
            .as_str()
            .unwrap_or_else(|| unreachable!("{made}"))
            .to_owned()
    }

    fn write(&self, name: &str, content: &str) {
        self.env.write(&format!("project/{name}"), content);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.env.project().join(name)).unwrap()
    }

    /// Which packs are shared.
    fn packs(&self) -> Vec<String> {
        match &self.shared {
            Shared::Directory(path) => {
                let packs = fs::read_dir(path.join("packs")).into_iter().flatten();
                packs
                    .map(|pack| pack.unwrap().file_name().into_string().unwrap())
                    .collect()
            }
            Shared::S3(bucket) => {
                let depot = bucket.depot();
                let key = fs::read_to_string(self.key()).unwrap();
                let owner = key.split('+').find(|part| part.starts_with("safepoint/"));
                depot.claim(owner.unwrap());
                depot.list("packs").unwrap()
            }
        }
    }

    fn forge(&self, name: &str, bytes: &[u8]) {
        match &self.shared {
            Shared::Directory(path) => fs::write(path.join(name), bytes).unwrap(),
            Shared::S3(bucket) => bucket.forge(name, bytes),
        }
    }
}

/// Removes every pack that lies below a machine's directory. Returns how many there were.
fn remove_packs(home: &Path) -> usize {
    let mut removed = 0;
    for store in fs::read_dir(home.join("data/objects")).unwrap() {
        for pack in fs::read_dir(store.unwrap().path().join("packs")).unwrap() {
            fs::remove_file(pack.unwrap().path()).unwrap();
            removed += 1;
        }
    }
    removed
}

fn is_sound(team: &Team, machine: &str) {
    let verdict = team.json(machine, &["trail", "verify"]);
    assert_eq!(verdict["valid"], true, "{verdict}");
}

#[test]
fn su_09_what_one_machine_has_kept_another_brings_back() {
    for team in [Team::of_files(), Team::new()] {
        team.write("a", "a before\n");
        team.write("deep/b", &"b before\n".repeat(10_000));
        let first = team.checkpoint("one");
        team.write("a", "a after\n");
        fs::remove_dir_all(team.env.project().join("deep")).unwrap();

        let changed = team.json("other", &["diff", &first]).to_string();
        assert!(changed.contains("deep/b"), "{changed}");
        team.json("other", &["rollback", &first]);
        assert_eq!(team.read("a"), "a before\n");
        assert_eq!(team.read("deep/b").len(), 90_000);

        // And the first goes on where the other has ended, and a third one comes.
        team.json("one", &["redo"]);
        assert_eq!(team.read("a"), "a after\n");
        assert!(!team.env.project().join("deep").exists());
        let third = team.json("third", &["verify", &first]);
        assert_eq!(third["valid"], true, "{third}");
        for machine in ["one", "other", "third"] {
            is_sound(&team, machine);
        }
    }
}

#[test]
fn su_09_a_machine_that_lost_its_directory_goes_on() {
    let team = Team::new();
    team.write("a", "a before\n");
    let first = team.checkpoint("one");
    team.write("a", "a after\n");

    // Its packs alone, and then everything it had.
    assert_eq!(remove_packs(&team.home("one")), 1);
    team.json("one", &["rollback", &first]);
    assert_eq!(team.read("a"), "a before\n");
    fs::remove_dir_all(team.home("one")).unwrap();
    team.json("one", &["redo"]);
    assert_eq!(team.read("a"), "a after\n");
    is_sound(&team, "one");
}

#[test]
fn su_09_a_large_body_is_read_where_it_was_not_written() {
    let team = Team::new();
    let text = "a long story ".repeat(10_000);
    team.json("one", &["trail", "note", &text]);
    let page = team
        .json("other", &["trail", "list", "--kind", "note"])
        .to_string();
    assert!(page.contains("note"), "{page}");
    is_sound(&team, "other");
}

#[test]
fn su_09_what_others_have_stored_is_not_stored_again() {
    let team = Team::of_files();
    team.write("a", "a before\n");
    team.checkpoint("one");
    let before = team.packs();
    let size = |names: &[String]| -> u64 {
        let Shared::Directory(path) = &team.shared else {
            return 0;
        };
        let sizes = names.iter().map(|name| path.join("packs").join(name));
        sizes.map(|pack| pack.metadata().unwrap().len()).sum()
    };
    team.write("noise", &noise(3_000_000));
    team.checkpoint("one");
    let both = size(&team.packs());
    assert!(both > size(&before) + 1_000_000);
    team.checkpoint("other");
    assert!(size(&team.packs()) < both + 100_000);
}

/// Text that is not pressed to nothing.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b' ' + (state >> 40) as u8 % 90)
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn su_09_killed_between_upload_and_record_nothing_dangles() {
    let faults = [
        "objects.packed",
        "objects.uploaded",
        "objects.shared",
        "objects.indexed",
        "checkpoint.stored",
        "checkpoint.prepared",
    ];
    for fault in faults {
        let team = Team::of_files();
        team.write("a", "a before\n");
        let first = team.checkpoint("one");
        let before = team.packs().len();
        team.write("a", "a later\n");
        let mut cut = team.command("one", &["checkpoint", "--reason", "cut off"]);
        let output = cut.env("SAFEPOINT_FAULT", fault).output().unwrap();
        assert_eq!(output.status.signal(), Some(9), "{fault}: {output:?}");
        let left = team.packs().len();
        assert_eq!(left > before, fault != "objects.packed", "{fault}");

        // Nobody knows of it: neither here nor there.
        for machine in ["other", "one"] {
            let listed = team.json(machine, &["list"]).to_string();
            assert!(
                listed.contains(&first) && !listed.contains("cut off"),
                "{fault}: {listed}"
            );
        }
        team.json("other", &["rollback", &first]);
        assert_eq!(team.read("a"), "a before\n", "{fault}");
        team.write("a", "a later\n");
        let again = team.checkpoint("one");
        let whole = team.json("other", &["verify", &again]);
        assert_eq!(whole["valid"], true, "{fault}: {whole}");
        is_sound(&team, "one");
    }
}

#[test]
fn su_09_a_forged_object_is_refused() {
    for team in [Team::of_files(), Team::new()] {
        team.write("a", "a before\n");
        let first = team.checkpoint("one");
        team.json("other", &["list"]);
        team.write("a", "a after\n");
        let packs = team.packs();
        assert_eq!(packs.len(), 1);
        team.forge(&format!("packs/{}", packs[0]), b"SPPACK\n1 something else");
        let (code, exit) = team.refused(team.command("other", &["--json", "rollback", &first]));
        assert_ne!(exit, 0);
        assert!(["F503", "S505"].contains(&code.as_str()), "{code}");
        assert_eq!(team.read("a"), "a after\n");
        // Who has it goes on.
        team.json("one", &["rollback", &first]);
        assert_eq!(team.read("a"), "a before\n");
    }
}

#[test]
fn su_09_what_is_wrong_with_the_depot_is_told_and_nothing_is_changed() {
    let team = Team::new();
    team.write("a", "a before\n");
    team.checkpoint("one");
    let entries = || team.json("one", &["trail", "head"])["size"].clone();
    let before = entries();
    team.write("a", "a after\n");
    let checkpoint = || team.command("one", &["--json", "checkpoint", "--reason", "no"]);

    let mut nobody = checkpoint();
    nobody.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    assert_eq!(team.refused(nobody), ("S501".into(), 5));
    let mut no_bucket = checkpoint();
    no_bucket.env("SAFEPOINT_OBJECTS", "s3://no-such-bucket/all");
    assert_eq!(team.refused(no_bucket), ("S501".into(), 5));
    let mut unknown = checkpoint();
    unknown.env_remove("AWS_ACCESS_KEY_ID");
    assert_eq!(team.refused(unknown), ("S513".into(), 6));
    let mut open = checkpoint();
    open.env("AWS_ENDPOINT_URL", "http://s3.example");
    assert_eq!(team.refused(open), ("S513".into(), 6));
    let other = Team::new();
    other.write("x", "x\n");
    other.checkpoint("one");
    let mut foreign = checkpoint();
    foreign.env("SAFEPOINT_OBJECTS", other.objects());
    assert_eq!(team.refused(foreign), ("S514".into(), 5));
    let mut nonsense = checkpoint();
    nonsense.env("SAFEPOINT_OBJECTS", "somewhere");
    assert_eq!(team.refused(nonsense).1, 7);
    assert_eq!(entries(), before);
}

#[test]
fn su_09_shared_objects_are_not_collected() {
    let team = Team::of_files();
    team.write("a", "a\n");
    team.checkpoint("one");
    let packs = team.packs();
    for arguments in [&["--json", "gc"][..], &["--json", "gc", "--dry-run"]] {
        let (code, exit) = team.refused(team.command("one", arguments));
        assert_eq!((code.as_str(), exit), ("F509", 1));
    }
    assert_eq!(team.packs(), packs);
}

#[test]
fn su_09_a_store_that_was_alone_is_shared_with_all_it_has() {
    let team = Team::of_files();
    team.write("a", "a before\n");
    let alone = |arguments: &[&str]| {
        let mut command = team.command("one", arguments);
        command.env_remove("SAFEPOINT_OBJECTS").output().unwrap()
    };
    let made = alone(&["--json", "checkpoint", "--reason", "alone"]);
    assert!(made.status.success(), "{made:?}");
    assert!(team.packs().is_empty());
    // The next that touches objects shares what is there.
    team.json("one", &["du"]);
    assert_eq!(team.packs().len(), 1);
    let listed = team.json("other", &["list"]);
    let id = listed["checkpoints"][0]["id"].as_str().unwrap().to_owned();
    let whole = team.json("other", &["verify", &id]);
    assert_eq!(whole["valid"], true, "{whole}");
}

#[test]
fn su_09_status_says_where_objects_are_shared_and_which_key_signs() {
    let team = Team::of_files();
    let settings = team.json("one", &["status"])["settings"].clone();
    let key = team.key().display().to_string();
    assert_eq!(settings["objects"]["value"], team.objects());
    assert_eq!(settings["objects"]["origin"], "environment");
    assert_eq!(settings["key"]["value"], key);
    assert_eq!(settings["server"], Value::Null);
    let shown = team.run("one", &["status"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    for (name, value) in [("objects", team.objects()), ("key", key)] {
        let line = format!("{name:<14}{value}  (environment)");
        assert!(shown.lines().any(|it| it == line), "{line}: {shown}");
    }
    // One that is alone shares nothing.
    let alone = team.env.json(&["status"])["settings"].clone();
    for name in ["objects", "key", "server"] {
        assert_eq!(alone[name], Value::Null, "{name}");
    }
    let shown = team.env.run(&["status"]).stdout;
    assert!(!shown.contains("objects"), "{shown}");
}

#[test]
fn su_09_all_machines_sign_with_one_key() {
    let team = Team::of_files();
    team.json("one", &["trail", "note", "begun"]);
    let kept = fs::read_to_string(team.key()).unwrap();
    assert!(!team.home("one").join("data/keys").exists());

    // Another key for the same trail: nothing is written with it.
    let other = Team::of_files();
    other.json("one", &["trail", "note", "another trail"]);
    let mut wrong = team.command("other", &["--json", "trail", "note", "no"]);
    wrong.env("SAFEPOINT_KEY", other.key());
    assert_eq!(team.refused(wrong), ("I602".into(), 6));
    let mut missing = team.command("other", &["--json", "trail", "note", "no"]);
    missing.env("SAFEPOINT_KEY", team.env.root().join("nothing.key"));
    assert_eq!(team.refused(missing).1, 6);
    let mut unnamed = team.command("other", &["--json", "trail", "note", "no"]);
    unnamed.env("SAFEPOINT_KEY", "relative.key");
    assert_eq!(team.refused(unnamed).1, 7);
    assert_eq!(fs::read_to_string(team.key()).unwrap(), kept);
    // A machine that takes the trail up records that its copy begins there.
    assert_eq!(team.json("other", &["trail", "head"])["size"], 3);
}

#[test]
fn su_09_an_older_database_is_found_by_a_machine_that_never_saw_the_newer() {
    let team = Team::of_files();
    let store = team.room.address();
    let file = PathBuf::from(store.strip_prefix("sqlite:").unwrap());
    team.json("one", &["trail", "note", "first"]);
    // All connections are closed: the file is all there is.
    let older = fs::read(&file).unwrap();
    team.json("one", &["trail", "note", "second"]);
    let published = team.json("one", &["trail", "publish"]);
    assert_eq!(
        (&published["size"], &published["before"]),
        (&3.into(), &0.into())
    );
    let again = team.json("other", &["trail", "publish"]);
    // One more: the other machine records that its copy begins here.
    assert_eq!((&again["size"], &again["before"]), (&4.into(), &3.into()));

    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", file.display()));
    }
    fs::write(&file, older).unwrap();
    for arguments in [
        &["--json", "trail", "note", "no"][..],
        &["--json", "trail", "head"],
        &["--json", "trail", "publish"],
    ] {
        let (code, _) = team.refused(team.command("third", arguments));
        assert_eq!(code, "T101", "{arguments:?}");
        assert!(!team.home("third").join("state/witness").exists());
    }
}

#[test]
fn su_09_an_empty_database_does_not_take_the_place_of_a_published_one() {
    let team = Team::of_files();
    team.json("one", &["trail", "note", "first"]);
    team.json("one", &["trail", "publish"]);
    let empty = Room::new(Database::Sqlite);
    let mut anew = team.command("other", &["--json", "trail", "note", "no"]);
    anew.env("SAFEPOINT_STORE", empty.address());
    assert_eq!(team.refused(anew).0, "S508");
}
