//! What the operator sees, as whole screens, on a narrow window and on a wide one.

use crate::holds::{final_hold, hostile_hold};
use crate::support::{Bench, before, plain, verdict};
use safepoint_authority::Hold;
use safepoint_tui::{Event, Key, Moment};

const SIZES: [(u16, u16); 2] = [(72, 24), (120, 40)];

fn three() -> Vec<Hold> {
    vec![
        plain(1, 150),
        final_hold(2, before(90)),
        hostile_hold(3, before(20)),
    ]
}

/// Takes a picture at both sizes, after `act`.
fn pictures(name: &str, holds: &[Hold], act: impl Fn(&mut Bench)) {
    for (width, height) in SIZES {
        let mut bench = Bench::new((width, height), holds);
        act(&mut bench);
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), bench.screen());
    }
}

#[test]
fn au_40_an_empty_queue_says_so() {
    pictures("empty", &[], |_| {});
}

#[test]
fn au_40_the_queue_and_the_oldest_hold() {
    pictures("three", &three(), |_| {});
}

#[test]
fn au_40_the_end_of_the_canonical_form() {
    pictures("form_end", &three(), |bench| bench.read_all());
}

#[test]
fn au_40_hostile_text_is_escaped_and_flagged() {
    pictures("hostile", &[hostile_hold(3, before(20))], |_| {});
    pictures("hostile_form", &[hostile_hold(3, before(20))], |bench| {
        while !bench.shows("environment:") {
            bench.key('j');
        }
    });
}

#[test]
fn au_40_help_lies_over_the_rest_and_goes_away() {
    pictures("help", &three(), |bench| {
        bench.key('?');
    });
    let mut bench = Bench::new((72, 20), &three());
    let before = bench.screen();
    bench.key('?');
    assert!(bench.shows("q        quit"), "{}", bench.screen());
    assert!(bench.shows("y        approve"));
    bench.key('y');
    assert_eq!(bench.screen(), before);
    // What came along with the key is not for what it opened.
    bench.happen(Event::Keys(vec![Key::Char('?'), Key::Down]));
    assert!(bench.shows("q        quit"));
}

#[test]
fn au_40_what_would_change_is_a_diff() {
    pictures("change", &three(), |bench| {
        bench.key('c');
        let lines = [
            "--- a/index.html",
            "+++ b/index.html",
            "@@ -1,2 +1,2 @@",
            "-\t<p>Winter</p>",
            "+\t<p>Spring\u{202e}</p>\r",
            " </body>",
        ];
        let lines = lines.map(str::to_owned).to_vec();
        let hold = plain(1, 150).hold_id;
        bench.happen(Event::Preview(hold, Ok(lines)));
    });
}

#[test]
fn au_40_the_timeline_and_the_context() {
    pictures("timeline", &three(), |bench| {
        bench.key('t');
        let moment = |seconds, kind: &str, text: &str| Moment {
            time: before(seconds),
            kind: kind.to_owned(),
            text: text.to_owned(),
        };
        let moments = vec![
            moment(90_000, "session_began", "agent:writer"),
            moment(160, "action_held", "git commit\x1b[2J"),
        ];
        let hold = plain(1, 150).hold_id;
        bench.happen(Event::Timeline(hold, Ok(moments)));
    });
    // It stays with the newest, unless the operator goes back.
    let mut bench = Bench::new((72, 24), &three());
    let hold = plain(1, 150).hold_id;
    let read = |bench: &mut Bench, count: usize| {
        let moments = (0..count).map(|number| Moment {
            time: before(60),
            kind: "noted".to_owned(),
            text: format!("number {number}."),
        });
        bench.happen(Event::Timeline(hold.clone(), Ok(moments.collect())));
    };
    bench.key('t');
    read(&mut bench, 100);
    assert!(bench.shows("number 99."));
    read(&mut bench, 101);
    assert!(bench.shows("number 100."));
    bench.key('k');
    read(&mut bench, 110);
    assert!(bench.shows("number 99.") && !bench.shows("number 109."));
    bench.key('G');
    read(&mut bench, 120);
    assert!(bench.shows("number 119."));

    pictures("context", &three(), |bench| {
        bench.key('i');
    });
}

#[test]
fn au_20_the_second_confirmation_shows_its_word() {
    pictures("word", &[final_hold(2, before(90))], |bench| {
        bench.read_all();
        bench.key('y');
        bench.type_in("fin");
    });
}

#[test]
fn au_22_a_denial_asks_for_a_reason_and_an_envelope_is_shown() {
    pictures("reason", &three(), |bench| {
        bench.key('n');
        bench.type_in("not before the holidays");
    });
    pictures("envelope", &three(), |bench| {
        bench.read_all();
        bench.key('e');
    });
}

