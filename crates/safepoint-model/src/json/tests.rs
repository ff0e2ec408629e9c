//! RFC 8785's own vectors, a second implementation, and every refusal with its place.

use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::write::ecmascript;
use super::*;

fn strict(input: &str) -> Value {
    read(input.as_bytes(), Limits::default()).unwrap()
}

fn canonical_text(input: &str) -> String {
    String::from_utf8(canonical(&strict(input)).unwrap()).unwrap()
}

mod rfc_8785 {
    use super::*;

    #[test]
    fn tr_02_sections_3_2_2_and_3_2_3() {
        let input = r#"{
          "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false]
        }"#;
        assert_eq!(
            canonical_text(input),
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
    }

    #[test]
    fn tr_02_section_3_2_3_keys_sort_by_utf_16() {
        let input = r#"{
          "\u20ac": "Euro Sign",
          "\r": "Carriage Return",
          "\ufb33": "Hebrew Letter Dalet With Dagesh",
          "1": "One",
          "\ud83d\ude00": "Emoji: Grinning Face",
          "\u0080": "Control",
          "\u00f6": "Latin Small Letter O With Diaeresis"
        }"#;
        let expected = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
            \"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\
            \"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}";
        assert_eq!(canonical_text(input), expected);
        assert_eq!(canonical_of(&strict(input)).unwrap(), expected.as_bytes());
    }

    #[test]
    fn tr_02_appendix_b_numbers() {
        let table = [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ];
        for (bits, expected) in table {
            let number = f64::from_bits(bits);
            assert_eq!(ecmascript(number), expected, "{bits:016x}");
            // What would be spelled out as an integer that doubles do not keep is refused.
            match canonical(&json!(number)) {
                Ok(bytes) => assert_eq!(bytes, expected.as_bytes()),
                Err(error) => {
                    assert!(matches!(error, WriteError::IntegerOutOfRange { .. }));
                    let integer = expected.parse::<i128>().unwrap();
                    assert!(integer.unsigned_abs() > u128::from(MAX_INTEGER));
                }
            }
        }
        for bits in [
            0x7fff_ffff_ffff_ffff_u64,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
        ] {
            let number = f64::from_bits(bits);
            assert_eq!(canonical_of(&number), Err(WriteError::NotFinite));
            assert_eq!(canonical_of(&[Some(number)]), Err(WriteError::NotFinite));
        }
    }

    /// The test data that the authors of the RFC publish beside it.
    #[test]
    fn tr_02_published_test_data() {
        let cases = [
            (
                r#"[ 56, { "d": true, "10": null, "1": [ ] } ]"#,
                r#"[56,{"1":[],"10":null,"d":true}]"#,
            ),
            (
                r#"{"peach": "This sorting order", "péché": "is wrong according to French",
                    "pêche": "but canonicalization MUST", "sin":   "ignore locale"}"#,
                r#"{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}"#,
            ),
            (
                r#"{"1": {"f": {"f": "hi","F": 5} ,"\n": 56.0}, "10": { }, "": "empty",
                    "a": { }, "111": [ {"e": "yes","E": "no" } ], "A": { }}"#,
                r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}"#,
            ),
            (
                r#"{"Unnormalized Unicode":"A\u030a"}"#,
                "{\"Unnormalized Unicode\":\"A\u{30a}\"}",
            ),
            (
                r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\u000a": "Newline",
                    "1": "One", "\u0080": "Control\u007f", "\ud83d\ude02": "Smiley",
                    "\u00f6": "Latin Small Letter O With Diaeresis",
                    "\ufb33": "Hebrew Letter Dalet With Dagesh", "</script>": "Browser Challenge"}"#,
                "{\"\\n\":\"Newline\",\"\\r\":\"Carriage Return\",\"1\":\"One\",\
                 \"</script>\":\"Browser Challenge\",\"\u{80}\":\"Control\u{7f}\",\
                 \"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\
                 \"😂\":\"Smiley\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
            ),
        ];
        for (input, expected) in cases {
            assert_eq!(canonical_text(input), expected);
        }
    }
}

mod refusals {
    use super::*;

