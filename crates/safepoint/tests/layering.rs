//! Who may know whom: the layers of ARCHITECTURE.md, held by a test.

use std::collections::HashMap;

/// The layer of each crate. A crate may use those on lower layers only.
const LAYERS: [(&str, u8); 14] = [
    ("safepoint-model", 0),
    ("safepoint-clients", 1),
    ("safepoint-database", 1),
    ("safepoint-fence", 1),
    ("safepoint-store", 1),
    ("safepoint-trail", 2),
    ("safepoint-gates", 3),
    ("safepoint-authority", 3),
    ("safepoint-state", 3),
    ("safepoint-progress", 4),
    ("safepoint-control", 5),
    ("safepoint-server", 6),
    ("safepoint-tui", 6),
    ("safepoint", 7),
];

#[test]
fn crates_use_only_the_layers_below_them() {
    let metadata = cargo_metadata::MetadataCommand::new()
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .unwrap();
    let layers: HashMap<&str, u8> = LAYERS.into();
    let mut checked = 0;
    for package in metadata.workspace_packages() {
        if *package.name == "testkit" {
            continue; // tests only, and above everything
        }
        let layer = layers.get(package.name.as_str());
        assert!(layer.is_some(), "{} has no layer", package.name);
        for dependency in &package.dependencies {
            let normal = dependency.kind == cargo_metadata::DependencyKind::Normal;
            if !normal {
                continue;
            }
            assert_ne!(dependency.name, "testkit", "{} uses testkit", package.name);
            if let Some(below) = layers.get(dependency.name.as_str()) {
                assert!(
                    Some(below) < layer,
                    "{} must not use {}",
                    package.name,
                    dependency.name
                );
                checked += 1;
            }
        }
    }
    assert!(checked >= 5, "only {checked} edges seen");
}

#[test]
fn only_the_store_names_a_database_and_only_the_server_is_asynchronous() {
    let metadata = cargo_metadata::MetadataCommand::new()
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .unwrap();
    let homes = [
        ("rusqlite", &["safepoint-store", "safepoint-database"][..]),
        ("postgres", &["safepoint-store", "safepoint-database"]),
        // The store's clients of PostgreSQL and S3 are asynchronous inside; nobody sees it.
        ("tokio", &["safepoint-server", "safepoint-store"]),
        ("serde-saphyr", &["safepoint-model"]),
    ];
    for package in metadata.workspace_packages() {
        for dependency in &package.dependencies {
            let normal = dependency.kind == cargo_metadata::DependencyKind::Normal;
            for (name, allowed) in homes {
                if normal && dependency.name == name && *package.name != "testkit" {
                    let fine = allowed.contains(&package.name.as_str());
                    assert!(fine, "{} uses {name}", package.name);
                }
            }
        }
    }
}
