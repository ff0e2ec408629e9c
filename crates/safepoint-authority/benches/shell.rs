//! How long it takes to understand a line, and what a new process pays first.
//!
//! `cargo bench -p safepoint-authority --bench shell`. Each figure is the best
//! of several rounds, in microseconds for one line. Nothing is judged here: the
//! figures are for people.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use safepoint_authority::{Program, Programs, Surroundings, shell};

struct Machine;

impl Programs for Machine {
    fn find(&self, name: &str, _: &Path) -> Program {
        Program::System(Path::new("/usr/bin").join(name))
    }
}

const LINES: [&str; 10] = [
    "ls -la",
    "git status --short && git diff --stat",
    "cd /work/app && cargo test 2>&1 | tail -20",
    "grep -rn \"fn main\" --include='*.rs' src | head -20",
    "sed -n '1,80p' src/main.rs",
    "for f in src/*.rs; do wc -l \"$f\"; done",
    "git add -A && git commit -m \"$(cat <<'EOF'\nfix: login (again)\n\nIt's done.\nEOF\n)\"",
    "cat > src/new.rs <<'EOF'\nfn main() {\n    println!(\"hello\");\n}\nEOF",
    "find . -name '*.ts' -not -path './node_modules/*' | xargs grep -l useState",
    "curl -s http://localhost:3000/api | jq '.items[0]' > out.json",
];

fn main() {
    let own = [PathBuf::from("/home/sam/.local/share/safepoint")];
    let around = Surroundings {
        programs: &Machine,
        directory: Path::new("/work/app"),
        home: Some(Path::new("/home/sam")),
        own: &own,
    };
    println!("\nfirst: in a new process, with the tables");
    for line in LINES.into_iter().take(2) {
        let start = Instant::now();
        black_box(shell::line(line, &around));
        show(line, start.elapsed().as_secs_f64() * 1e6);
    }
    println!("\nlines");
    let mut total = 0.0;
    for line in LINES {
        let mut best = f64::MAX;
        for _ in 0..20 {
            let start = Instant::now();
            for _ in 0..100 {
                black_box(shell::line(black_box(line), &around));
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e4);
        }
        show(line, best);
        total += best;
    }
    show("mean", total / 10.0);
}

fn show(name: &str, microseconds: f64) {
    let name: String = name
        .chars()
        .map(|letter| if letter == '\n' { '⏎' } else { letter })
        .take(58)
        .collect();
    println!("{name:<58} {microseconds:>10.1} µs");
}