    #[track_caller]
    fn refused(input: &[u8], limits: Limits, message: &str, offset: usize) {
        let error = read(input, limits).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.offset, offset, "{message}");
    }

    #[test]
    fn tr_02_each_refusal_has_its_place() {
        let cases: [(&str, &str, usize); 41] = [
            (
                "",
                "document ends where a value was expected at line 1 column 1",
                0,
            ),
            (
                " \n ",
                "document ends where a value was expected at line 2 column 2",
                3,
            ),
            (
                "\u{feff}1",
                "document begins with a byte order mark, which JSON does not have at line 1 column 1",
                0,
            ),
            (
                "1 2",
                "found `2` where the end of the document was expected at line 1 column 3",
                2,
            ),
            (
                "nullx",
                "found `x` where the end of the document was expected at line 1 column 5",
                4,
            ),
            (
                "nul",
                "found `n` where a value was expected at line 1 column 1",
                0,
            ),
            (
                "NaN",
                "found `N` where a value was expected at line 1 column 1",
                0,
            ),
            (
                "[Infinity]",
                "found `I` where a value was expected at line 1 column 2 (in `/0`)",
                1,
            ),
            (
                "+1",
                "found `+` where a value was expected at line 1 column 1",
                0,
            ),
            (
                ".5",
                "found `.` where a value was expected at line 1 column 1",
                0,
            ),
            (
                "1.",
                "document ends where a digit was expected at line 1 column 3",
                2,
            ),
            (
                "1.e3",
                "found `e` where a digit was expected at line 1 column 3",
                2,
            ),
            (
                "[1e]",
                "found `]` where a digit was expected at line 1 column 4 (in `/0`)",
                3,
            ),
            (
                "-",
                "document ends where a digit was expected at line 1 column 2",
                1,
            ),
            (
                "01",
                "number begins with a needless `0`, which some readers take for octal at line 1 column 1",
                0,
            ),
            (
                "[-00]",
                "number begins with a needless `0`, which some readers take for octal at line 1 column 2 (in `/0`)",
                1,
            ),
            (
                "0x1f",
                "found `x` where the end of the document was expected at line 1 column 2",
                1,
            ),
            (
                "// no\n1",
                "found `/` where a value was expected at line 1 column 1",
                0,
            ),
            (
                "[1, /* no */ 2]",
                "found `/` where a value was expected at line 1 column 5 (in `/1`)",
                4,
            ),
            (
                "[1,]",
                "found `]` where a value was expected at line 1 column 4 (in `/1`)",
                3,
            ),
            (
                "[1 2]",
                "found `2` where `,` or `]` was expected at line 1 column 4",
                3,
            ),
            (
                "[1",
                "document ends where `,` or `]` was expected at line 1 column 3",
                2,
            ),
            (
                "{\"a\":1,}",
                "found `}` where a key in double quotes was expected at line 1 column 8",
                7,
            ),
            (
                "{a:1}",
                "found `a` where a key in double quotes was expected at line 1 column 2",
                1,
            ),
            (
                "{\"a\" 1}",
                "found `1` where `:` was expected at line 1 column 6 (in `/a`)",
                5,
            ),
            (
                "{\"a\":[{\"b\":1 \"c\":2}]}",
                "found `\"` where `,` or `}` was expected at line 1 column 14 (in `/a/0`)",
                13,
            ),
            (
                "{\"a\":\n {\"é\":1,\n  \"\\u00e9\":2}}",
                "key `é` occurs twice, and readers disagree on which counts at line 3 column 3 (in `/a`)",
                18,
            ),
            (
                "{\"a/b~c\":[x]}",
                "found `x` where a value was expected at line 1 column 11 (in `/a~1b~0c/0`)",
                10,
            ),
            (
                "{\"\\u001b\":x}",
                "found `x` where a value was expected at line 1 column 11 (in `/\\u{1b}`)",
                10,
            ),
            (
                "[\"é\n\"]",
                "string contains the control character `\\n`, which must be escaped at line 1 column 4 (in `/0`)",
                4,
            ),
            (
                "\"a\tb\"",
                "string contains the control character `\\t`, which must be escaped at line 1 column 3",
                2,
            ),
            (
                "\"abc",
                "document ends where `\"` was expected at line 1 column 5",
                4,
            ),
            (
                "\"\\",
                "document ends where an escape was expected at line 1 column 3",
                2,
            ),
            (
                "\"a\\x41\"",
                "string contains an escape that JSON does not have at line 1 column 3",
                2,
            ),
            (
                "\"\\u00g0\"",
                "string contains an escape that JSON does not have at line 1 column 2",
                1,
            ),
            (
                "\"\\ud83d\"",
                "string contains half of a surrogate pair, which is not a character at line 1 column 2",
                1,
            ),
            (
                "\"\\ude00\\ud83d\"",
                "string contains half of a surrogate pair, which is not a character at line 1 column 2",
                1,
            ),
            (
                "[\"\\ud83d\\u0041\"]",
                "string contains half of a surrogate pair, which is not a character at line 1 column 3 (in `/0`)",
                2,
            ),
            (
                "{\"n\":9007199254740992}",
                "`9007199254740992` is an integer beyond ±9007199254740991, which not every reader keeps exactly; write it as a string at line 1 column 6 (in `/n`)",
                5,
            ),
            (
                "-1e20",
                "`-1e20` is an integer beyond ±9007199254740991, which not every reader keeps exactly; write it as a string at line 1 column 1",
                0,
            ),
            (
                "[1e400]",
                "`1e400` is beyond the largest number at line 1 column 2 (in `/0`)",
                1,
            ),
        ];
        for (input, message, offset) in cases {
            refused(input.as_bytes(), Limits::default(), message, offset);
        }
    }

    #[test]
    fn tr_02_bytes_that_are_not_utf_8() {
        refused(
            b"[\"\xc3\xa9\n\xff\"]",
            Limits::default(),
            "document is not UTF-8 at line 2 column 1",
            5,
        );
        // An encoded surrogate, and an overlong slash.
        for bytes in [&b"\"\xed\xa0\x80\""[..], b"\"\xc0\xaf\""] {
            let error = read(bytes, Limits::default()).unwrap_err();
            assert_eq!(error.kind, ReadErrorKind::NotUtf8);
        }
    }

    #[test]
    fn tr_02_size_and_depth_are_bounded() {
        let limits = Limits { bytes: 4, depth: 2 };
        assert!(read(b"[[]]", limits).is_ok());
        refused(
            b"[[]] ",
            limits,
            "document of 5 bytes is too large: at most 4 are read at line 1 column 1",
            0,
        );
        let limits = Limits {
            bytes: 99,
            ..limits
        };
        refused(
            b"[{}, [[]]]",
            limits,
            "value is nested too deeply: at most 2 levels are read at line 1 column 7 (in `/1/0`)",
            6,
        );
        let nested = |depth| [vec![b'['; depth], vec![b']'; depth]].concat();
        let endless = Limits {
            bytes: usize::MAX,
            depth: usize::MAX,
        };
        let deepest = read(&nested(MAX_DEPTH), endless).unwrap();
        assert_eq!(canonical(&deepest).unwrap(), nested(MAX_DEPTH));
        assert_eq!(canonical_of(&deepest).unwrap(), nested(MAX_DEPTH));
        let error = read(&nested(MAX_DEPTH + 1), endless).unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::TooDeep { limit: MAX_DEPTH });
        assert!(read(&vec![b'['; 1 << 20], endless).is_err());
        let deeper = json!([deepest]);
        assert_eq!(canonical(&deeper), Err(WriteError::TooDeep));
        assert_eq!(canonical_of(&deeper), Err(WriteError::TooDeep));
    }

    #[test]
    fn tr_02_a_long_key_is_not_repeated_whole() {
        let key = "k".repeat(10_000);
        let error = read(format!("{{\"{key}\":}}").as_bytes(), Limits::default()).unwrap_err();
        assert_eq!(error.path.len(), 10_001);
        assert!(error.to_string().len() < 300);
    }
}

