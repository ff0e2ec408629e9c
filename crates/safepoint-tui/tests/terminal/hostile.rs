//! Text from outside never draws on the screen, wherever it comes from.

use std::collections::{BTreeMap, BTreeSet};

use crate::holds;
use crate::support::{Bench, before, plain};
use safepoint_authority::{Basis, Hold, Level};
use safepoint_tui::{Event, Key, Moment};

/// What must never reach a cell.
const HOSTILE: [char; 22] = [
    '\0',
    '\x07',
    '\x08',
    '\t',
    '\n',
    '\r',
    '\x1b',
    '\x7f',
    '\u{85}',
    '\u{9b}',
    '\u{ad}',
    '\u{61c}',
    '\u{200b}',
    '\u{200d}',
    '\u{200e}',
    '\u{202e}',
    '\u{2028}',
    '\u{2066}',
    '\u{2069}',
    '\u{feff}',
    '\u{fe0f}',
    '\u{e0041}',
];

/// A hold with `text` in every place that an agent, a policy or the world can fill.
fn full_of(text: &str) -> Hold {
    let mut hold = holds::final_hold(2, before(90));
    hold.canonical.argv = vec![text.to_owned(), format!("--x={text}")];
    hold.canonical.environment = BTreeMap::from([(text.to_owned(), text.to_owned())]);
    hold.canonical.actions = BTreeSet::from([text.to_owned()]);
    hold.canonical.hosts = BTreeSet::from([text.to_owned()]);
    hold.canonical.remainder = BTreeSet::from([text.to_owned()]);
    hold.canonical.provider = Some(text.to_owned());
    hold.canonical.directory.path = format!("/srv/{text}");
    hold.canonical.workspace.path = format!("/srv/{text}");
    hold.canonical.paths[0].path = format!("/srv/{text}/file");
    hold.basis = vec![Basis {
        policy_id: text.to_owned(),
        atlas_id: Some(text.to_owned()),
        reason: text.to_owned(),
    }];
    hold.scope_delta.actions = BTreeSet::from([text.to_owned()]);
    hold.scope_delta.paths = BTreeSet::from([format!("/{text}")]);
    hold.scope_delta.hosts = BTreeSet::from([text.to_owned()]);
    hold.coverage.checkpoint_id = Some(text.to_owned());
    hold.coverage.covered = vec![text.to_owned()];
    hold.coverage.not_covered = vec![text.to_owned()];
    hold.trust = BTreeMap::from([(text.to_owned(), (Level::Untrusted, 1))]);
    hold.proposer.actor = text.to_owned();
    hold.proposer.objective = Some(text.to_owned());
    holds::seal(hold)
}

/// Looks at every page from top to bottom.
fn look_at_all(bench: &mut Bench, look: &mut dyn FnMut(&Bench)) {
    for tab in ['d', 'c', 't', 'i'] {
        bench.key(tab);
        bench.key('g');
        loop {
            look(bench);
            if bench.drawn.top + bench.drawn.height >= bench.drawn.total {
                break;
            }
            bench.key(' ');
        }
    }
}

#[test]
fn au_40_no_hidden_character_reaches_a_cell_from_any_field() {
    // Several at once: every cell is looked at for all of them.
    for hostile in HOSTILE.chunks(4) {
        let hostile: String = hostile.iter().flat_map(|c| [*c, 'x']).collect();
        let text = format!("a{hostile}b");
        let hold = full_of(&text);
        let id = hold.hold_id.clone();
        let word = hold.confirm().unwrap();
        let mut bench = Bench::new((100, 30), &[hold]);
        let mut looks = 0;
        let mut look = |bench: &Bench| {
            looks += 1;
            let cells = &bench.terminal.backend().buffer().content;
            for cell in cells {
                let bad = |c: char| c.is_control() || HOSTILE.contains(&c);
                assert!(
                    !cell.symbol().contains(bad),
                    "{hostile:?}\n{}",
                    bench.screen()
                );
            }
            assert!(bench.shows("⚠"), "{hostile:?}\n{}", bench.screen());
        };
        look_at_all(&mut bench, &mut look);
        bench.key('c');
        bench.happen(Event::Preview(
            id.clone(),
            Ok(vec![text.clone(), format!("+{text}")]),
        ));
        look(&bench);
        bench.happen(Event::Preview(id.clone(), Err(text.clone())));
        look(&bench);
        bench.key('t');
        let moment = Moment {
            time: before(1),
            kind: text.clone(),
            text: text.clone(),
        };
        bench.happen(Event::Timeline(id, Ok(vec![moment])));
        look(&bench);
        for answer in [Ok(text.clone()), Err(text.clone())] {
            bench.happen(Event::Decided(answer));
            look(&bench);
        }
        bench.happen(Event::Queue(Err(text.clone())));
        look(&bench);
        bench.queue(&[full_of(&text)]);
        bench.key('d');
        bench.read_all();
        bench.wait(2_000);
        bench.key('e');
        look(&bench);
        bench.press(Key::Escape);
        bench.key('y');
        assert!(bench.shows(&word));
        look(&bench);
        assert!(looks > 12, "{looks}");
    }
}