#[test]
fn au_40_from_72_by_20_upwards_what_matters_is_in_view() {
    for (width, height) in [(72, 20), (80, 24), (100, 30), (140, 45), (250, 70)] {
        let mut bench = Bench::new((width, height), &[final_hold(2, before(90))]);
        for tab in ['d', 'c', 't', 'i'] {
            bench.key(tab);
            for text in [
                "git push --force origin main",
                "HIGH (3 of 4)",
                "✗ CANNOT be undone",
                "expires in",
                "0 of 2 operators",
                "y approve",
                "n deny",
                "q quit",
            ] {
                assert!(
                    bench.shows(text),
                    "{text} {width} {tab}\n{}",
                    bench.screen()
                );
            }
        }
        bench.key('d');
        bench.read_all();
        bench.key('y');
        let word = final_hold(2, before(90)).confirm().unwrap();
        assert!(bench.shows(&word), "{}", bench.screen());
    }
    for (width, height) in [(71, 24), (72, 19), (5, 2), (1, 1)] {
        let mut bench = Bench::new((width, height), &three());
        bench.key('y');
        assert!(bench.drawn.too_small);
        assert!(!bench.shows("y approve"));
    }
    // What was read before it became small can be decided when it is large again.
    let mut bench = Bench::new((72, 24), &three());
    bench.read_all();
    bench.resize(60, 15);
    for key in ['y', 'n'] {
        assert!(bench.key(key).is_empty());
    }
    bench.resize(72, 24);
    assert!(bench.shows("too small to decide"));
    assert!(verdict(&bench.key('y')).is_some());
}

#[test]
fn au_40_a_resize_keeps_the_place_and_what_was_read() {
    let mut bench = Bench::new((72, 24), &three());
    while !bench.shows("environment:") {
        bench.key('j');
    }
    for (width, height) in [(120, 24), (200, 26), (30, 10), (80, 24), (72, 24)] {
        bench.resize(width, height);
        let too_small = width < 72;
        assert_eq!(bench.shows("window is"), too_small);
        assert!(
            too_small || bench.shows("environment:"),
            "{}",
            bench.screen()
        );
    }
    assert!(bench.shows("before you approve"));
    bench.read_all();
    assert!(bench.shows("✓ Read to the end"));
    bench.resize(90, 30);
    bench.press(Key::Home);
    assert!(bench.shows("✓ Read to the end"));
}

#[test]
fn au_40_a_queue_that_cannot_be_read_is_said_and_decides_nothing() {
    let mut bench = Bench::new((72, 24), &three());
    bench.read_all();
    bench.happen(Event::Queue(Err(
        "the control plane is gone\x1b[2J".to_owned()
    )));
    assert!(bench.shows("NOT LIVE"));
    assert!(bench.shows(r"gone\u{1b}[2J"), "{}", bench.screen());
    assert!(bench.key('y').is_empty());
    // A long reason is cut, and that is seen.
    let long = "why ".repeat(500);
    bench.happen(Event::Queue(Err(long)));
    assert!(bench.shows("why …"), "{}", bench.screen());
    bench.queue(&three());
    assert!(!bench.shows("NOT LIVE"));
    assert!(verdict(&bench.key('y')).is_some());
}

#[test]
fn au_40_no_colour_is_needed() {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::style::Color;
    use safepoint_tui::{Palette, View};
    let bench = Bench::new((72, 24), &three());
    let mut terminal = Terminal::new(TestBackend::new(72, 24)).unwrap();
    let mut view = View::new(Palette::None);
    terminal
        .draw(|frame| {
            view.draw(&bench.app, frame);
        })
        .unwrap();
    let plain = terminal.backend().buffer();
    let coloured = bench.terminal.backend().buffer();
    let is_plain =
        |cell: &ratatui::buffer::Cell| cell.fg == Color::Reset && cell.bg == Color::Reset;
    assert!(plain.content.iter().all(is_plain));
    assert!(!coloured.content.iter().all(is_plain));
    // The same words and signs, with and without.
    let symbols = |buffer: &ratatui::buffer::Buffer| -> Vec<String> {
        let cells = buffer.content.iter();
        cells.map(|cell| cell.symbol().to_owned()).collect()
    };
    assert_eq!(symbols(plain), symbols(coloured));
    // Red and green are told apart by too few.
    let confusing = [Color::Red, Color::Green, Color::LightRed, Color::LightGreen];
    let cells = &coloured.content;
    assert!(!cells.iter().any(|cell| confusing.contains(&cell.fg)));
}