#[test]
fn tr_02_numbers_keep_their_kind() {
    assert_eq!(strict("9007199254740991"), json!(9_007_199_254_740_991_u64));
    assert_eq!(
        strict("-9007199254740991"),
        json!(-9_007_199_254_740_991_i64)
    );
    assert!(strict("0").is_u64() && strict("-1").is_i64() && strict("1.0").is_f64());
    for zero in ["-0", "-0.0", "-0e7", "-1e-400"] {
        let value = strict(zero);
        assert!(value.is_f64(), "{zero}");
        assert!(value.as_f64().unwrap().is_sign_negative(), "{zero}");
        assert_eq!(canonical_text(zero), "0");
    }
    assert_eq!(
        canonical_text("[1E21, 1.0, 100e-2, 1e-7]"),
        "[1e+21,1,1,1e-7]"
    );
}

#[test]
fn tr_02_integers_beyond_doubles_are_not_written() {
    for value in [
        json!(MAX_INTEGER + 1),
        json!(u64::MAX),
        json!(-9_007_199_254_740_992_i64),
        json!(i64::MIN),
        json!(1e20),
    ] {
        for result in [canonical(&value), canonical_of(&value)] {
            assert!(
                matches!(result, Err(WriteError::IntegerOutOfRange { .. })),
                "{value}"
            );
        }
    }
    assert!(canonical_of(&u128::MAX).is_err());
    assert_eq!(canonical_of(&7_i128).unwrap(), b"7");
}

#[derive(Serialize)]
struct Mixed {
    zebra: Option<u8>,
    apple: Kind,
    #[serde(rename = "\u{fb33}")]
    hebrew: (i8, char),
    #[serde(rename = "😀")]
    smile: Vec<Kind>,
    bytes: std::collections::BTreeMap<u16, ()>,
}

#[derive(Serialize)]
enum Kind {
    Unit,
    One(f32),
    Two(bool, String),
    Named { z: u64, a: () },
}

