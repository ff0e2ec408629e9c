use super::*;

/// One file for each layer, in a directory of its own.
struct Layers {
    room: tempfile::TempDir,
}

impl Layers {
    fn new() -> Self {
        Self {
            room: tempfile::tempdir().unwrap(),
        }
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.room.path().join(name);
        safepoint_store::durable::create_directory(path.parent().unwrap()).unwrap();
        let access = safepoint_store::durable::Access::Private;
        safepoint_store::durable::write(&path, content.as_bytes(), access).unwrap();
        path
    }

    fn load(&self, flag: Option<&str>, variables: &[(&str, &str)]) -> Result<Settings, CliError> {
        let root = self.room.path();
        let environment = Environment::of(root, variables);
        let paths = Paths::find(&environment).unwrap();
        Settings::load(&Sources {
            managed: &root.join("etc/safepoint.yaml"),
            store_flag: flag,
            environment: &environment,
            paths: &paths,
            workspace: &root.join("project/deep/inside"),
        })
    }
}

fn home(layers: &Layers) -> String {
    layers.room.path().join("home").display().to_string()
}

#[test]
fn su_03_stronger_layers_win_in_order() {
    let layers = Layers::new();
    let home = home(&layers);
    let variables: &[(&str, &str)] = &[("SAFEPOINT_HOME", &home)];
    let with_store: &[(&str, &str)] = &[
        ("SAFEPOINT_HOME", &home),
        ("SAFEPOINT_STORE", "sqlite:/env.db"),
    ];
    let origin = |flag, variables| layers.load(flag, variables).unwrap().store;
    let at = |path: &str, origin| Setting {
        value: Location::Sqlite(path.into()),
        origin,
    };

    let default = format!("{home}/data/store.db");
    assert_eq!(origin(None, variables), at(&default, Origin::Default));
    layers.write("home/config/config.yaml", "store: sqlite:/user.db\n");
    assert_eq!(origin(None, variables), at("/user.db", Origin::User));
    assert_eq!(origin(None, with_store), at("/env.db", Origin::Environment));
    let flag = Some("sqlite:/flag.db");
    assert_eq!(origin(flag, with_store), at("/flag.db", Origin::Flag));
    layers.write("etc/safepoint.yaml", "store: sqlite:/managed.db\n");
    assert_eq!(origin(flag, with_store), at("/managed.db", Origin::Managed));
}

#[test]
fn su_03_the_project_stands_between_environment_and_user() {
    let layers = Layers::new();
    let home = home(&layers);
    let variables: &[(&str, &str)] = &[("SAFEPOINT_HOME", &home)];
    let timeout = |variables| {
        let setting = layers.load(None, variables).unwrap().hold_timeout;
        (setting.value.to_string(), setting.origin)
    };
    layers.write("home/config/config.yaml", "hold_timeout: 1m\n");
    assert_eq!(timeout(variables), ("1m".into(), Origin::User));
    layers.write(
        "project/safepoint.yaml",
        "hold_timeout: 2m\nexclude: ['*.iso']\n",
    );
    assert_eq!(timeout(variables), ("2m".into(), Origin::Project));
    let with_timeout: &[(&str, &str)] =
        &[("SAFEPOINT_HOME", &home), ("SAFEPOINT_HOLD_TIMEOUT", "3m")];
    assert_eq!(timeout(with_timeout), ("3m".into(), Origin::Environment));
    layers.write("etc/safepoint.yaml", "hold_timeout: 4m\n");
    assert_eq!(timeout(with_timeout), ("4m".into(), Origin::Managed));
}

#[test]
fn su_03_mistakes_are_told_with_their_place() {
    let layers = Layers::new();
    let home = home(&layers);
    let variables: &[(&str, &str)] = &[("SAFEPOINT_HOME", &home)];
    layers.write("project/safepoint.yaml", "checkpoint: policy\nexlude: []\n");
    let error = layers.load(None, variables).unwrap_err().problem();
    assert_eq!(error.exit, safepoint_model::Exit::Usage);
    assert!(error.message.contains("exlude"), "{}", error.message);
    let shown = serde_json::to_value(&error).unwrap();
    let place = shown["location"].as_str().unwrap();
    assert!(place.ends_with("safepoint.yaml:2:1"), "{place}");

    layers.write("project/safepoint.yaml", "store: sqlite:/mine.db\n");
    let error = layers.load(None, variables).unwrap_err();
    assert!(
        error.to_string().contains("must not choose the store"),
        "{error}"
    );

    layers.write("project/safepoint.yaml", "");
    let bad: &[(&str, &str)] = &[
        ("SAFEPOINT_HOME", &home),
        ("SAFEPOINT_HOLD_TIMEOUT", "soon"),
    ];
    assert!(layers.load(None, bad).is_err());
    assert!(layers.load(Some("mysql:x"), variables).is_err());
}

#[test]
fn su_03_what_only_a_project_says_is_refused_elsewhere() {
    let layers = Layers::new();
    let home = home(&layers);
    let variables: &[(&str, &str)] = &[("SAFEPOINT_HOME", &home)];
    let keys = [
        "exclude: ['*.iso']\n",
        "include: [target]\n",
        "state_providers: {it: {capture: cat, restore: cat}}\n",
    ];
    for file in ["home/config/config.yaml", "etc/safepoint.yaml"] {
        for key in keys {
            let path = layers.write(file, key);
            let error = layers.load(None, variables).unwrap_err();
            let error = error.problem();
            assert_eq!(error.exit, safepoint_model::Exit::Usage);
            let path = path.display().to_string();
            assert!(error.message.contains(&path), "{}", error.message);
        }
        layers.write(file, "");
    }
    layers.write("project/safepoint.yaml", &keys.concat());
    layers.load(None, variables).unwrap();
}
