//! What a fenced shell does not see.

use super::*;

#[test]
fn au_42_hidden_places_are_neither_read_nor_listed_nor_written() {
    let room = Room::new();
    for script in [
        "cat $ROOM/home/data/secret/key",
        "ls $ROOM/home/data/secret",
        "ls $ROOM/home/data/secret/in",
        "echo x >> $ROOM/home/data/secret/key",
        "echo x > $ROOM/home/data/secret/new",
        "ln $ROOM/home/data/secret/key stolen",
        "mv -T $ROOM/home/data/secret taken",
    ] {
        room.denied(script);
    }
}

#[test]
fn au_42_programs_in_hidden_places_are_not_run() {
    let room = Room::new();
    let program = room.path("home/data/secret/program");
    fs::copy("/bin/true", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    room.denied("$ROOM/home/data/secret/program");
    let result = room.fence().spawn(Command::new(&program));
    assert!(
        matches!(result, Err(FenceError::Start { .. })),
        "{result:?}"
    );
    assert!(Command::new(&program).status().unwrap().success());
}

#[test]
fn au_42_the_way_to_a_hidden_place_is_listed_only_where_that_is_chosen() {
    let mut room = Room::new();
    room.denied("ls $ROOM/home");
    room.denied("ls /");
    room.allowed("cd $ROOM/home && test -d data && test \"$(pwd)\" = \"$ROOM/home\"");
    room.listing = Listing::Everywhere;
    room.allowed("ls $ROOM/home");
    room.allowed("ls /");
    // The price: names, and never what is behind them.
    room.allowed("test \"$(ls $ROOM/home/data/secret)\" != ''");
    room.denied("cat $ROOM/home/data/secret/key");
    room.denied("echo x > $ROOM/home/data/secret/key");
}

#[test]
fn au_42_names_beside_the_way_that_appear_later_stay_closed() {
    let room = Room::new();
    let script = "read go; cat $ROOM/home/late";
    let mut command = room.shell(script);
    command.stdin(Stdio::piped());
    let mut child = room.fence().spawn(command).unwrap().child;
    fs::write(room.path("home/late"), "late\n").unwrap();
    fs::write(room.path("outside/late"), "late\n").unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        talk(&output).contains("Permission denied"),
        "{}",
        talk(&output)
    );
    // Away from the way, and for whoever is fenced later, they are open.
    room.allowed("cat $ROOM/outside/late $ROOM/home/late");
}

#[test]
fn au_42_a_hidden_place_that_does_not_exist_yet_is_hidden_once_it_does() {
    let room = Room::new();
    let mut fence = room.fence();
    fence.hidden.push(room.path("home/notes/future/keys"));
    let mut command =
        room.shell("read go; cat $ROOM/home/notes/file; cat $ROOM/home/notes/future/keys/key");
    command.stdin(Stdio::piped());
    let mut child = fence.spawn(command).unwrap().child;
    fs::create_dir_all(room.path("home/notes/future/keys")).unwrap();
    fs::write(room.path("home/notes/future/keys/key"), "key\n").unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"before\n");
    assert!(
        talk(&output).contains("Permission denied"),
        "{}",
        talk(&output)
    );
}

#[test]
fn au_42_hidden_wins_over_writable() {
    let room = Room::new();
    let mut fence = room.fence();
    fence.writable.push(room.path("home"));
    fence.writable.push(room.path("home/data/secret/in"));
    assert_eq!(
        fence.narrowed().unwrap(),
        [room.path("home"), room.path("home/data")]
    );
    let run = |script: &str| {
        let child = fence.spawn(room.shell(script)).unwrap().child;
        child.wait_with_output().unwrap()
    };
    for script in [
        "cat $ROOM/home/data/secret/key",
        "echo x > $ROOM/home/data/secret/key",
        "echo x > $ROOM/home/data/secret/in/new",
        "rm -r $ROOM/home/data/secret/in",
        // What is on the way takes no new names, and loses none.
        "echo x > $ROOM/home/new",
        "mv $ROOM/home/data $ROOM/home/moved",
    ] {
        let output = run(script);
        assert!(!output.status.success(), "{script}");
        assert!(
            talk(&output).contains("Permission denied"),
            "{}",
            talk(&output)
        );
    }
    let output = run("echo x > $ROOM/home/notes/new && echo x > $ROOM/home/data/beside");
    assert!(output.status.success(), "{}", talk(&output));
    assert_eq!(room.read("home/data/secret/key"), "before\n");
    assert_eq!(room.read("home/data/beside"), "x\n");
}

#[test]
fn au_42_a_link_beside_the_way_opens_nothing() {
    let room = Room::new();
    symlink(room.path("home/data/secret"), room.path("home/data/alias")).unwrap();
    symlink("/", room.path("home/root")).unwrap();
    symlink(room.path("home"), room.path("home-alias")).unwrap();
    room.denied("cat $ROOM/home/data/secret/key");
    room.denied("cat $ROOM/home/data/alias/key");
    // What is to be hidden may itself be named through a link.
    let mut fence = room.fence();
    fence.hidden = vec![room.path("home-alias/data/alias")];
    let child = fence
        .spawn(room.shell("cat $ROOM/home/data/secret/key"))
        .unwrap()
        .child;
    let output = child.wait_with_output().unwrap();
    assert!(
        talk(&output).contains("Permission denied"),
        "{}",
        talk(&output)
    );
}

#[test]
fn au_42_many_neighbours_of_the_way_stay_open() {
    let room = Room::new();
    for number in 0..3000 {
        fs::write(room.path(&format!("home/neighbour-{number}")), "x").unwrap();
    }
    room.allowed("cat $ROOM/home/neighbour-0 $ROOM/home/neighbour-2999");
    room.denied("cat $ROOM/home/data/secret/key");
}