#[test]
fn au_40_no_text_can_look_as_if_it_began_a_row_of_its_own() {
    // Blanks, so that the rest would begin a line, where a value would be.
    for blanks in (0..12).chain(44..62) {
        let script = format!("ok{}risk: \"low\"", " ".repeat(blanks));
        let hold = holds::hold(1, before(9), &["sh", "-c", &script]);
        let mut bench = Bench::new((72, 90), &[hold]);
        let mut found = 0;
        look_at_all(&mut bench, &mut |bench| {
            for line in bench.screen().lines() {
                let begins = line.trim_start().starts_with("risk: \"low\"");
                assert!(!begins, "{blanks}\n{}", bench.screen());
                found += usize::from(line.contains("risk: \"low\""));
            }
        });
        // Where it is not broken in two it is seen, behind its quote or its sign.
        assert!(found > 0 || blanks > 12, "{blanks}");
    }
}

#[test]
fn au_40_long_and_wide_texts_are_shown_to_the_last_character() {
    let long = format!("{}END", "日本語-x".repeat(300));
    let hold = holds::hold(1, before(9), &["echo", &long]);
    let mut bench = Bench::new((73, 24), &[hold]);
    let mut ends = 0;
    look_at_all(&mut bench, &mut |bench| {
        ends += bench.screen().matches("END").count();
    });
    assert!(
        ends >= 2,
        "once in the summary and once in the form: {ends}"
    );
    // On screen the queue and the card cut it, and say so.
    bench.key('g');
    assert!(bench.shows("…"));
}

#[test]
fn au_40_nothing_stays_behind_when_wide_texts_scroll() {
    let long = "日本語-x-".repeat(60);
    let hold = holds::hold(1, before(9), &["echo", &long, "b", "c"]);
    let mut bench = Bench::new((72, 24), std::slice::from_ref(&hold));
    for step in 0..60 {
        let way = if step < 25 {
            'j'
        } else {
            ['k', 'n', '?', ' ', 'b'][step % 5]
        };
        bench.key(way);
        bench.press(Key::Escape);
        let mut fresh = Bench::new((72, 24), std::slice::from_ref(&hold));
        while fresh.drawn.top < bench.drawn.top {
            let missing = bench.drawn.top - fresh.drawn.top;
            fresh.happen(Event::Keys(vec![Key::Down; missing]));
        }
        let page = |bench: &Bench| -> Vec<String> {
            let screen = bench.screen();
            screen.lines().skip(8).take(12).map(str::to_owned).collect()
        };
        // Only this screen has a history that could have left something behind.
        fresh.terminal.clear().unwrap();
        fresh.draw();
        assert_eq!(page(&bench), page(&fresh), "{step}");
    }
}

#[test]
fn au_40_wide_texts_do_not_cover_the_border_of_a_question() {
    for shift in ["", "x"] {
        let long = format!("{shift}{}", "日本語".repeat(300));
        // The queue lies left of the question and below its border.
        let holds: Vec<Hold> = (0..12)
            .map(|number| holds::hold(number, before(9), &["echo", &long]))
            .collect();
        let mut bench = Bench::new((110, 24), &holds);
        bench.key('n');
        let screen = bench.screen();
        let inside = screen.lines().skip_while(|line| !line.contains('╔'));
        let inside: Vec<&str> = inside.take_while(|line| !line.contains('╚')).collect();
        assert!(inside.len() > 5, "{screen}");
        for line in &inside[1..] {
            assert_eq!(line.matches('║').count(), 2, "{screen}");
        }
    }
}

#[test]
fn au_40_a_reason_with_strange_keys_is_shown_escaped() {
    let mut bench = Bench::new((72, 24), &[plain(1, 150)]);
    bench.key('n');
    bench.type_in("a\u{202e}b");
    assert!(bench.shows(r"> a\u{202e}b"), "{}", bench.screen());
    let long = "x".repeat(500);
    bench.type_in(&long);
    assert!(bench.shows("> …xxx"));
}
