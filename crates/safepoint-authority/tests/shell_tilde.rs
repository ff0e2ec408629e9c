//! Tildes: ours against those of the bash that is here.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{HOME, held, understand};
use safepoint_authority::{Program, Programs, Surroundings, Where};

/// Every program is there, and the accounts are those that bash is asked about.
struct Everything;

impl Programs for Everything {
    fn find(&self, name: &str, _: &Path) -> Program {
        Program::System(Path::new("/usr/bin").join(name))
    }

    fn home_variable(&self) -> Option<OsString> {
        Some(HOME.into())
    }

    fn home_of(&self, account: &str) -> Option<PathBuf> {
        (account == "root").then(|| "/root".into())
    }
}

/// What `rm WORD` deletes, called in `/`; `None` where that is not known.
fn ours(word: &str) -> Option<Vec<Where>> {
    let around = Surroundings {
        programs: &Everything,
        directory: Path::new("/"),
        home: Some(Path::new(HOME)),
        own: &[],
    };
    let understood = safepoint_authority::shell::line(&format!("rm {word}"), &around);
    let mut places = Vec::new();
    for deed in understood.deeds {
        if deed.action == "shell.opaque" {
            return None;
        }
        for touch in deed.touches {
            match touch.place {
                Where::Unknown(_) => return None,
                place => places.push(place),
            }
        }
    }
    Some(places)
}

/// The same, as bash expands each of these words.
fn of_bash(words: &[String]) -> Vec<BTreeSet<PathBuf>> {
    let print = |word: &String| format!("printf '%s\\0' {word}; printf '\\1'; ");
    let script: String = words.iter().map(print).collect();
    let output = Command::new("bash")
        .args(["-c", &script])
        .env_clear()
        .env("HOME", HOME)
        .current_dir("/")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let one = |printed: &str| {
        let words = printed.split_terminator('\0').filter(|it| !it.is_empty());
        words.map(|word| Path::new("/").join(word)).collect()
    };
    text.split_terminator('\u{1}').map(one).collect()
}

#[test]
fn au_04_each_tilde_is_what_bash_makes_of_it_or_unknown() {
    let mut words = Vec::new();
    for start in [
        "", "x", "a=", "a.b=", "o/a=", "a[1]=", "a+=", "a=b:", "a=b=", "b:", "b:c=", "{", "x{",
        "{x,", "{a,b}=", "a={x,", "a=b:{x,", "\"\"", "''", "\"a\"=", "\\x", "x,", "=", "a==",
        "a={x}:", "{{", "a=~:", "{x,}", "{,x}", "{'',x}", "{a=", "a=\"b\":", "a=$E:", "$E", "{$E,",
    ] {
        for tilde in [
            "~",
            "~root",
            "~+",
            "~no-such-account",
            "\\~",
            "\"~\"",
            "~\"x\"",
            "~$E",
        ] {
            for end in [
                "", "/f", "/{f,g}", ":~/g", ":/g", "\"/f\"", ",y}", "/f,~/g}", "/f,y}/z", "{,x}/f",
                "=~/x", "x~",
            ] {
                words.push(format!("{start}{tilde}{end}"));
            }
        }
    }
    let expected: Vec<_> = words.chunks(500).flat_map(of_bash).collect();
    assert_eq!(expected.len(), words.len());
    let mut known = 0;
    for (word, expected) in words.iter().zip(&expected) {
        let Some(found) = ours(word) else { continue };
        known += 1;
        let covers = |path: &PathBuf| {
            let mut places = found.iter();
            places.any(|place| match place {
                Where::Exact(exact) => exact == path,
                Where::Below(above) => path.starts_with(above),
                Where::Unknown(_) => false,
            })
        };
        assert!(
            expected.iter().all(covers),
            "{word}: {expected:?} {found:?}"
        );
        for place in &found {
            let is_meant = match place {
                Where::Exact(exact) => expected.contains(exact),
                Where::Below(_) | Where::Unknown(_) => true,
            };
            assert!(is_meant, "{word}: {expected:?} {found:?}");
        }
    }
    assert!(
        known * 4 > words.len(),
        "{known} of {} are known",
        words.len()
    );
}

#[test]
fn au_04_a_tilde_inside_of_a_word_reaches_the_home() {
    for line in [
        "rm {~/f1,~/f2}",
        "touch {~/m1,~/m2}",
        "sed -i s/v/W/ {~/f3,a.txt}",
        "rm -rf {~spB/f8,x}",
        "dd if=a of=~/f1",
        "env X=1 dd if=a of=~/f4",
        "P=(x [1]=~/f2); rm ${P[1]}",
        "P=(x [1]=/etc/f2); rm ${P[1]}",
        "rm -rf {~/.local/share/safepoint/none,x}",
        "cp a.txt {~/.bashrc,}",
        "for f in {~/f1,~/f2}; do rm $f; done",
        "PWD=/etc; rm ~+/f",
        "echo x > {~/f,x}",
        "tee {a,~}/f",
        "touch a~ {x,}~/f",
    ] {
        assert!(!held(&understand(line)).is_empty(), "{line}");
    }
    // What no shell expands is a name like any other.
    for line in [
        "git show HEAD~1",
        "git diff HEAD~2..HEAD~1",
        "rm a~ x.~1~",
        "touch '~/f' \"~\"/f \\~/f",
        "[[ a =~ b ]] && ls",
    ] {
        assert!(
            held(&understand(line)).is_empty(),
            "{line}: {:?}",
            held(&understand(line))
        );
    }
}