#[test]
fn tr_02_a_type_is_written_as_its_tree() {
    let mixed = Mixed {
        zebra: None,
        apple: Kind::Named { z: 1, a: () },
        hebrew: (-3, '"'),
        smile: vec![Kind::Unit, Kind::One(0.5), Kind::Two(true, "\u{1f}".into())],
        bytes: [(10, ()), (9, ())].into(),
    };
    let bytes = canonical_of(&mixed).unwrap();
    assert_eq!(
        String::from_utf8(bytes.clone()).unwrap(),
        "{\"apple\":{\"Named\":{\"a\":null,\"z\":1}},\"bytes\":{\"10\":null,\"9\":null},\
         \"zebra\":null,\"😀\":[\"Unit\",{\"One\":0.5},{\"Two\":[true,\"\\u001f\"]}],\
         \"\u{fb33}\":[-3,\"\\\"\"]}"
    );
    assert_eq!(
        canonical(&serde_json::to_value(&mixed).unwrap()).unwrap(),
        bytes
    );
}

#[test]
fn tr_02_a_map_without_clear_keys_is_not_written() {
    struct Twice;
    impl Serialize for Twice {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([("a", 1), ("a", 2)])
        }
    }
    let key = "a".to_owned();
    assert_eq!(canonical_of(&Twice), Err(WriteError::DuplicateKey { key }));
    let unclear = std::collections::BTreeMap::from([(Some(true), 1)]);
    assert_eq!(canonical_of(&unclear), Err(WriteError::KeyNotText));
}

/// Trees whose numbers are all in range, with keys that sort badly.
fn values() -> impl Strategy<Value = Value> {
    let text = || {
        prop_oneof![
            any::<String>(),
            "[a-c]{0,3}",
            "[\u{e000}\u{ffff}\u{10000}\u{10ffff}a\u{d7ff}]{1,3}",
        ]
    };
    let limit = MAX_INTEGER as i64;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-limit..=limit).prop_map(Value::from),
        any::<f64>()
            .prop_filter("in range", |number| !is_inexact_integer(*number))
            .prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Documents that are nearly JSON.
fn documents() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"a\":",
        "\"\\u0061\":",
        "\"b\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud83d\"",
        "\"",
        "1",
        "-0",
        "0",
        ".5",
        "1e5",
        "1E-400",
        "1e16",
        "9007199254740992",
        "-",
        "true",
        "null",
        " ",
        "\n",
        "\t",
        "\u{feff}",
        "é",
        "\\",
        "/",
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat().into_bytes()),
        (values(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(value, place, byte)| {
            let mut bytes = serde_json::to_vec(&value).unwrap();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            bytes
        }),
        values().prop_map(|value| serde_json::to_vec_pretty(&value).unwrap()),
    ]
}

proptest! {
    #[test]
    fn tr_02_canonical_bytes_read_back_to_themselves(value in values()) {
        let bytes = canonical(&value).unwrap();
        let back = read(&bytes, Limits::default()).unwrap();
        prop_assert_eq!(&canonical(&back).unwrap(), &bytes);
        prop_assert_eq!(&canonical_of(&value).unwrap(), &bytes);
        prop_assert_eq!(serde_json_canonicalizer::to_vec(&value).unwrap(), bytes);
    }

    #[test]
    fn tr_02_numbers_agree_with_the_second_implementation(bits: u64) {
        let number = f64::from_bits(bits);
        match serde_json_canonicalizer::to_string(&number) {
            Ok(text) => prop_assert_eq!(ecmascript(number), text),
            Err(_) => prop_assert_eq!(canonical_of(&number), Err(WriteError::NotFinite)),
        }
    }

    /// Exponents near zero, where the layout changes; random bits hardly ever fall there.
    #[test]
    fn tr_02_everyday_numbers_agree_too(digits in -99_999_999_i64..99_999_999, scale in -30..30) {
        let number = digits as f64 * 10_f64.powi(scale);
        prop_assert_eq!(ecmascript(number), serde_json_canonicalizer::to_string(&number).unwrap());
    }

    /// Quarters that lie exactly between two shortest spellings.
    #[test]
    fn tr_02_ties_agree_too(quarters in 1_u64 << 50..1 << 53) {
        let number = quarters as f64 / 4.0;
        prop_assert_eq!(ecmascript(number), serde_json_canonicalizer::to_string(&number).unwrap());
    }

    /// Powers of two, whose neighbours below are nearer than those above.
    #[test]
    fn tr_02_powers_of_two_agree_too(exponent in 1_u64..2046, offset in -1_i64..=1) {
        let number = f64::from_bits((exponent << 52).wrapping_add_signed(offset));
        prop_assert_eq!(ecmascript(number), serde_json_canonicalizer::to_string(&number).unwrap());
    }

    #[test]
    fn tr_02_what_is_accepted_is_json(bytes in documents()) {
        if let Ok(value) = read(&bytes, Limits::default()) {
            prop_assert_eq!(&serde_json::from_slice::<Value>(&bytes).unwrap(), &value);
            let again = canonical(&value).unwrap();
            prop_assert!(read(&again, Limits::default()).is_ok());
        }
    }
}
