//! What `doctor` says of the fence: what the kernel holds, where tools keep their caches behind
//! it, and which programs that are installed do not work there.

use std::path::Path;

use safepoint_fence::{
    CachePlan, Caches, Strength, is_supervision_possible, shared_cache_names, strength,
};

use super::{CheckReply, check};
use crate::commands::passing;
use crate::context::Context;

/// Programs that build a sandbox of their own, and do nothing without.
const SANDBOXES: [&str; 10] = [
    "apptainer",
    "buildah",
    "bwrap",
    "firejail",
    "flatpak",
    "podman",
    "rootlesskit",
    "singularity",
    "systemd-nspawn",
    "unshare",
];
/// Programs that can do without theirs, when they are told so.
const BROWSERS: [&str; 8] = [
    "brave-browser",
    "chrome",
    "chromium",
    "chromium-browser",
    "electron",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
];

/// What the kernel holds.
pub(super) fn kernel() -> CheckReply {
    let asked = match is_supervision_possible() {
        true => "",
        false => ": programs that agents start are put before a person",
    };
    let detail = match strength() {
        Strength::Full => "the kernel keeps what agents start in the workspace".to_owned(),
        Strength::Partial(what) => format!("the kernel does not hold all: {what}{asked}"),
        Strength::None(why) => format!("{why}; what needs a fence is put before a person"),
    };
    check("fence", Ok(detail))
}

/// Where tools keep their caches behind the fence.
pub(super) fn caches(context: &Context) -> CheckReply {
    let Ok(workspace) = context.workspace() else {
        // What is wrong with it is told beside this.
        let why = "there is no project here: they are made where an agent works";
        return check("caches", Ok(why.to_owned()));
    };
    let fence = passing::fence(context, &workspace);
    let found = match &fence.caches {
        Caches::Planned(plan) => of_plan(plan),
        Caches::None | Caches::Made(_) => {
            "agents have none of their own here, since the workspace lies there".to_owned()
        }
    };
    check("caches", Ok(found))
}

fn of_plan(plan: &CachePlan) -> String {
    let names: Vec<&str> = plan.variables().iter().map(|it| &*it.name).collect();
    let private = plan.private().display();
    let own = match names.is_empty() {
        true => format!("agents have their own in `{private}`, and no variable leads there"),
        false => format!(
            "agents have their own in `{private}`, named by {}",
            names.join(", ")
        ),
    };
    let home = crate::world::home_of_user();
    let is_there = |name: &&str| home.as_ref().is_some_and(|home| home.join(name).exists());
    let shared: Vec<String> = shared_cache_names()
        .filter(is_there)
        .map(|name| format!("~/{name}"))
        .collect();
    match shared.is_empty() {
        true => format!("{own}; they write in none of yours"),
        false => format!("{own}; they write in these of yours: {}", shared.join(", ")),
    }
}

/// Which programs do not work behind the fence.
pub(super) fn sandboxes(context: &Context) -> CheckReply {
    let search = context.environment.path("PATH").unwrap_or_default();
    let is_there = |name: &&&str| {
        let mut places = std::env::split_paths(&search);
        places.any(|place: std::path::PathBuf| is_program(&place.join(name)))
    };
    let found = |names: &[&'static str]| -> Vec<&'static str> {
        names.iter().filter(is_there).copied().collect()
    };
    let (closed, browsers) = (found(&SANDBOXES), found(&BROWSERS));
    let mut parts = Vec::new();
    if !closed.is_empty() {
        parts.push(format!(
            "these do not work behind the fence: {}",
            closed.join(", ")
        ));
    }
    if !browsers.is_empty() {
        parts.push(format!(
            "these work there with `--no-sandbox`: {}",
            browsers.join(", ")
        ));
    }
    if parts.is_empty() {
        parts.push(
            "programs that build one do not work behind the fence; none that we know is installed"
                .to_owned(),
        );
    }
    check("sandboxes", Ok(parts.join("; ")))
}

fn is_program(path: &Path) -> bool {
    path.is_file()
}
