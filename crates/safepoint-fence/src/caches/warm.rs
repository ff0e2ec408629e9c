//! What a user has downloaded once and programs only read: browsers, models. The private cache
//! shows it through links, so that an agent need not fetch it again.
//!
//! Agents write in the private cache. So everything here starts from a descriptor of it and
//! follows no link in it: a name that is taken stays as it is, and only links that lead to nothing
//! in the user's own cache are removed.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, readlinkat, symlinkat, unlinkat};

use super::private::make_folder;

/// Directories beneath a cache whose entries are shown, each by a link of its own, so that new
/// ones can be made beside them.
const DOWNLOADS: [&str; 14] = [
    "ms-playwright",
    "ms-playwright-go",
    "puppeteer/chrome",
    "puppeteer/chrome-headless-shell",
    "puppeteer/firefox",
    "Cypress",
    "electron",
    "huggingface/hub",
    "huggingface/datasets",
    "torch/hub/checkpoints",
    "whisper",
    "selenium/chrome",
    "selenium/chromedriver",
    "bazelisk/downloads",
];

/// More entries of one directory are not shown.
const MAX_ENTRIES: usize = 512;

/// Shows the downloads in `own`, and takes away links to those that are gone.
pub(super) fn freshen(private: &OwnedFd, own: &Path) {
    for path in DOWNLOADS {
        let from = own.join(path);
        let Some(names) = names_in(&from) else {
            continue;
        };
        // What is no directory of ours is left alone.
        let Some(folder) = make_folder(private, Path::new(path)) else {
            continue;
        };
        remove_broken(&folder, &from);
        for name in names {
            // One that is taken stays.
            let _ = symlinkat(from.join(&name), &folder, &name);
        }
    }
}

/// The entries of a directory of the user. Hidden ones are locks and notes of a tool, which it
/// wants to write.
fn names_in(directory: &Path) -> Option<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let names = entries.map(|entry| PathBuf::from(entry.file_name()));
    let shown = names.filter(|name| !name.as_os_str().as_bytes().starts_with(b"."));
    Some(shown.take(MAX_ENTRIES).collect())
}

fn remove_broken(folder: &OwnedFd, from: &Path) {
    let Ok(entries) = Dir::read_from(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(target) = readlinkat(folder, entry.file_name(), Vec::new()) else {
            continue; // no link
        };
        let target = Path::new(OsStr::from_bytes(target.to_bytes()));
        let is_gone = target.parent() == Some(from) && target.symlink_metadata().is_err();
        if is_gone {
            let _ = unlinkat(folder, entry.file_name(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make files")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::private;
    use super::*;

    #[test]
    fn fe_07_downloads_of_the_user_are_seen_in_the_private_cache_and_follow_what_is_there() {
        let place = tempfile::tempdir().unwrap();
        let (own, agents) = (place.path().join("own"), place.path().join("agents"));
        let browser = own.join("ms-playwright/chromium-1");
        fs::create_dir_all(&browser).unwrap();
        fs::write(browser.join("chrome"), "browser").unwrap();
        fs::create_dir_all(own.join("pip/http")).unwrap();
        let folder = private::open(&agents).unwrap();
        freshen(&folder, &own);
        freshen(&folder, &own);
        let seen = agents.join("ms-playwright/chromium-1");
        assert_eq!(fs::read_link(&seen).unwrap(), browser);
        assert_eq!(fs::read(seen.join("chrome")).unwrap(), b"browser");
        // What tools write is not shown.
        assert!(!agents.join("pip").exists());

        fs::rename(&browser, own.join("ms-playwright/chromium-2")).unwrap();
        freshen(&folder, &own);
        assert!(seen.symlink_metadata().is_err());
        assert!(agents.join("ms-playwright/chromium-2/chrome").exists());
    }

    #[test]
    fn fe_07_what_agents_put_into_the_private_cache_leads_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let (own, agents) = (place.path().join("own"), place.path().join("agents"));
        let victim = place.path().join("victim");
        for path in [
            own.join("ms-playwright/chromium-1"),
            own.join("Cypress/13"),
            own.join("whisper"),
            agents.join("whisper"),
            victim.clone(),
        ] {
            fs::create_dir_all(path).unwrap();
        }
        fs::write(own.join("whisper/small.pt"), "own").unwrap();
        fs::write(agents.join("whisper/small.pt"), "agent").unwrap();
        // A link in the place of a directory, a broken one of another kind, and a file.
        symlink(&victim, agents.join("ms-playwright")).unwrap();
        symlink("/absent", agents.join("whisper/other")).unwrap();
        fs::write(agents.join("Cypress"), "a file").unwrap();
        let folder = private::open(&agents).unwrap();
        freshen(&folder, &own);
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
        assert_eq!(fs::read(agents.join("Cypress")).unwrap(), b"a file");
        assert_eq!(fs::read(agents.join("whisper/small.pt")).unwrap(), b"agent");
        assert_eq!(fs::read(own.join("whisper/small.pt")).unwrap(), b"own");
        assert!(agents.join("whisper/other").symlink_metadata().is_ok());
    }
}
