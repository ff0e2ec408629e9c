use proptest::prelude::*;

use super::*;

fn escaped(input: &str) -> String {
    line(input).text
}

/// Reads a shown text back, as the module says it can be.
fn read_back(shown: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = shown;
    while let Some(c) = rest.chars().next() {
        let known = |escape: &str| rest.starts_with(escape);
        let (length, read) = if known(r"\\") {
            (2, b"\\".to_vec())
        } else if known(r"\n") {
            (2, b"\n".to_vec())
        } else if known(r"\r") {
            (2, b"\r".to_vec())
        } else if known(r"\t") {
            (2, b"\t".to_vec())
        } else if known(r"\x") {
            (4, vec![u8::from_str_radix(&rest[2..4], 16).unwrap()])
        } else if known(r"\u{") {
            let end = rest.find('}').unwrap();
            let code = u32::from_str_radix(&rest[3..end], 16).unwrap();
            let c = char::from_u32(code).unwrap();
            (end + 1, c.to_string().into_bytes())
        } else {
            assert!(!known(r"\u"), "{shown:?}");
            (c.len_utf8(), c.to_string().into_bytes())
        };
        bytes.extend(read);
        rest = &rest[length..];
    }
    bytes
}

fn is_safe(text: &str) -> bool {
    text.chars().all(|c| {
        !c.is_control()
            && !matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            && !matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}' | '\u{fe00}'..='\u{fe0f}')
            && !matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e01ef}' | '\u{f0000}'..)
    })
}

#[test]
fn attacks_are_laid_bare() {
    use Hazard::*;
    let cases: [(&str, &str, &[Hazard]); 22] = [
        // Clear the screen, then say something nicer.
        ("rm -rf /\x1b[2K\rls", r"rm -rf /\u{1b}[2K\rls", &[Control]),
        // A link that shows one address and opens another (OSC 8).
        (
            "\x1b]8;;http://evil\x07ok\x1b]8;;\x07",
            r"\u{1b}]8;;http://evil\u{7}ok\u{1b}]8;;\u{7}",
            &[Control],
        ),
        // Write to the clipboard (OSC 52), with the one-character introducer.
        (
            "\u{9d}52;c;cm0=\u{9c}",
            r"\u{9d}52;c;cm0=\u{9c}",
            &[Control],
        ),
        ("a\x08b\x7f\0", r"a\u{8}b\u{7f}\u{0}", &[Control]),
        ("a\u{2028}b\u{85}c", r"a\u{2028}b\u{85}c", &[Control]),
        // Shown as `invoice_exe.pdf`.
        (
            "invoice_\u{202e}fdp.exe",
            r"invoice_\u{202e}fdp.exe",
            &[Bidi],
        ),
        (
            "a\u{2066}b\u{2069}c\u{200f}",
            r"a\u{2066}b\u{2069}c\u{200f}",
            &[Bidi],
        ),
        // Words that a search or a rule would miss.
        ("r\u{200b}m", r"r\u{200b}m", &[ZeroWidth]),
        (
            "pass\u{ad}word\u{2060}",
            r"pass\u{ad}word\u{2060}",
            &[ZeroWidth, Invisible],
        ),
        // Instructions to the next model, in tag characters.
        (
            "hi\u{e0068}\u{e0069}",
            r"hi\u{e0068}\u{e0069}",
            &[Invisible],
        ),
        (
            "a\u{a0}b\u{3000}c\u{3164}\u{2800}",
            r"a\u{a0}b\u{3000}c\u{3164}\u{2800}",
            &[Invisible],
        ),
        (
            "\u{e000}\u{fdd0}\u{10ffff}\u{378}",
            r"\u{e000}\u{fdd0}\u{10ffff}\u{378}",
            &[Unprintable],
        ),
        // Cyrillic `р` and `а`.
        ("раypal.com", r"\u{440}\u{430}ypal.com", &[Confusable]),
        ("аdmin_root", r"\u{430}dmin_root", &[Confusable]),
        (
            "p\u{200b}а\u{200b}ypal",
            r"p\u{200b}\u{430}\u{200b}ypal",
            &[ZeroWidth, Confusable],
        ),
        // Fullwidth, mathematical, dotless.
        ("ｒm", r"\u{ff52}m", &[Confusable]),
        ("𝐫m gıthub", r"\u{1d42b}m g\u{131}thub", &[Confusable]),
        // Marks without a letter, and too many of them.
        ("\u{301}a", r"\u{301}a", &[Marks]),
        (
            "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}",
            "e\u{301}\u{302}\u{303}\u{304}\\u{305}\\u{306}",
            &[Marks],
        ),
        ("\x1b\u{338}", r"\u{1b}\u{338}", &[Control, Marks]),
        // What imitates an escape.
        (r"\u{202e}", r"\\u{202e}", &[]),
        ("\\\x1b", r"\\\u{1b}", &[Control]),
    ];
    for (input, text, hazards) in cases {
        let shown = line(input);
        assert_eq!(shown.text, text, "{input:?}");
        assert_eq!(shown.hazards, hazards, "{input:?}");
    }
}

#[test]
fn honest_text_is_left_alone() {
    for text in [
        "",
        "cargo test -- --nocapture | tail -5",
        "Привет, мир",
        "Καλημέρα κόσμε",
        "naïve café, Ünïcödé, e\u{301}",
        "hjælp, œuvre, Straße, Łódź, smørrebrød",
        "你好，世界 こんにちは 안녕하세요",
        "שלום مرحبا हिन्दी ภาษาไทย",
        "done 🎉 🚀 5 µs, 3 €, a → b, “quoted” – it’s",
        "USB-кабель, PDF файл",
        r"C:\Users\Me, \d+\s, \",
    ] {
        let shown = line(text);
        assert_eq!(shown.text, text);
        assert_eq!(shown.hazards, []);
    }
}

#[test]
fn a_backslash_is_doubled_only_where_it_would_mislead() {
    assert_eq!(escaped(r"C:\temp\new"), r"C:\\temp\\new");
    assert_eq!(escaped(r"\\server\Share"), r"\\\server\Share");
    assert_eq!(escaped("a\\"), r"a\");
    assert_ne!(escaped("a\nb"), escaped(r"a\nb"));
}

#[test]
fn a_block_keeps_its_lines() {
    let input = "one\n\ttwo\r\nthree\u{85}";
    assert_eq!(block(input).text, "one\n\ttwo\\r\nthree\\u{85}");
    assert_eq!(line(input).text, r"one\n\ttwo\r\nthree\u{85}");
    assert_eq!(block("a\n\u{301}b").text, "a\n\\u{301}b");
    assert_eq!(block("plain\n").hazards, []);
}

#[test]
fn bytes_that_are_not_text_are_shown() {
    let shown = bytes_line(b"caf\xc3\xa9 \xff\xc3.txt\\\xfe");
    assert_eq!(shown.text, r"café \xff\xc3.txt\\\xfe");
    assert_eq!(shown.hazards, [Hazard::NotUtf8]);
    assert_eq!(bytes_line(br"\xff").text, r"\\xff");
}

#[test]
fn hazards_have_words_and_names() {
    assert_eq!(Hazard::Control.to_string(), "control characters");
    let json = serde_json::to_string(&Hazard::ZeroWidth).unwrap();
    assert_eq!(json, "\"zero_width\"");
}

#[test]
fn shortens_to_columns() {
    let cases = [
        ("", 0, ""),
        ("abc", 0, ""),
        ("abc", 1, "…"),
        ("abc", 2, "a…"),
        ("abc", 3, "abc"),
        ("äöü", 3, "äöü"),
        ("äöüß", 3, "äö…"),
    ];
    for (input, columns, expected) in cases {
        assert_eq!(shorten(input, columns), expected, "{input} {columns}");
    }
}

#[test]
fn no_single_character_slips_through() {
    for c in '\0'..=char::MAX {
        let input = c.to_string();
        let shown = escaped(&input);
        assert!(is_safe(&shown), "{c:?}");
        assert_eq!(read_back(&shown), input.as_bytes(), "{c:?}");
    }
}

/// Texts made mostly of what is hostile, or imitates escapes.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        prop::sample::select(vec![
            "\\", "\\", "n", "t", "r", "u", "x", "u{", "{", "}", "61", "ff", "a", "а", "е", "\n",
            "\r", "\t", "\x1b", "\u{202e}", "\u{200b}", "\u{301}", "\u{fe0f}", "é", " ", "🎉",
        ])
        .prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_unsafe_is_shown(input in hostile()) {
        prop_assert!(is_safe(&line(&input).text));
        prop_assert!(is_safe(&block(&input).text.replace(['\n', '\t'], "")));
    }

    #[test]
    fn every_text_can_be_read_back(input in hostile()) {
        prop_assert_eq!(read_back(&line(&input).text), input.as_bytes());
        prop_assert_eq!(read_back(&block(&input).text), input.as_bytes());
        prop_assert_eq!(bytes_line(input.as_bytes()), line(&input));
    }

    #[test]
    fn any_bytes_can_be_read_back(
        input in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'x')], 0..16),
    ) {
        let shown = bytes_line(&input).text;
        prop_assert!(is_safe(&shown));
        prop_assert_eq!(read_back(&shown), input);
    }

    #[test]
    fn different_texts_look_different(one in hostile(), other in hostile()) {
        prop_assert_eq!(one == other, line(&one).text == line(&other).text);
        prop_assert_eq!(one == other, block(&one).text == block(&other).text);
    }

    #[test]
    fn plain_ascii_stays_as_it_is(input in "[ -\\[\\]-~]{0,40}") {
        prop_assert_eq!(line(&line(&input).text), line(&input));
        prop_assert_eq!(line(&input).text, input);
    }
}
